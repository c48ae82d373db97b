package fullbatch

import (
	"context"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// spread is what Correct & Smooth needs of the graph: each hop, the halo's rows of C values travel once, exactly.
func (t *Trainer) spread(ctx context.Context, r comm.Reducer) nn.Spread {
	sums := 0
	adj, exact := t.full.Normalised(graph.Symmetric), t.line.sender.Exact()
	return nn.Spread{
		Hop: func(x mat.Dense) (mat.Dense, error) {
			rows, err := exact.Halo(ctx, graph.Features{Dense: x}, false, "logits to smooth")
			if err != nil {
				return mat.Dense{}, err
			}
			return aggregate.Features(aggregate.Sum{}, adj, rows).Dense, nil
		},
		Sum: func(x []float64) error {
			id := t.ID(ofSmoothing, sums)
			sums++
			return comm.SumReals(ctx, r, id, x)
		},
	}
}
