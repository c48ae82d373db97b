package classmeans

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// Within is a closed form as a part of another run: its logits are columns of what trained layers see.
type Within struct {
	Config     Config
	Labels     train.LabelCounts // of all peers
	Generation uint64            // of the run: a part of the name of each of its sums
	OnEvent    func(train.Event)
}

// Logits runs all rounds of w, even if they validate worse, for the peer that owns s, and returns the logits of own
// nodes, [Owned × C]. It sets the parameters of form, which has w's layout. It writes no checkpoint and reads no test
// node: a resumed run has the logits in its own checkpoint, or begins anew and finds the same. If most classes have too
// few training nodes for a mean, form and logits become zeros, and a warning explains it.
func (w Within) Logits(ctx context.Context, form *closed.Form, s *shard.Shard, g *comm.Group,
	r comm.Reducer) (mat.Dense, error) {
	none := mat.New(s.Owned, w.Config.Classes)
	t, err := New(w.Config, s)
	if err != nil {
		return none, err
	}
	defer func() {
		if t.model != nil {
			for i, p := range form.Params() {
				p.Value.CopyFrom(t.model.Closed.Params()[i].Value)
			}
		}
	}()
	t.OnEvent = func(e train.Event) {
		if e.Kind == train.Warning || e.Kind == train.Note {
			w.OnEvent(e)
		}
	}
	t.Join(g, r)
	t.Generation, t.Labels, t.within = w.Generation, w.Labels, true
	if err = t.resolve(); err == nil {
		err = t.smallClasses()
	}
	if err != nil {
		w.OnEvent(train.Event{Kind: train.Warning, Text: fmt.Sprintf("the layers see no columns of classes: %v", err)})
		return none, nil
	}
	if err := t.statistics(ctx); err != nil {
		return none, err
	}
	rounds := t.model.Spec.Closed.Rounds
	for k := range rounds {
		if err := ctx.Err(); err != nil {
			return none, err
		}
		if _, err := t.round(ctx, k); err != nil {
			return none, fmt.Errorf("round %d of class means: %w", k+1, err)
		}
	}
	return t.full.logitsOf(rounds-1, mat.EveryRow(s.Owned)), nil
}
