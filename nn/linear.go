package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Linear is y = x·W + b: x R×in, dense or sparse, y R×out.
type Linear struct {
	W *Param // in×out
	B *Param // 1×out, or nil: no bias
}

// newLinear returns a Linear whose weight is drawn from key and its name (Glorot, uniform) and
// whose bias is 0.
func newLinear(name string, in, out int, bias bool, key rng.Key) *Linear {
	l := &Linear{W: glorot(name+".weight", in, out, in, out, key)}
	if bias {
		l.B = newParam(name+".bias", 1, out, 0)
	}
	return l
}

// Params returns the weight and, where there is one, the bias.
func (l *Linear) Params() []*Param {
	if l.B == nil {
		return []*Param{l.W}
	}
	return []*Param{l.W, l.B}
}

// Dims returns the widths of x and y.
func (l *Linear) Dims() (in, out int) { return l.W.Value.Rows, l.W.Value.Cols }

// Forward writes y = x·W + b and keeps x, which must stay as it is until Backward.
func (l *Linear) Forward(y, x mat.Dense, t *Tape) {
	l.product(y, graph.Features{Dense: x}, false, l.B, t)
}

// forwardSparse is Forward of a sparse x. Its Backward takes an empty dx.
func (l *Linear) forwardSparse(y mat.Dense, x *mat.Sparse, t *Tape) {
	l.product(y, graph.Features{Sparse: x}, false, l.B, t)
}

// Backward adds dy·Wᵀ to dx, xᵀ·dy to the weight's gradient and the column sums of dy to the
// bias's.
func (l *Linear) Backward(dx, dy mat.Dense, t *Tape) {
	biasGrad(l.B, dy)
	l.productGrad(dx, dy, t)
}

// product writes y = x·W, or adds it where add, and adds b, if there is one.
func (l *Linear) product(y mat.Dense, x graph.Features, add bool, b *Param, t *Tape) {
	in, out := l.Dims()
	checkShape("Linear", y, x.Rows(), out)
	if x.Cols() != in {
		panic(shapeFault("columns of Linear's input", x.Cols(), in))
	}
	w := l.W.Value
	if s := x.Sparse; s != nil {
		kernels.SpMM(s.RowPtr, s.Col, s.Val, out, w.Data, w.Stride, y.Data, y.Stride, add)
		addBias(y, b)
		if t.training() {
			t.push(entry{sparse: s, lost: t.lost(s)})
		}
		return
	}
	kernels.GemmNNBias(y.Rows, out, in, x.Dense.Data, x.Dense.Stride, w.Data, w.Stride, y.Data, y.Stride, add, biasRow(b))
	t.push(entry{x: x.Dense})
}

func (l *Linear) weights() (w, b *Param) { return l.W, l.B }

// productGrad is the backward pass of product.
func (l *Linear) productGrad(dx, dy mat.Dense, t *Tape) {
	if l.weightGrad(dy, t).Empty() || dx.Empty() {
		return
	}
	l.inputGrad(dx, dy, true)
}

// weightGrad adds xᵀ·dy to the weight's gradient and returns x, empty where it is sparse.
func (l *Linear) weightGrad(dy mat.Dense, t *Tape) mat.Dense {
	in, out := l.Dims()
	e := t.pop()
	dw := l.W.Grad
	if e.sparse != nil {
		sparseGrad(dw, e.sparse, &e.lost, 1, dy, t)
		return mat.Dense{}
	}
	kernels.GemmTN(in, out, dy.Rows, e.x.Data, e.x.Stride, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
	return e.x
}

// inputGrad makes dy·Wᵀ of dx, or adds it.
func (l *Linear) inputGrad(dx, dy mat.Dense, add bool) {
	in, out := l.Dims()
	w := l.W.Value
	kernels.GemmNT(dy.Rows, in, out, dy.Data, dy.Stride, w.Data, w.Stride, dx.Data, dx.Stride, add)
}

// backwardOver is Backward with the gradient of x in the memory of x, which nobody else may read
// any more.
func (l *Linear) backwardOver(dy mat.Dense, t *Tape) mat.Dense {
	biasGrad(l.B, dy)
	x := l.weightGrad(dy, t)
	l.inputGrad(x, dy, false)
	return x
}

// sparseGrad adds xᵀ·dy to dw, where x has been through a dropout, or not, in rows that are cut
// into pieces.
func sparseGrad(dw mat.Dense, x *mat.Sparse, lost *dropped, pieces int, dy mat.Dense, t *Tape) {
	nnz := x.RowPtr[x.Rows]
	switch {
	case nnz == 0:
		return
	case dw.Cols >= fullWidth && nnz >= fullShare*int64(x.Rows)*int64(x.Cols)/100:
		fullGrad(dw, x, dy, t)
		return
	}
	tr := t.trans.get(x.RowPtr, x.Col, x.Cols)
	m := t.arena.at
	var val []float32
	if lost.at == nil {
		val = tr.fixed(x.Val)
	} else {
		val = t.arena.take(len(tr.perm))
		lost.transposed(val, tr, x.Rows, pieces, t)
	}
	kernels.SpMM(tr.rowPtr, tr.col, val, dw.Cols, dy.Data, dy.Stride, dw.Data, dw.Stride, true)
	t.arena.release(m)
}

// The transposed product of sparse rows fetches a row of dy for each value, from all over. Of rows
// as full as this, and as wide, a dense product takes less time, the rows' spreading included.
const (
	fullShare = 20 // percent of the values that are stored
	fullWidth = 64
	fullBlock = 1 << 18 // values of the rows that are spread at a time: they stay in a core's cache
)

// fullGrad is sparseGrad of rows that are nearly dense, some of them at a time.
func fullGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense, t *Tape) {
	m := t.arena.at
	most := min(x.Rows, max(64, fullBlock/x.Cols))
	block := t.raw(most, x.Cols)
	for lo := 0; lo < x.Rows; lo += most {
		rows := block.RowRange(0, min(most, x.Rows-lo))
		d := dy.RowRange(lo, lo+rows.Rows)
		each(loop{body: spreadRows, rows: rows.Rows, width: x.Cols, y: rows, sparse: x, first: lo})
		kernels.GemmTN(x.Cols, dw.Cols, rows.Rows, rows.Data, rows.Stride, d.Data, d.Stride, dw.Data, dw.Stride, true)
	}
	t.arena.release(m)
}

func spreadRows(w *loop, _, lo, hi int) {
	for i := lo; i < hi; i++ {
		w.sparse.Spread(w.y.Row(i), w.first+i)
	}
}

// biasRow returns the values of a bias, nil where there is none.
func biasRow(b *Param) []float32 {
	if b == nil {
		return nil
	}
	return b.Value.Row(0)
}

func addBias(y mat.Dense, b *Param) {
	if b == nil {
		return
	}
	row := b.Value.Row(0)
	for i := range y.Rows {
		kernels.Add(row, y.Row(i))
	}
}

func biasGrad(b *Param, dy mat.Dense) {
	if b != nil {
		kernels.SumColumns(dy.Rows, dy.Data, dy.Stride, b.Grad.Row(0), true)
	}
}
