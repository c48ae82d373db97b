package classmeans

import (
	"context"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

const (
	// mostDeviations bounds a standardised feature in what directions are learned from: amounts have tails, and the
	// grid of a secure sum is as coarse as its largest value.
	mostDeviations = 8
	// perDirection is how many labelled nodes with a neighbour at their own site each feature takes, or there are no
	// directions.
	perDirection = 10
)

// withDirections returns the map u of round r followed by its directions, or only these. A direction is the part of a
// node's neighbours' features that explains the label's residual after earlier rounds: the weights of a ridge
// regression on the means of the features over neighbours at the same site, so that no row is sent for it.
func (t *Trainer) withDirections(ctx context.Context, r int, x graph.Features, u mat.Dense) (mat.Dense, error) {
	spec := t.model.Closed.Spec
	if spec.Directions == 0 || r < spec.Alone {
		return u, nil
	}
	g, err := t.directions(ctx, r, x)
	if err != nil {
		return u, err
	}
	if spec.DirectionsOnly {
		return g, nil
	}
	return graph.Columns([]graph.Features{{Dense: u}, {Dense: g}}).Dense, nil
}

// directions returns the directions of round r, F×Directions, for features that are not standardised.
func (t *Trainer) directions(ctx context.Context, r int, x graph.Features) (mat.Dense, error) {
	form := t.model.Closed
	near, at := t.neighbourMeans(x)
	y := t.residuals(at)
	z := graph.Columns([]graph.Features{{Dense: ones(near.Rows)}, {Dense: near}}).Dense
	own := linear.Part(z, z.Cols, y, slices.Repeat([]float32{1}, z.Rows))
	rest := float64(t.Labels.Labelled) - float64(len(t.train))
	squares := append([]float64{rest}, slices.Repeat([]float64{rest * mostDeviations * mostDeviations}, near.Cols)...)
	c := &comm.Contribution{ID: t.id("directions", r, 0), Update: slices.Clone(own),
		UpdateLimit: linear.PartLimit(z.Cols, squares,
			slices.Repeat([]float64{rest * closed.MaxResidual * closed.MaxResidual}, y.Cols))}
	if _, err := t.Reducer.Reduce(ctx, c); err != nil {
		return mat.Dense{}, err
	}
	g := mat.New(near.Cols, form.Spec.Directions)
	if nodes := float64(c.Update[0]); nodes < float64(perDirection*near.Cols) {
		t.Log(train.Note, "round %d has no directions: %.0f labelled nodes have a neighbour at their own site, "+
			"and %d features take %d", r+1, nodes, near.Cols, perDirection*near.Cols)
		return g, nil
	}
	n, err := (linear.Normal{}).Extend(c.Update, z.Cols, y.Cols)
	if err != nil {
		return g, err
	}
	if g, err = n.Directions(ctx, form.Spec.Directions); err != nil {
		return g, err
	}
	for j, f := range form.Own.Value.Row(1) {
		kernels.Scale(f, g.Row(j))
	}
	return g, t.agreeOn(ctx, r, g)
}

// neighbourMeans returns the means of the standardised features over the neighbours at this site, and the labelled
// training nodes, which have some, that they are of.
func (t *Trainer) neighbourMeans(of graph.Features) (near mat.Dense, at []int32) {
	x := t.model.Closed.OwnColumns(of)
	for i, v := range x.Data {
		x.Data[i] = min(max(v, -mostDeviations), mostDeviations)
	}
	var sums []float32
	for _, i := range t.train {
		sum, n := make([]float64, x.Cols), 0
		col, _ := t.base.Adj.Row(int(i))
		for _, j := range col {
			if j == i || int(j) >= x.Rows {
				continue
			}
			n++
			for k, v := range x.Row(int(j)) {
				sum[k] += float64(v)
			}
		}
		if n == 0 {
			continue
		}
		at = append(at, i)
		for _, v := range sum {
			sums = append(sums, float32(v/float64(n)))
		}
	}
	return mat.View(len(at), x.Cols, sums), at
}

// residuals returns the labels of the nodes at, less the previous round's predictions. Residuals of exclusive classes
// add up to 0, so that the last class has none.
func (t *Trainer) residuals(at []int32) mat.Dense {
	spec := t.model.Closed.Spec
	labels := t.shard.Labels.Rows(at)
	width := t.config.Classes
	if !spec.Multi && !spec.Numbers {
		width = max(width-1, 1)
	}
	y := mat.New(len(at), width)
	for k, i := range at {
		for c := range width {
			v := labels.At(int(i), c) - t.base.logits.At(int(i), c)
			if spec.Multi {
				v -= closed.Half
			}
			y.Set(k, c, float32(min(max(v, -closed.MaxResidual), closed.MaxResidual)))
		}
	}
	return y
}

// agreeOn gives every peer the directions that most have: each solves the same equations, and processors may round
// apart.
func (t *Trainer) agreeOn(ctx context.Context, r int, g mat.Dense) error {
	one := []candidate{{weights: g}}
	reduced, err := t.Reducer.Reduce(ctx,
		&comm.Contribution{ID: t.id("digests of directions", r, 0), Meta: digestOf(one)})
	if err != nil {
		return err
	}
	if !finite(g.Data) {
		return comm.Refused("directions must be finite; scale the features")
	}
	return t.agree(ctx, r, reduced.Meta, one)
}

// ones returns n ones.
func ones(n int) mat.Dense {
	y := mat.New(n, 1)
	for i := range y.Data {
		y.Data[i] = 1
	}
	return y
}
