package tape

import (
	"runtime"
	"slices"

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
		m := t.Mark()
		WeightedSum(dw, tr.RowPtr, tr.Col, tr.Values(x.Val), t.Operand(dy), true)
		t.Release(m)
	}
}

// The transposed product of sparse rows fetches a row of dy for each value. Of rows as full as this,
// and as wide, a dense product takes less time, the rows' spreading included.
const (
	fullShare = 25 // percent of the values that are stored
	fullWidth = 64
	fullBlock = 1 << 18 // values of the rows that are spread at a time: they stay in a core's cache
)

// What dropout leaves has a pattern of its own at each step, and is transposed at each: in blocks of
// so few rows that the rows of dy which they fetch, over and over, stay in a core's cache, if there
// are many values of each column; else in one.
const (
	turnedRows = 512
	turnedUses = 32 // values of a column
)

// turned is rows [first, first+n) of sparse rows, transposed.
type turned struct {
	first, n int
	ends     []int64
	col      []int32
	val      []float32
}

// lostGrad is SparseGrad of what dropout has left: as many blocks are transposed at a time as there
// are cores, in memory that stays in their caches.
func (t *Tape) lostGrad(dw mat.Dense, x *mat.Sparse, dy mat.Dense) {
	d, most := t.lost(x), x.Rows
	if x.RowPtr[x.Rows]*turnedRows >= turnedUses*int64(x.Rows)*int64(x.Cols) {
		most = min(turnedRows, x.Rows)
	}
	n := min((x.Rows+most-1)/most, runtime.GOMAXPROCS(0))
	d.blocks = slices.Grow(d.blocks[:0], n)[:n]
	m := t.Mark()
	dys := t.Operand(dy)
	for lo := 0; lo < x.Rows; {
		k := 0
		for ; lo < x.Rows && k < n; k, lo = k+1, lo+most {
			d.blocks[k].first, d.blocks[k].n = lo, min(most, x.Rows-lo)
		}
		if whole := most == x.Rows; !whole || d.of != x.Rows {
			each(loop{body: turnRows, rows: k, width: BandLen, sparse: x, turned: d.blocks})
			if d.of = 0; whole {
				d.of = x.Rows
			}
		}
		for _, b := range d.blocks[:k] {
			WeightedSum(dw, b.ends, b.col, b.val, dys.RowRange(b.first, b.first+b.n), true)
		}
	}
	t.Release(m)
}

func turnRows(w *loop, lo, hi int) {
	for k := lo; k < hi; k++ {
		w.turned[k].turn(w.sparse)
	}
}

// turn sorts the values of b's rows of x by column, each column's by row.
func (b *turned) turn(x *mat.Sparse) {
	ptr := x.RowPtr[b.first : b.first+b.n+1]
	col, val := x.Col[ptr[0]:ptr[b.n]], x.Val[ptr[0]:ptr[b.n]]
	b.ends, b.col, b.val = resize(b.ends, x.Cols+2), resize(b.col, len(col)), resize(b.val, len(col))
	clear(b.ends)
	next := b.ends[2:] // of a column, so that ends are right when all have been placed
	for _, c := range col {
		next[c]++
	}
	for c := 1; c < len(next); c++ {
		next[c] += next[c-1]
	}
	next = b.ends[1:]
	for i := range b.n {
		lo, hi := ptr[i]-ptr[0], ptr[i+1]-ptr[0]
		row := val[lo:hi]
		for k, c := range col[lo:hi] {
			p := next[c]
			next[c] = p + 1
			b.col[p], b.val[p] = int32(i), row[k]
		}
	}
	b.ends = b.ends[:x.Cols+1]
}

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
