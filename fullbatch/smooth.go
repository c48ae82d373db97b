package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/smooth"
)

// spread is what Correct & Smooth needs of the graph: each hop, the halo's rows of C values travel once, exactly.
func (t *Trainer) spread(ctx context.Context, r comm.Reducer) smooth.Spread {
	sums := 0
	adj, exact := t.full.Normalised(graph.Symmetric, false), t.line.sender.Exact()
	return smooth.Spread{
		Hop: func(x mat.Dense) (mat.Dense, error) {
			rows, err := exact.Halo(ctx, graph.Features{Dense: x}, false, "logits to smooth")
			if err != nil {
				return mat.Dense{}, err
			}
			return aggregate.Features(aggregate.Sum{}, adj, rows).Dense, nil
		},
		Sum: func(x []float64) error {
			parts := make([]float32, 0, 2*len(x)) // each value and what rounding leaves of it
			for _, v := range x {
				parts = append(parts, float32(v), float32(v-float64(float32(v))))
			}
			id := t.id(ofSmoothing, sums)
			sums++
			if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Update: parts}); err != nil {
				return err
			}
			for k := range x {
				x[k] = float64(parts[2*k]) + float64(parts[2*k+1])
			}
			return nil
		},
	}
}
