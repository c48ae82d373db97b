package nn

import (
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// newMLP is y_i = x_i·W + b, without edges: x R×In, y R×Out.
func newMLP(name string, s LayerSpec, key rng.Key) Conv {
	return Conv{Self: tape.NewLinear(name+".self", s.In, s.Out, !s.BatchNorm, key)}
}
