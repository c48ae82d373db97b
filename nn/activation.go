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
func (ReLU) Backward(dx, dy mat.Dense, t *Tape) {
	y := t.pop().y
	if dx.Empty() {
		return
	}
	if y.Compact() && dy.Compact() && dx.Compact() {
		n := y.Rows * y.Cols
		kernels.ReLUGrad(y.Data[:n], dy.Data[:n], dx.Data[:n])
		return
	}
	for i := range dy.Rows {
		kernels.ReLUGrad(y.Row(i), dy.Row(i), dx.Row(i))
	}
}

// ELU is y = x where x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α = 1).
type ELU struct{}

// Params returns nil.
func (ELU) Params() []*Param { return nil }

// Dims returns 0, 0: any width.
func (ELU) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x, and keeps it.
func (ELU) Forward(y, x mat.Dense, t *Tape) {
	each(loop{body: eluRows, rows: x.Rows, width: 4 * x.Cols, x: x, y: y})
	t.push(entry{y: y})
}

// Backward adds dy·min(1, 1+y) to dx.
func (ELU) Backward(dx, dy mat.Dense, t *Tape) {
	y := t.pop().y
	if dx.Empty() {
		return
	}
	each(loop{body: eluGrads, rows: dy.Rows, width: dy.Cols, x: y, d: dy, y: dx})
}

func eluRows(w *loop, _, lo, hi int) {
	for i := lo; i < hi; i++ {
		xi := w.x.Row(i)
		yi := w.y.Row(i)[:len(xi)]
		for c, v := range xi {
			if v <= 0 {
				v = expm1(v)
			}
			yi[c] = v
		}
	}
}

func eluGrads(w *loop, _, lo, hi int) {
	for i := lo; i < hi; i++ {
		gi := w.d.Row(i)
		yi, di := w.x.Row(i)[:len(gi)], w.y.Row(i)[:len(gi)]
		for c, g := range gi {
			di[c] += float32(g * min(1, 1+yi[c]))
		}
	}
}
