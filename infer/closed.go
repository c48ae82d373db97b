package infer

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// mostCrossing is the largest value of a column that crosses, in deviations of it, as in training.
const mostCrossing = 1 << 20

// closedForm computes the logits of m, a model in closed form or the part of one that makes columns of classes. Its maps are
// in the model: no sum of features is taken again, and the columns of own nodes cross, rounded as in training, once for each
// hop.
func (p *run) closedForm(ctx context.Context, m *closed.Form) (mat.Dense, error) {
	s := p.shard
	spec := m.Spec
	x := s.X
	if k := spec.Adjacent; k > 0 {
		x = closed.AdjacencyRows(&s.Adj, s.Global, int(s.Nodes), k)
	}
	x = p.model.Encoder.Input(x)
	view := train.WholeGraph(s)
	var hop *train.Hop
	aggregate := func(x mat.Dense, what string) (y mat.Dense, err error) {
		if hop == nil {
			if hop, err = p.newHop(ctx, m.Spec, view); err != nil {
				return y, err
			}
		}
		return hop.Aggregate(ctx, x, what)
	}
	trained, others := spec.Present(s.Split, s.Labels)
	leaveOut := spec.LeaveOut && p.labels.Labelled > 0
	var y, logits mat.Dense
	if leaveOut {
		y, logits = s.Labels.Rows(trained), spec.Prior(s.Owned, m.Counts[0].Value.Row(0))
	}
	var columns []graph.Features
	add := func(z mat.Dense) { columns = append(columns, graph.Features{Dense: z}) }
	for r, head := range m.Heads {
		z := closed.Times(x, m.Means[r].Value)
		if leaveOut {
			m.LeaveOwn(r, x, z, spec.Targets(r, trained, others, y, logits))
		}
		own := z
		z = spec.Coarsen(r, x, z)
		if r > 0 && spec.LogitHopsOf(r) > 0 {
			before := spec.Before(logits)
			for k := range spec.LogitHopsOf(r) {
				var err error
				if before, err = aggregate(before, fmt.Sprintf("logits of round %d, hop %d", r, k)); err != nil {
					return logits, err
				}
				add(before)
			}
		}
		hops := spec.HopsOf(r)
		for k := range hops + 1 {
			kept := own
			if k > 0 {
				var err error
				if z, err = aggregate(z, fmt.Sprintf("rows of round %d, hop %d", r+1, k-1)); err != nil {
					return logits, err
				}
				kept = z
			}
			if spec.AllHops || k == hops {
				add(kept)
			}
		}
		if r == 0 && spec.Degree {
			add(closed.DegreeColumn(view.Degree[:s.Owned]))
		}
		if r == 0 && m.Own != nil {
			add(m.OwnColumns(x))
		}
		p.hidden = graph.Columns(columns).Dense
		logits = head.Logits(p.hidden)
	}
	return logits, nil
}

// newHop agrees with every peer on what crosses in each hop, by the same rule as training: rows, or sums where the hops of
// the rounds that any run has repay asking for them.
func (p *run) newHop(ctx context.Context, spec closed.Layout, view train.GraphView) (*train.Hop, error) {
	classes, each := p.model.Spec.Classes, 0 // bytes of a row in those hops
	for r := spec.Alone; r < spec.Alone+2; r++ {
		width := spec.Width(classes)
		each += spec.LogitHopsOf(r) * p.sender.RowLen(width)
		each += spec.Hops * p.sender.RowLen(width)
	}
	crossing := train.Crossing{Most: mostCrossing}
	if p.Exchange != "halo" {
		crossing.Worth = func(fewer, bytes int) bool { return fewer*each > bytes }
	}
	return p.sender.NewHop(ctx, view, spec.Edges(), "covers of rows", crossing)
}
