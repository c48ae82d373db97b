package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// activation is a function of each value, whose gradient is one of what it puts out.
type activation struct {
	of     func(x, y []float32)
	gradOf func(y, dy, dx []float32) // adds to dx the gradient, y being what was put out
}

// newActivation returns the activation of a name that LayerSpec.Act may have, nil for "".
func newActivation(name string) *activation {
	switch name {
	case "relu": // y = max(x, 0)
		return &activation{kernels.ReLU, kernels.ReLUGrad}
	case "elu": // y = x where x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α = 1)
		return &activation{kernels.ELU, kernels.ELUGrad}
	}
	return nil
}

// Params returns nil.
func (a *activation) Params() []*tape.Param { return nil }

// Dims returns 0, 0: any width.
func (a *activation) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (a *activation) Forward(y, x mat.Dense, t *tape.Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		a.of(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			a.of(x.Row(i), y.Row(i))
		}
	}
	t.Push(tape.Entry{Y: y})
}

// Backward adds to dx the gradient of what Forward took in.
func (a *activation) Backward(dx, dy mat.Dense, t *tape.Tape) { a.grad(dx, t.Pop().Y, dy) }

// grad adds to dx, unless it is empty, the gradient where y was put out.
func (a *activation) grad(dx, y, dy mat.Dense) {
	if dx.Empty() {
		return
	}
	if y.Compact() && dy.Compact() && dx.Compact() {
		n := y.Rows * y.Cols
		a.gradOf(y.Data[:n], dy.Data[:n], dx.Data[:n])
		return
	}
	for i := range dy.Rows {
		a.gradOf(y.Row(i), dy.Row(i), dx.Row(i))
	}
}
