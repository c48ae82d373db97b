package tape

import (
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// SparseGrad adds xᵀ·dy to dw. Each of the sparse rows x is a row of an input, or one of the pieces
// that the input is cut into.
func (t *Tape) SparseGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	nnz := x.RowPtr[x.Rows]
	switch {
	case nnz == 0:
	case dw.Cols >= fullWidth && nnz >= fullShare*int64(x.Rows)*int64(x.Cols)/100:
		t.fullGrad(dw, x, dy)
	case t.Lost(x):
		t.lostGrad(dw, x, dy)
	default:
		tr := t.patterns.Transpose(x.RowPtr, x.Col, x.Cols)
		WeightedSum(dw, tr.RowPtr, tr.Col, tr.Values(x.Val), dy, true)
	}
}

// The transposed product of sparse rows fetches a row of dy for each value. For rows as full as
// this, and as wide, a dense product takes less time, the rows' spreading included.
const (
	fullShare = 25 // percent of the values that are stored
	fullWidth = 64
	fullBlock = 1 << 18 // values of the rows that are spread at a time: they stay in a core's cache
)

// The rows that dropout leaves have a new pattern at each step, and are transposed at each step. Blocks have so few
// rows that the rows of dy, which they fetch over and over, stay in a core's L1 or L2. If a column would then have
// too few values in a block, all rows are one block.
const turnedUses = 8 // values of a column in a block

// lostGrad is SparseGrad of what dropout has left.
func (t *Tape) lostGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	d, most := t.lost(x), x.Rows
	near, tall := kernels.BlockRows(dw.Cols)
	for _, rows := range []int{tall, near} {
		if rows < most && x.RowPtr[x.Rows]*int64(rows) >= turnedUses*int64(x.Rows)*int64(x.Cols) {
			most = rows
		}
	}
	t.turn(d, x, most)
	if most == x.Rows {
		rowPtr, col, val := d.blocks[0].CSR()
		WeightedSum(dw, rowPtr, col, val, dy, true)
		return
	}
	kernels.SpMMBlocks(d.blocks, dw.Cols, dy.Data, dy.Stride, dw.Data, dw.Stride)
}

// turn transposes x, which d has left, in blocks of rows, once in a step if all gradients read the same.
func (t *Tape) turn(d *dropped, x *mat.Sparse, rows int) {
	if d.turned.Rows == x.Rows && d.of == rows {
		return
	}
	n := (x.Rows + rows - 1) / rows
	d.turned, d.of, d.blocks = *x, rows, slices.Grow(d.blocks[:0], n)[:n]
	l := loop{body: turnRows, rows: n, width: max(1, len(x.Col)/n+x.Cols), dropped: d}
	if x.Rows == d.from.Rows { // not cut into pieces
		if l.turned = t.patterns.turned(d.from, rows); l.turned != nil {
			l.body = dropRowsTurned
		}
	}
	each(l)
}

func turnRows(w *loop, lo, hi int) {
	d := w.dropped
	for k := lo; k < hi; k++ {
		first := k * d.of
		d.blocks[k].Transpose(first, d.turned.RowPtr[first:min(first+d.of, d.turned.Rows)+1], d.turned.Col,
			d.turned.Val, d.turned.Cols)
	}
}

func dropRowsTurned(w *loop, lo, hi int) {
	for k := lo; k < hi; k++ {
		w.dropped.blocks[k].Drop(&w.turned[k], w.dropped.p, w.dropped.mask)
	}
}

// fullGrad is SparseGrad of rows that are nearly dense, some of them at a time.
func (t *Tape) fullGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	m := t.Mark()
	most := min(x.Rows, max(64, fullBlock/x.Cols))
	block := t.Raw(most, x.Cols)
	for lo := 0; lo < x.Rows; lo += most {
		rows := block.RowRange(0, min(most, x.Rows-lo))
		each(loop{body: spreadRows, rows: rows.Rows, width: x.Cols, y: rows, sparse: x, first: lo})
		AddWeightGrad(dw, rows, dy.RowRange(lo, lo+rows.Rows))
	}
	t.Release(m)
}

func spreadRows(w *loop, lo, hi int) {
	for i := lo; i < hi; i++ {
		w.sparse.Spread(w.y.Row(i), w.first+i)
	}
}
