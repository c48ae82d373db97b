package heddle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/session"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/predict"
)

// Predictions are a model's predictions for the nodes of a graph.
type Predictions = predict.Predictions

// Predict applies m to g. If they do not fit, as in the number of features, the error is an
// *InputError.
func Predict(m *nn.Model, g *graph.Graph) (Predictions, error) {
	if err := applies(m, g); err != nil {
		return Predictions{}, input(err)
	}
	if m.Decoder != nil {
		return Predictions{}, input(infer.ErrLinks)
	}
	g = g.Numbered()
	if err := infer.NoRows(m, g.X); err != nil {
		return Predictions{}, input(err)
	}
	logits, err := infer.Graph(m, g)
	if err != nil {
		return Predictions{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
	}
	p := predict.PredictionsOf(m, logits)
	p.Warning = m.Spec.Unlabelled(g.Labels, g.Split)
	return p, nil
}

// Inference is what a site learns when all members of a plan compute predictions together.
type Inference struct {
	Predictions             // for the site's own nodes, by rank of its shard
	Hidden      mat.Dense   // [Owned × H] the rows that the model's last linear map reads (infer.Run)
	Metric      eval.Metric // of the test nodes
	Test        float64     // over all sites' test nodes, in [0, 1]; NaN if there are none
	Bound       float64     // how far Test, if it is AUC or AP, is off at most
	Tested      int64       // labelled test nodes of all sites
	Sent        Traffic     // by this site
}

// Infer computes, as one of p's members, predictions of m for the nodes of the site's shard, with the rows of
// neighbours at other sites. All members call it with the same model file; card is the rest of that file. The peers
// compare their fingerprints when they connect, and shards must be of one partition. Nothing is trained. A site sends
// what disclosure.OfModel lists; a site with a policy needs an approval of InferenceText.
//
// The error is an *InputError if plan, model, shard or gate is at fault, and a *comm.PeerError if another peer is.
func Infer(ctx context.Context, p Plan, s Site, m *nn.Model, card modelfile.Card) (*Inference, error) {
	if err := modelled(m, s.Shard); err != nil {
		return nil, input(err)
	}
	if m.Decoder != nil {
		return nil, input(infer.ErrLinks)
	}
	var out *Inference
	sent, err := s.apply(ctx, "predict", p, m, card, modelfile.SameClasses(card.Classes, s.Shard.Labels.Names),
		func(ctx context.Context, c infer.Config, at *session.Session) error {
			a, err := infer.Run(ctx, c, m, s.Shard, at.Group, at.Sums)
			if err != nil {
				return err
			}
			out = &Inference{Predictions: predict.PredictionsOf(m, a.Logits).By(card), Hidden: a.Hidden,
				Metric: c.Metric, Test: a.Test, Bound: a.Bound, Tested: a.Tested}
			out.Warning = m.Spec.Unlabelled(s.Shard.Labels, s.Shard.Split)
			return nil
		})
	if err != nil {
		return nil, err
	}
	out.Sent = sent
	return out, nil
}

// Recommend finds, as one of p's members, the k best new links of each of some nodes of the site's shard. m is a model
// of links. An empty relation means each that the model knows. The other ends are nodes of all sites or, if p takes
// pairs from near nodes, the site's own nodes and their neighbours: their owners send the rows that the decoder reads.
// All members call it as Infer, with a plan of links; a site may want no links.
func (s Site) Recommend(ctx context.Context, p Plan, m *nn.Model, card modelfile.Card, nodes []int32, relation string,
	k int) (all []shard.NewLink, sent Traffic, err error) {
	if !p.Task.Links() {
		return nil, sent,
			input(fmt.Errorf("the plan's task must be links (got %s): the plan decides which rows are sent", p.Task))
	}
	if err := modelled(m, s.Shard); err != nil {
		return nil, sent, input(err)
	}
	wanted, err := infer.Wants(m, s.Shard, nodes, relation)
	by, fault := p.Links(s.Shard)
	sent, err = s.apply(ctx, "recommend", p, m, card, errors.Join(err, fault),
		func(ctx context.Context, c infer.Config, at *session.Session) (err error) {
			all, err = infer.Together(ctx, c, by, m, s.Shard, at.Group, at.Sums, wanted, k)
			return err
		})
	return all, sent, err
}

// modelled returns an error if m or a site's part is nil, or the part is not sound.
func modelled(m *nn.Model, own *shard.Shard) error {
	return cmp.Or(kernels.Choice(), m.Whole(), shard.Sound(own))
}

// apply calls do in a session in which the members of p apply m, and returns what this one sent. It reports fault with
// the plan's faults.
func (s Site) apply(ctx context.Context, what string, p Plan, m *nn.Model, card modelfile.Card, fault error,
	do func(context.Context, infer.Config, *session.Session) error) (sent Traffic, err error) {
	q, c, err := disclosure.Inference(p, m, card)
	if err != nil {
		return sent, input(errors.Join(fault, err))
	}
	rank, err := p.Rank(s.Identity.PeerID())
	if err = errors.Join(err, disclosure.CheckMembers(p)); err == nil {
		err = disclosure.Seated(p, s.Shard, rank)
	}
	if err = errors.Join(err, infer.Fits(m, s.Shard), fault,
		modelfile.SameColumns(m.Spec, card.Encoding, s.Shard.Encoding)); err != nil {
		return sent, input(err)
	}
	print, err := modelfile.Fingerprint(m, card)
	if err != nil {
		return sent, input(err)
	}
	s.Gate.PlanText = disclosure.InferenceText(s.Gate.PlanText, print)
	text := string(disclosure.InferenceText([]byte(q.Agreed()), print))
	hello := p2p.Hello{Plan: sha256.Sum256([]byte(text)), Partition: s.Shard.Fingerprint, PlanText: text}
	sends := func() (*disclosure.Disclosure, error) { return disclosure.OfModel(p, m, card, s.Shard) }
	err = disclosure.MeetAs(ctx, p, s.session(), what, hello, sends, func(ctx context.Context,
		at *session.Session) error {
		err := do(ctx, c, at)
		at.Left(what)
		if err == nil {
			err = at.Group.Barrier(ctx) // nobody leaves before all have what they need
		}
		sent = Traffic{Name: at.Names[at.Rank], Counts: at.Group.Bytes(), Wire: at.Wire()}
		return err
	})
	return sent, err
}

// Embed returns the hidden rows of all nodes of g, [N × H]: those that m's last linear map reads (infer.Run), or its
// decoder of links; empty if there are none. m.Spec.Unlabelled warns of labels that g lacks. If m and g do not fit, the
// error is an *InputError.
func Embed(m *nn.Model, g *graph.Graph) (mat.Dense, error) {
	if err := applies(m, g); err != nil {
		return mat.Dense{}, input(err)
	}
	if m.Decoder != nil {
		z, err := infer.Graph(m, g.Numbered())
		if err != nil {
			return mat.Dense{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
		}
		return z, nil
	}
	whole := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
	defer whole.Close()
	metric := map[graph.TargetKind]eval.Metric{graph.Single: "accuracy", graph.Several: "micro-f1",
		graph.Numbers: "r2"}[m.Spec.Kind()]
	a, err := infer.Run(context.Background(), infer.Config{Exchange: "halo", Layerwise: true, Metric: metric}, m,
		shard.Whole(g.Numbered()), whole, whole)
	if err != nil {
		return mat.Dense{}, input(fmt.Errorf("the model does not fit %s: %w", g.Name, err))
	}
	return a.Hidden, nil
}
