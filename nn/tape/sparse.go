package tape

import (
	"slices"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// SparseGrad adds xᵀ·dy to dw, x being sparse rows, each of which stands for a row of an input, or
// for one of the pieces that it is cut into.
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

// The transposed product of sparse rows fetches a row of dy for each value. Of rows as full as this,
// and as wide, a dense product takes less time, the rows' spreading included.
const (
	fullShare = 25 // percent of the values that are stored
	fullWidth = 64
	fullBlock = 1 << 18 // values of the rows that are spread at a time: they stay in a core's cache
)

// What dropout leaves has a pattern of its own at each step, and is transposed at each: in blocks of so few rows that those of dy
// which they fetch, over and over, stay in a core's nearest cache, if each column then has some values in a block; else in one.
const (
	turnedUses = 8   // values of a column in a block
	turnedMost = 512 // rows of a block
)

// lostGrad is SparseGrad of what dropout has left.
func (t *Tape) lostGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	d, most := t.lost(x), min(kernels.BlockRows(dw.Cols), turnedMost)
	if x.RowPtr[x.Rows]*int64(most) < turnedUses*int64(x.Rows)*int64(x.Cols) {
		most = x.Rows
	}
	d.turn(x, most)
	if most == x.Rows {
		b := d.blocks[0]
		WeightedSum(dw, b.RowPtr, b.Col, b.Val, dy, true)
		return
	}
	kernels.SpMMBlocks(d.blocks, dw.Cols, dy.Data, dy.Stride, dw.Data, dw.Stride)
}

// turn transposes x, which d has left, in blocks of so many rows, once in a step if all gradients read the same.
func (d *dropped) turn(x *mat.Sparse, rows int) {
	if d.turned.Rows == x.Rows && d.of == rows {
		return
	}
	n := (x.Rows + rows - 1) / rows
	d.turned, d.of, d.blocks = *x, rows, slices.Grow(d.blocks[:0], n)[:n]
	d.turnedEnds = resize(d.turnedEnds, n*(x.Cols+2))
	d.turnedCol, d.turnedVal = resize(d.turnedCol, len(x.Col)), resize(d.turnedVal, len(x.Col))
	each(loop{body: turnRows, rows: n, width: max(1, len(x.Col)/n+x.Cols), dropped: d})
}

func turnRows(w *loop, lo, hi int) {
	for k := lo; k < hi; k++ {
		w.dropped.turnBlock(k)
	}
}

// turnBlock sorts the values of a block's rows by column, each column's by row.
func (d *dropped) turnBlock(k int) {
	x, first := &d.turned, k*d.of
	ptr := x.RowPtr[first : min(first+d.of, x.Rows)+1]
	from, to := ptr[0], ptr[len(ptr)-1]
	col, val := x.Col[from:to], x.Val[from:to]
	b := kernels.Block{First: first, Rows: len(ptr) - 1, RowPtr: d.turnedEnds[k*(x.Cols+2):][:x.Cols+2], Col: d.turnedCol[from:to], Val: d.turnedVal[from:to]}
	clear(b.RowPtr)
	next := b.RowPtr[2:] // of a column, so that ends are right when all have been placed
	for _, c := range col {
		next[c]++
	}
	for c := 1; c < len(next); c++ {
		next[c] += next[c-1]
	}
	next = b.RowPtr[1:]
	for i := range b.Rows {
		lo, hi := ptr[i]-from, ptr[i+1]-from
		row := val[lo:hi]
		for k, c := range col[lo:hi] {
			p := next[c]
			next[c] = p + 1
			b.Col[p], b.Val[p] = int32(i), row[k]
		}
	}
	b.RowPtr = b.RowPtr[:x.Cols+1]
	d.blocks[k] = b
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
