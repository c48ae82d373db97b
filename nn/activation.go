package nn

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// ReLU is y = max(x, 0).
type ReLU struct{}

// Params returns nil.
func (ReLU) Params() []*Param { return nil }

// Dims returns 0, 0: any width.
func (ReLU) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (ReLU) Forward(y, x mat.Dense, t *Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		kernels.ReLU(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			kernels.ReLU(x.Row(i), y.Row(i))
		}
	}
	t.push(entry{y: y})
}

// Backward adds dy where y > 0 to dx.
func (ReLU) Backward(dx, dy mat.Dense, t *Tape) { actGrad(ReLU{}, t.pop().y, dy, dx) }

// ELU is y = x where x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α = 1).
type ELU struct{}

// Params returns nil.
func (ELU) Params() []*Param { return nil }

// Dims returns 0, 0: any width.
func (ELU) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (ELU) Forward(y, x mat.Dense, t *Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		kernels.ELU(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			kernels.ELU(x.Row(i), y.Row(i))
		}
	}
	t.push(entry{y: y})
}

// Backward adds dy·min(1, 1+y) to dx.
func (ELU) Backward(dx, dy mat.Dense, t *Tape) { actGrad(ELU{}, t.pop().y, dy, dx) }

// actGrad adds to dx, unless it is empty, the gradient of an activation that put out y.
func actGrad(act Rows, y, dy, dx mat.Dense) {
	if dx.Empty() {
		return
	}
	grad := kernels.ReLUGrad
	if _, ok := act.(ELU); ok {
		grad = kernels.ELUGrad
	}
	if y.Compact() && dy.Compact() && dx.Compact() {
		n := y.Rows * y.Cols
		grad(y.Data[:n], dy.Data[:n], dx.Data[:n])
		return
	}
	for i := range dy.Rows {
		grad(y.Row(i), dy.Row(i), dx.Row(i))
	}
}
