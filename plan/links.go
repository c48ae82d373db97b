package plan

import (
	"errors"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/retexo"
	"github.com/heddle-gnn/heddle/train"
)

// links returns what is learned from the links of t (nil = nodes have labels). Faults go to errs.
func (p Plan) links(t task, errs *faults) *train.LinkTask {
	if !p.Task.Links() {
		return nil
	}
	*errs = append(*errs, t.fault)
	l := p.Gradient().Links
	c := &train.LinkTask{Relations: p.Task.Relations, Negatives: l.Negatives, Near: l.NegativesFrom == "near"}
	if copy(c.HeldOut[:], l.LinkHoldout); len(l.LinkHoldout) != 2 {
		errs.add("link_holdout must be two fractions, of validation and of test (got %d)", len(l.LinkHoldout))
		c.HeldOut = [2]float64{0.05, 0.1}
	}
	var err error
	if c.Time, err = links.ParseTime(l.LinkTime); err != nil {
		*errs = append(*errs, err)
	}
	return c
}

// Links returns what the peer that owns s learns from links by p, whose task must be links, or all faults of p.
func (p Plan) Links(s *shard.Shard) (train.LinkTask, error) {
	_, err := p.Identify(s)
	c := p.links(p.taskOf(s), new(faults))
	if c == nil {
		return train.LinkTask{}, err
	}
	return *c, err
}

// linkwise returns the configuration of layer-wise training of links of t, or all faults of p.
func (p Plan) linkwise(t task) (retexo.LinkConfig, error) {
	of, err := p.layerwise(t)
	errs := faults{err}
	refuse := func(bad bool, name string, got any, why string) {
		if bad {
			errs.add("%s for links with method layer-wise (got %v): %s", name, got, why)
		}
	}
	l := p.LayerWise
	refuse(l.LocalSteps > 1, "local_steps must be 1", l.LocalSteps,
		"each round samples new pairs, and sums all peers' gradients for them")
	refuse(!l.KeepLast, "keep_last must be true", false, "only the last layer's decoder is kept")
	refuse(l.Updates != "float32", "updates must be float32", l.Updates, "gradients are summed exactly")
	c := retexo.LinkConfig{Config: of.Config, PCAPasses: of.PCAPasses, Sums: of.Sums}
	c.Schedule.Total = l.Rounds
	if all := p.links(t, &errs); all != nil {
		c.Links = *all
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, c.Validate())
	}
	if err := errors.Join(errs...); err != nil {
		return retexo.LinkConfig{}, err
	}
	return c, nil
}

// decoder returns the decoder of links (nil = nodes have labels).
func (p Plan) decoder(t task) *nn.DecoderSpec {
	if t.Kind != graph.Links {
		return nil
	}
	d := &nn.DecoderSpec{Kind: p.Gradient().Decoder, Width: t.Classes, Relations: t.Links}
	if len(t.Links) == 0 {
		d.Relations = []string{""} // fault reports why
	}
	if d.Kind == "mlp" {
		d.Hidden = p.Gradient().Hidden
	}
	return d
}
