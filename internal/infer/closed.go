package infer

import (
	"errors"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// classLogits computes the logits of f, a model in closed form or the part of one that makes columns of classes, and
// the columns that its last head reads.
func (p *run) classLogits(f *closed.Form) (logits, columns mat.Dense, err error) {
	x, s := p.shard.X, p.shard
	if k := f.Spec.Adjacent; k > 0 {
		x = closed.AdjacencyRows(&s.Adj, s.Global, int(s.Nodes), k)
	}
	x = p.model.Encoder.Input(x)
	var v closed.Surroundings = &classRounds{run: p, layout: f.Spec, x: x}
	if p.whole {
		v = closed.WholeGraph(&s.Adj, x, f.Spec)
	}
	return f.Walk(v, s.Labels, s.Split, p.labels.Labelled > 0)
}

// classRounds is what class means see in a run: the columns of own nodes are sent as in training, rounded, once for
// each hop. The maps are in the model, so that no sum of features is taken again.
type classRounds struct {
	run    *run
	layout closed.Layout
	x      graph.Features
	hop    *train.Hop // nil until the first
}

func (v *classRounds) Features() graph.Features { return v.x }
func (v *classRounds) Degrees() []float32       { return v.run.view.Degree[:v.run.shard.Owned] }

func (v *classRounds) Aggregate(y, x mat.Dense, what string) (err error) {
	p := v.run
	if v.hop == nil { // a model may have fewer rounds than the run that trained it
		v.hop, err = p.sender.NewColumnHop(p.ctx, p.view, v.layout, math.MaxInt, p.model.Spec.Classes, p.Exchange)
		if err != nil {
			return err
		}
	}
	return v.hop.Aggregate(p.ctx, y, x, what)
}

func (v *classRounds) ClassSums(int, mat.Dense) (mat.Dense, error) {
	return mat.Dense{}, errors.New("private edges have no sums outside their run") // Fits refuses such models
}
