package nn

import (
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newGCN is the graph convolution y_i = Σ_j ã_ij x_j·W + b over a graph normalised by graph.GCN: x
// R×In, y R×Out (Kipf and Welling, ICLR 2017, eq. 2).
func newGCN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{Agg: aggregate.Sum{}, Nbr: tape.NewLinear(name+".nbr", s.In, s.Out, !s.BatchNorm, key)}
}
