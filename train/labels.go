package train

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// LabelCounts are the labels of the training nodes of all peers.
type LabelCounts struct {
	Classes  []float64 // [C] nodes that have each class
	Labelled float64   // nodes that have any label
}

// CountLabels counts the labels of all peers' training nodes; s holds those of this one.
func CountLabels(ctx context.Context, r comm.Reducer, id comm.ReduceID, s *shard.Shard) (LabelCounts, error) {
	labels := s.Labels.Select(s.NodesIn(graph.Train))
	sums := make([]int64, labels.Classes+1)
	for k, n := range labels.Count() {
		sums[k] = int64(n)
	}
	sums[labels.Classes] = int64(labels.Labelled())
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: sums}); err != nil {
		return LabelCounts{}, err
	}
	all := LabelCounts{Classes: make([]float64, labels.Classes), Labelled: float64(sums[labels.Classes])}
	for k := range all.Classes {
		all.Classes[k] = float64(sums[k])
	}
	return all, nil
}
