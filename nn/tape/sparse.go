package tape

import "github.com/heddle-gnn/heddle/mat"

// SparseGrad adds xᵀ·dy to dw, x being the sparse rows of an entry, each of which stands for a row
// of an input, or for one of so many pieces that it is cut into.
func (t *Tape) SparseGrad(dw mat.Dense, e *Entry, pieces int, dy mat.Dense) {
	x := e.Sparse
	nnz := x.RowPtr[x.Rows]
	switch {
	case nnz == 0:
		return
	case dw.Cols >= fullWidth && nnz >= fullShare*int64(x.Rows)*int64(x.Cols)/100:
		t.fullGrad(dw, x, dy)
		return
	}
	tr := t.patterns.Transpose(x.RowPtr, x.Col, x.Cols)
	m := t.Mark()
	var val []float32
	if e.lost.at == nil {
		val = tr.Values(x.Val)
	} else {
		val = t.arena.take(len(tr.perm))
		e.lost.transposed(val, tr, x.Rows, pieces, t)
	}
	WeightedSum(dw, tr.RowPtr, tr.Col, val, t.Operand(dy), true)
	t.Release(m)
}

// The transposed product of sparse rows fetches a row of dy for each value, from all over. Of rows
// as full as this, and as wide, a dense product takes less time, the rows' spreading included.
const (
	fullShare = 20 // percent of the values that are stored
	fullWidth = 64
	fullBlock = 1 << 18 // values of the rows that are spread at a time: they stay in a core's cache
)

// fullGrad is SparseGrad of rows that are nearly dense, some of them at a time.
func (t *Tape) fullGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	m := t.Mark()
	most := min(x.Rows, max(64, fullBlock/x.Cols))
	block, d := t.Raw(most, x.Cols), t.Operand(dy)
	for lo := 0; lo < x.Rows; lo += most {
		rows := block.RowRange(0, min(most, x.Rows-lo))
		each(loop{body: spreadRows, rows: rows.Rows, width: x.Cols, y: rows, sparse: x, first: lo})
		at := t.Mark()
		AddWeightGrad(dw, t.Operand(rows), d.RowRange(lo, lo+rows.Rows))
		t.Release(at)
	}
	t.Release(m)
}

func spreadRows(w *loop, lo, hi int) {
	for i := lo; i < hi; i++ {
		w.sparse.Spread(w.y.Row(i), w.first+i)
	}
}
