package heddle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p"
)

// Inference is what a site learns when all members of a plan compute predictions together.
type Inference struct {
	Predictions             // for the site's own nodes, by rank of its shard
	Hidden      mat.Dense   // [Owned × H] the rows that the model's last linear map reads (infer.Run)
	Metric      eval.Metric // of the test nodes
	Test        float64     // over those of all sites, in [0, 1]; NaN: there are none
	Tested      int64       // labelled test nodes of all sites
	Sent        Traffic     // by this site
}

// Infer computes, as one of p's members, predictions of m for the nodes of the site's shard, with the rows of neighbours at
// other sites. All members call it with the same model file, of which card is the rest: the peers compare their
// fingerprints when they connect, and shards must be of one partition. Nothing is trained. What a site sends is what
// disclosure.OfModel lists; a site with a policy needs an approval of InferenceText.
//
// The error is an *InputError if plan, model, shard or gate is at fault, and a *comm.PeerError if another peer is.
func Infer(ctx context.Context, p Plan, s Site, m *nn.Model, card modelfile.Card) (*Inference, error) {
	if m.Decoder != nil {
		return nil, input(infer.ErrLinks)
	}
	q, config, err := p.Inference(m, card)
	if err != nil {
		return nil, input(err)
	}
	rank, err := p.Rank(s.Identity.PeerID())
	if err = errors.Join(err, CheckMembers(p)); err == nil {
		err = seated(p, s.Shard, rank)
	}
	if err = errors.Join(err, infer.Fits(m, s.Shard), sameClasses(card.Classes, s.Shard), modelfile.SameColumns(card.Encoding, s.Shard.Encoding)); err != nil {
		return nil, input(err)
	}
	print, err := modelfile.Fingerprint(m, card)
	if err != nil {
		return nil, input(err)
	}
	s.Gate.PlanText = InferenceText(s.Gate.PlanText, print)
	text := string(InferenceText([]byte(q.Agreed()), print))
	var out *Inference
	one := meeting{plan: p, what: "predict", hello: p2p.Hello{Plan: sha256.Sum256([]byte(text)), Partition: s.Shard.Fingerprint, PlanText: text}}
	one.sends = func() (*disclosure.Disclosure, error) { return disclosure.OfModel(p, m, card, s.Shard) }
	one.do = func(ctx context.Context, with *Session) error {
		a, err := infer.Run(ctx, config, m, s.Shard, with.Group, with.Sums)
		with.Left("predict")
		if err != nil {
			return err
		}
		if err := with.Group.Barrier(ctx); err != nil { // nobody leaves before all have what they need
			return err
		}
		out = &Inference{Predictions: predictionsOf(m, a.Logits).By(card), Hidden: a.Hidden,
			Metric: config.Metric, Test: a.Test, Tested: a.Tested}
		out.Sent = Traffic{Name: p.Members[rank].Name, Counts: with.Group.Bytes(), Wire: with.wire()}
		return nil
	}
	return out, one.attend(ctx, s)
}

// Embed returns the hidden rows of all nodes of g, [N × H]: those that m's last linear map reads (infer.Run), or its
// decoder of links; empty if there are none. If m and g do not fit, the error is an *InputError.
func Embed(m *nn.Model, g *graph.Graph) (mat.Dense, error) {
	if m.Decoder != nil {
		z, err := m.Infer(g.Numbered())
		if err != nil {
			return mat.Dense{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
		}
		return z, nil
	}
	whole := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer whole.Close()
	metric := map[target.Kind]eval.Metric{target.Single: "accuracy", target.Several: "micro-f1", target.Numbers: "r2"}[m.Spec.Kind()]
	a, err := infer.Run(context.Background(), infer.Config{Exchange: "halo", LeastInSum: 1, Layerwise: true, Metric: metric}, m, shard.Whole(g.Numbered()), whole, whole)
	if err != nil {
		return mat.Dense{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
	}
	return a.Hidden, nil
}

// InferenceText returns what a site approves before it computes predictions by a plan file and the model of that
// fingerprint: the text of the file, and a line that names the model.
func InferenceText(plan []byte, model [32]byte) []byte {
	return fmt.Appendf(append([]byte{}, plan...), "predict: %q\n", hex.EncodeToString(model[:]))
}

// sameClasses returns an error unless the classes of s, if they have names, are those of a model.
func sameClasses(names []string, s *shard.Shard) error {
	if len(names) == 0 || len(s.Labels.Names) == 0 {
		return nil
	}
	if got := len(s.Labels.Names); got != len(names) {
		return fmt.Errorf("labels must have %d classes, as the model has (got %d)", len(names), got)
	}
	for k, name := range names {
		if s.Labels.Names[k] != name {
			return fmt.Errorf("class %d must be %q, as in the model (got %q)", k, name, s.Labels.Names[k])
		}
	}
	return nil
}
