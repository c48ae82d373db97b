package retexo

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// What a trainer does between the rounds of two stages: labels are counted, components found, rows exchanged and aggregated,
// and a finished stage makes the rows that the next one sees.

// census counts the training labels of all peers, class by class, and the labelled nodes.
func (t *Trainer) census(ctx context.Context) (float64, error) {
	s := t.shard
	c := s.Labels.Classes
	v := make([]float32, c+1)
	var train []int32
	for i, split := range s.Split {
		if split == graph.Train {
			train = append(train, int32(i))
		}
	}
	labels := s.Labels.Select(train)
	for k, n := range labels.Count() {
		v[k] = float32(n)
	}
	v[c] = float32(labels.Labelled())
	if err := t.reduce(ctx, v); err != nil {
		return 0, err
	}
	t.labels = make([]float64, c)
	for k := range t.labels {
		t.labels[k] = float64(v[k])
	}
	return float64(v[c]), nil
}

func (t *Trainer) project(ctx context.Context, w Work, e *Event) error {
	enc, x := t.model.Encoder, t.input
	if t.config.Inductive {
		var present []int32
		for i, split := range t.shard.Split {
			if split != graph.Val && split != graph.Test {
				present = append(present, int32(i))
			}
		}
		x = x.Select(present)
	}
	v, err := components(ctx, t.reducer, x, enc.Spec.Out, t.config.PCAPasses, t.key.FoldString("pca"))
	if err != nil {
		return err
	}
	enc.Proj.W.Value.CopyFrom(v)
	// The sums are the same bits everywhere, but each peer decomposes them itself, and processors may round apart.
	if t.nudge != nil {
		t.nudge(t.held(w)[0])
	}
	mine := make([]float32, t.shard.Parts)
	mine[t.shard.Rank] = float32(digest(t.held(w)[0]))
	err = t.reduce(ctx, mine)
	e.Digests = digests(mine)
	return err
}

func (t *Trainer) exchange(ctx context.Context, w Work) (err error) {
	l := t.model.Layers[w.Stage-1]
	what := fmt.Sprintf("rows of stage %d, hop %d", w.Stage, w.Hop)
	if t.config.Survival.On() {
		if err := t.unplace(w, what); err != nil {
			return err
		}
	}
	if t.covered(l) {
		return t.cross(ctx, l, w, what)
	}
	if err := t.full.fetch(ctx, t.group, t.coder, t.shard, w.Hop, what); err != nil {
		return err
	}
	if t.config.Survival.On() {
		if err := t.standIn(ctx, w, l); err != nil {
			return err
		}
	}
	if w.Hop > 0 {
		if t.training == t.full {
			return nil
		}
		if err := t.training.fetch(ctx, t.group, t.coder, t.shard, w.Hop, what); err != nil {
			return err
		}
		t.fill(t.training)
		return nil
	}
	if !t.config.Inductive || w.Stage == 1 { // both views' rows are the same, at every peer, wherever it has them from
		t.base.src = t.full.src
	} else if err := t.base.fetch(ctx, t.group, t.coder, t.shard, 0, what); err != nil {
		return err
	}
	t.training = t.base
	if n := t.config.Neighbours; n > 0 {
		key := t.key.FoldString("neighbours").Fold(uint64(w.Stage))
		t.training, err = t.base.sampled(ctx, t.group, t.shard, l.Edges, n, key)
	}
	return err
}

func (t *Trainer) aggregate(w Work) {
	l := t.model.Layers[w.Stage-1]
	t.full.aggregate(l)
	if t.training != t.full {
		t.training.aggregate(l)
	}
}

// freeze ends a stage: its best parameters are taken, the rows that the next stage sees are computed, and the metric
// over all validation and test nodes is summed.
func (t *Trainer) freeze(ctx context.Context, w Work) error {
	if w.Stage == 0 && t.config.Spec.Encoder.Kind != "mlp" {
		t.carry(nil, 0)
		return nil
	}
	st := t.stage
	if !w.Keep && st.slab != nil {
		st.swap()
	}
	if err := t.report(ctx, w); err != nil {
		return err
	}
	t.carry(st, w.Stage)
	t.stage = nil
	return nil
}

// carry computes the rows that the stage after k sees of own nodes. st is stage k's, with its final parameters; nil for
// an encoder that is not trained.
func (t *Trainer) carry(st *stage, k int) {
	if t.config.Survival.On() {
		defer func() { t.own, t.rows = t.placeOf(k+1), place{} }()
	}
	if st == nil {
		if t.config.Spec.Encoder.Kind == "pca" {
			t.full.own = t.model.Encoder.Encode(t.shard.X)
		}
		return
	}
	full := graph.Features{Dense: st.carry(t.full.all(st.layer, t.shard), t.shard.Owned, t.config.Spec.Carry)}
	if t.base != t.full {
		t.base = &view{adj: t.base.adj, degree: t.base.degree,
			own: graph.Features{Dense: st.carry(t.training.all(st.layer, t.shard), t.shard.Owned, t.config.Spec.Carry)}}
	}
	t.full = &view{adj: t.full.adj, degree: t.full.degree, own: full}
	if !t.config.Inductive || k == 0 {
		t.base = t.full
	}
	t.training = t.base
}

// report sums the metric of the finished stage over all validation and test nodes.
func (t *Trainer) report(ctx context.Context, w Work) error {
	final := eval.NewTally(t.config.Metric, t.shard.Labels, eval.DefaultBins)
	size := final.Size()
	v := make([]float32, 2*size)
	t.stage.val.tally(final, v[:size], t.stage.forward(t.stage.val))
	t.stage.test.tally(final, v[size:], t.stage.forward(t.stage.test))
	if err := t.reduce(ctx, v); err != nil {
		return err
	}
	info := StageInfo{Stage: w.Stage, BestRound: t.machine.Position().BestRound}
	var err error
	if info.Val, info.ValLoss, err = final.Read(v[:size]); err != nil {
		return err
	}
	if info.Test, info.TestLoss, err = final.Read(v[size:]); err != nil {
		return err
	}
	info.Bytes = t.sent()
	t.result.Stages = append(t.result.Stages, info)
	if t.Observer.StageEnd != nil {
		t.Observer.StageEnd(info)
	}
	return nil
}
