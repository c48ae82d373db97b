package joint

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/task"
	"github.com/heddle-gnn/heddle/train"
)

// Compare returns the metric and the loss over the rows of scores of all peers, which have these labels; nodes is the number
// of nodes of the whole graph. A metric of ranks has that many bins; it is off by at most bound.
func Compare(
	ctx context.Context, r comm.Reducer, id comm.ReduceID, c train.Config, nodes int64, scores mat.Dense, labels graph.Labels, bins int,
) (metric, loss, bound float64, err error) {
	sums := eval.NewAccumulator(c.Metric, labels, bins)
	x := make([]int64, sums.Size())
	sum, count := task.Loss(mat.Dense{}, scores, labels, nil)
	sums.Write(x, sum, count, scores, labels)
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: x, CountBits: comm.CountBits(nodes), Wide: sums.Wide}); err != nil {
		return 0, 0, 0, err
	}
	metric, loss, _, err = sums.Read(x)
	return metric, loss, sums.Bound(x), err
}
