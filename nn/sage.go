package nn

import (
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newSAGE is GraphSAGE's mean, y_i = x_i·W₁ + mean_j x_j·W₂ + b over a graph normalised by
// graph.Mean: x R×In, y R×Out (Hamilton, Ying and Leskovec, NeurIPS 2017, algorithm 1). Over graph.Plain it is
// sage-sum, y_i = x_i·W₁ + Σ_j w_ij x_j·W₂ + b (Morris et al., AAAI 2019, eq. 3).
func newSAGE(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Self: tape.NewLinear(name+".self", s.In, s.Out, false, key),
		Agg:  aggregate.Sum{}, Nbr: tape.NewLinear(name+".nbr", s.In, s.Out, !s.BatchNorm, key),
	}
}

// newSAGEPool is GraphSAGE's pooling, y_i = x_i·W₁ + max_j ReLU(x_j·P + c)·W₂ + b: x R×In, y and
// the pooled rows R×Out (the same, eq. 3).
func newSAGEPool(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{
		Pre: tape.NewLinear(name+".pre", s.In, s.Out, true, key), PreAct: tape.NewActivation("relu"),
		Self: tape.NewLinear(name+".self", s.In, s.Out, false, key),
		Agg:  aggregate.Max{}, Nbr: tape.NewLinear(name+".nbr", s.Out, s.Out, !s.BatchNorm, key),
	}
}
