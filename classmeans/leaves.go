package classmeans

import (
	"context"
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/train"
)

// With Leaves the members of two sums may differ: phones come and go, and this peer's own part may be missing as well
// if it is a phone. So each sum is used by itself: it contains the number of its rows, equations are summed whole, and
// no sum is compared with one before.

// fitsLeaves returns what keeps this run from having leaves, or nil.
func (t *Trainer) fitsLeaves() error {
	c := t.config
	switch {
	case !t.Leaves:
		return nil
	case c.Random != 0:
		return errors.New("random_features must be 0 with phones: its sums are too large for a phone")
	case c.Epsilon > 0:
		return errors.New("epsilon must be 0 with phones: nobody sees the parts of a sum")
	case c.numbers():
		return errors.New("nodes must have classes with phones (got a numeric target): what a phone adds to a count " +
			"is bounded, not a number")
	case t.Checkpoints != nil:
		return errors.New("a run with phones keeps no checkpoints: its sums are kept (leaf.Journal)")
	}
	return nil
}

// countLabels counts the labels of all peers.
func (t *Trainer) countLabels(ctx context.Context) (train.LabelCounts, error) {
	id, draw := t.id("label counts", 0, 0), t.config.Draw()
	if !t.Leaves {
		return train.CountLabels(ctx, t.Reducer, id, t.Whole, draw)
	}
	c := &comm.Contribution{ID: id, Counts: train.LabelNumbers(t.Whole, draw)}
	if _, err := t.Reducer.Reduce(ctx, c); err != nil {
		return train.LabelCounts{}, err
	}
	sums := make([]float64, len(c.Counts))
	for k, n := range c.Counts {
		sums[k] = float64(n)
	}
	return train.ReadLabels(sums, t.Whole.Labels.Kind(), draw), nil
}

// residualUnit returns what a map of residuals is multiplied by before its columns are standardised: with leaves, whose
// sums must fit a grid, a power of two about one over the number of labels. Else 1.
func (t *Trainer) residualUnit() float32 {
	if !t.Leaves {
		return 1
	}
	_, exponent := math.Frexp(t.Labels.Labelled)
	return float32(math.Ldexp(1, -exponent))
}

// equations sums the normal equations of the columns of all rounds up to r.
func (t *Trainer) equations(ctx context.Context, r int, y mat.Dense, weight []float32) error {
	d := t.base.columnsOf(r + 1)
	c := &comm.Contribution{ID: t.id("normal equations", r, 0), Update: t.part(r, d, y, weight, nil)}
	_, err := t.Reducer.Reduce(ctx, c)
	if err == nil {
		t.normal, err = (linear.Normal{}).Extend(c.Update, d, y.Cols)
	}
	return err
}

// Exchanges returns how many numbers each sum has in a run with phones that ends after `rounds` rounds, if a node has
// one class and the metric is accuracy. leaf.Agreement converts them to bytes.
func (c Config) Exchanges(rounds int) []int {
	spec := c.Layout()
	all, d := []int{train.LabelsLen(graph.Single, c.Classes), 2*c.Inputs() + 1}, 1
	for r := range rounds {
		width, sets := spec.Width(c.Classes), min(r+1, 3)
		d += spec.Columns(r, c.Classes)
		means := c.Inputs() * width
		if !spec.Residual {
			means += width
		}
		all = append(all, means, 2*width+1)
		if spec.TrainLead && r > 0 {
			all = append(all, 4*width)
		}
		all = append(all, linear.PartLen(d, d, c.Classes), sets*len(c.Lambdas)+1)
	}
	counts, _ := c.Measured()
	return append(all, 2*counts)
}
