package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/wire"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// spread is what Correct & Smooth needs of the graph: each hop, the halo's rows of C values travel once, exactly.
func (t *Trainer) spread(ctx context.Context, r comm.Reducer) nn.Spread {
	s := t.shard
	adj := graph.Normalise(t.full.adj, t.full.degree, graph.Symmetric)
	return nn.Spread{
		Hop: func(x mat.Dense) (mat.Dense, error) {
			rows, err := exchange(ctx, t.line.group, new(wire.Coder), s, graph.Features{Dense: x}, "scores to smooth")
			if err != nil {
				return mat.Dense{}, err
			}
			return nn.Aggregate(nn.Sum{}, adj, rows).Dense, nil
		},
		Sum: func(x []float64) error {
			parts := make([]float32, 0, 2*len(x)) // each value and what rounding leaves of it
			for _, v := range x {
				parts = append(parts, float32(v), float32(v-float64(float32(v))))
			}
			if _, err := r.Reduce(ctx, uint64(t.at.Epoch), parts); err != nil {
				return err
			}
			for k := range x {
				x[k] = float64(parts[2*k]) + float64(parts[2*k+1])
			}
			return nil
		},
	}
}
