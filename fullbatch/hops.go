package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// hops appends the sums of the features over 1 to Encoder.Hops hops to the features. They are computed once a run: each
// hop sends the halo's rows once (SIGN; Frasca et al., 2020, arXiv 2004.11198). `which` is 0 for the whole graph and 1
// for the part that training sees.
func (t *Trainer) hops(ctx context.Context, r comm.Reducer, a *graphView, which int) error {
	n := t.Model.Spec.Encoder.Hops
	if n == 0 {
		return nil
	}
	edges := a.Normalised(graph.GCN)
	list := []graph.Features{t.input}
	for k := range n {
		rows, err := t.line.sender.Features(ctx, list[k], "features of the halo")
		if err != nil {
			return err
		}
		x := aggregate.Features(aggregate.Sum{}, edges, rows)
		dense := []int64{0} // sums of sparse rows are stored dense if they are full, at all workers or at none
		if x.Sparse == nil {
			dense[0] = 1
		}
		if err := sumCounts(ctx, r, t.ID(ofHops, which*n+k), dense); err != nil {
			return err
		}
		if dense[0] > 0 && x.Sparse != nil {
			x = graph.Features{Dense: x.Matrix()}
		}
		list = append(list, x)
	}
	a.beside = graph.Columns(list)
	return nil
}
