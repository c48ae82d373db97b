package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// activation is a function of each value, whose gradient is one of what it puts out.
type activation interface {
	Rows
	gradOf(y, dy, dx []float32) // adds to dx the gradient, y being what was put out
}

// relu is y = max(x, 0).
type relu struct{}

// Params returns nil.
func (relu) Params() []*tape.Param { return nil }

// Dims returns 0, 0: any width.
func (relu) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (relu) Forward(y, x mat.Dense, t *tape.Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		kernels.ReLU(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			kernels.ReLU(x.Row(i), y.Row(i))
		}
	}
	t.Push(tape.Entry{Y: y})
}

// Backward adds dy where y > 0 to dx.
func (relu) Backward(dx, dy mat.Dense, t *tape.Tape) { actGrad(relu{}, t.Pop().Y, dy, dx) }

func (relu) gradOf(y, dy, dx []float32) { kernels.ReLUGrad(y, dy, dx) }

// elu is y = x where x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α =
// 1).
type elu struct{}

// Params returns nil.
func (elu) Params() []*tape.Param { return nil }

// Dims returns 0, 0: any width.
func (elu) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (elu) Forward(y, x mat.Dense, t *tape.Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		kernels.ELU(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			kernels.ELU(x.Row(i), y.Row(i))
		}
	}
	t.Push(tape.Entry{Y: y})
}

// Backward adds dy·min(1, 1+y) to dx.
func (elu) Backward(dx, dy mat.Dense, t *tape.Tape) { actGrad(elu{}, t.Pop().Y, dy, dx) }

func (elu) gradOf(y, dy, dx []float32) { kernels.ELUGrad(y, dy, dx) }

// actGrad adds to dx, unless it is empty, the gradient of an activation that put out y.
func actGrad(act activation, y, dy, dx mat.Dense) {
	if dx.Empty() {
		return
	}
	if y.Compact() && dy.Compact() && dx.Compact() {
		n := y.Rows * y.Cols
		act.gradOf(y.Data[:n], dy.Data[:n], dx.Data[:n])
		return
	}
	for i := range dy.Rows {
		act.gradOf(y.Row(i), dy.Row(i), dx.Row(i))
	}
}
