package nn

import (
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newGIN is y_i = ReLU((x_i + Σ_j x_j)·W₁ + b₁)·W₂ + b₂ over a graph with self-loops: x R×In, y
// R×Out. It is GIN-0, the variant without ε that its authors found to generalise best (Xu et al.,
// ICLR 2019, eq. 4.1 and §7).
func newGIN(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Agg: aggregate.Sum{}, Nbr: tape.NewLinear(name+".nbr", s.In, s.Out, true, key),
		Post: tape.Stack{tape.NewActivation("relu"), tape.NewLinear(name+".post", s.Out, s.Out, !s.BatchNorm, key)},
	}
}
