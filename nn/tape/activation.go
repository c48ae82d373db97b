package tape

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Activation is a function of each value, whose gradient is a function of its output.
type Activation struct {
	of     func(x, y []float32)
	gradOf func(y, dy, dx []float32) // writes the gradient to dx, which may be dy; y is the output
}

// NewActivation returns the activation of a name that LayerSpec.Act may have, nil for "".
func NewActivation(name string) *Activation {
	switch name {
	case "relu": // y = max(x, 0)
		return &Activation{kernels.ReLU, kernels.ReLUGrad}
	case "elu": // y = x where x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α = 1)
		return &Activation{kernels.ELU, kernels.ELUGrad}
	}
	return nil
}

// Params returns nil.
func (a *Activation) Params() []*Param { return nil }

// Dims returns 0, 0, because any width is kept.
func (a *Activation) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (a *Activation) Forward(y, x mat.Dense, t *Tape) {
	if x.Compact() && y.Compact() {
		n := x.Rows * x.Cols
		a.of(x.Data[:n], y.Data[:n])
	} else {
		for i := range x.Rows {
			a.of(x.Row(i), y.Row(i))
		}
	}
	a.Keep(y, t)
}

// Keep does what Forward does if y has been computed.
func (a *Activation) Keep(y mat.Dense, t *Tape) { t.Push(Entry{Y: y}) }

// Backward adds the gradient of Forward's input to dx.
func (a *Activation) Backward(dx, dy mat.Dense, t *Tape) {
	y := t.Pop().Y
	if dx.Empty() {
		return
	}
	mark := t.Mark()
	band := min(max(1, BandLen/dx.Cols), dx.Rows)
	d := t.Raw(band, dx.Cols)
	for lo := 0; lo < dx.Rows; lo += band {
		hi := min(lo+band, dx.Rows)
		d := d.RowRange(0, hi-lo)
		a.Grad(d, y.RowRange(lo, hi), dy.RowRange(lo, hi))
		AddTo(dx.RowRange(lo, hi), d)
	}
	t.Release(mark)
}

// Grad writes the gradient to dx, which may be dy; y is the output.
func (a *Activation) Grad(dx, y, dy mat.Dense) {
	if y.Compact() && dy.Compact() && dx.Compact() {
		n := y.Rows * y.Cols
		a.gradOf(y.Data[:n], dy.Data[:n], dx.Data[:n])
		return
	}
	for i := range dy.Rows {
		a.gradOf(y.Row(i), dy.Row(i), dx.Row(i))
	}
}
