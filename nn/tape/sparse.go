package tape

import (
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// SparseGrad adds xᵀ·dy to dw. Each of the sparse rows x is a row of an input, or one of the pieces
// that the input is cut into.
func (t *Tape) SparseGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) { t.sparseGrad(dw, x, dy, false) }

// sparseGrad is SparseGrad. If last, only such gradients read what dropout has left of x from now on.
func (t *Tape) sparseGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense, last bool) {
	nnz := x.RowPtr[x.Rows]
	switch {
	case nnz == 0:
	case dw.Cols >= fullWidth && nnz >= fullShare*int64(x.Rows)*int64(x.Cols)/100:
		if d := t.lost(x); d != nil {
			d.mend()
		}
		t.fullGrad(dw, x, dy)
	case t.Lost(x):
		t.lostGrad(dw, x, dy, last)
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
func (t *Tape) lostGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense, last bool) {
	d, most := t.lost(x), x.Rows
	near, tall := kernels.BlockRows(dw.Cols)
	for _, rows := range []int{tall, near} {
		if rows < most && x.RowPtr[x.Rows]*int64(rows) >= turnedUses*int64(x.Rows)*int64(x.Cols) {
			most = rows
		}
	}
	blocks := t.turn(d, x, most, last)
	if len(blocks) == 1 {
		rowPtr, col, val := blocks[0].CSR()
		WeightedSum(dw, rowPtr, col, val, dy, true)
		return
	}
	kernels.SpMMBlocks(blocks, dw.Cols, dy.Data, dy.Stride, dw.Data, dw.Stride)
}

// turn returns x, which d has left, transposed in blocks of rows, once in a step for all gradients that read d's rows
// or the first of them. If last, the blocks take the memory of what d has left.
func (t *Tape) turn(d *dropped, x *mat.Sparse, rows int, last bool) []kernels.Block {
	c, whole := cuts{rows, x.Rows, x.Rows}, cuts{rows, d.first, d.Rows}
	l := loop{body: turnRows, sparse: x, dropped: d}
	if last && &x.RowPtr[0] == &d.ends[0] && (x.Rows == d.first || x.Rows == d.Rows) { // not cut into pieces
		if d.cuts != whole {
			l.turned = t.patterns.turned(d.from, whole)
		}
		if d.cuts == whole || l.turned != nil {
			l.body, c = dropRowsTurned, whole
		}
	}
	if d.cuts != c {
		if l.turned == nil {
			d.mend()
		}
		l.rows = c.until(c.all)
		d.cuts, d.blocks = c, slices.Grow(d.blocks[:0], l.rows)[:l.rows]
		d.lent, d.spent = l.turned != nil, l.turned != nil
		l.width = max(1, len(x.Col)/l.rows+x.Cols)
		each(l)
	}
	return d.blocks[:c.until(x.Rows)]
}

// turnRows transposes blocks [lo, hi) of the rows that dropout has left.
func turnRows(w *loop, lo, hi int) {
	x, d := w.sparse, w.dropped
	for k := lo; k < hi; k++ {
		first, end := d.cuts.begin(k), d.cuts.begin(k+1)
		d.blocks[k].Transpose(first, x.RowPtr[first:end+1], x.Col, x.Val, x.Cols)
	}
}

// dropRowsTurned writes over the values that dropout has left: these are read no more.
func dropRowsTurned(w *loop, lo, hi int) {
	d := w.dropped
	for k := lo; k < hi; k++ {
		from := int(d.ends[d.cuts.begin(k)]) + k*kernels.DropMore
		to := int(d.ends[d.cuts.begin(k+1)]) + (k+1)*kernels.DropMore
		d.blocks[k].Drop(&w.turned[k], d.p, d.mask, d.col[from:to:to], d.val[from:to:to])
	}
}

// cuts are the blocks that all rows are cut into: of a number of rows each, one of them ending at row end.
type cuts struct{ of, end, all int }

// until returns how many blocks the rows before row n have, which is end or all.
func (c cuts) until(n int) int { return (min(n, c.end)+c.of-1)/c.of + (max(n-c.end, 0)+c.of-1)/c.of }

// begin returns the first row of block k, all if there is none.
func (c cuts) begin(k int) int {
	if head := c.until(c.end); k >= head {
		return min(c.end+(k-head)*c.of, c.all)
	}
	return k * c.of
}

// fullGrad is SparseGrad of rows that are nearly dense, some of them at a time.
func (t *Tape) fullGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	m := t.Mark()
	most := min(x.Rows, max(64, fullBlock/x.Cols))
	block := t.Raw(most, x.Cols)
	for lo := 0; lo < x.Rows; lo += most {
		rows := block.RowRange(0, min(most, x.Rows-lo))
		each(loop{body: spreadRows, rows: rows.Rows, width: x.Cols, y: rows, sparse: x, first: lo})
		addWeightGrad(dw, rows, dy.RowRange(lo, lo+rows.Rows), false)
	}
	t.Release(m)
}

// spreadRows writes rows [lo, hi) of a block of sparse rows as dense rows.
func spreadRows(w *loop, lo, hi int) {
	for i := lo; i < hi; i++ {
		w.sparse.Spread(w.y.Row(i), w.first+i)
	}
}
