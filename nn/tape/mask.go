package tape

import (
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// DropRows writes the rows x to y, or adds them, after dropout with probability p: which elements it
// drops is a function of (key, global node ID, column). y may be x.
func DropRows(y, x mat.Dense, add bool, p float32, key rng.Key, nodes []int64) {
	each(loop{body: dropRows, rows: x.Rows, width: x.Cols, y: y, x: x, add: add, p: p, key: key, nodes: nodes})
}

func dropRows(w *loop, lo, hi int) {
	var keys [64]uint64
	for ; lo < hi; lo += len(keys) {
		n := min(hi-lo, len(keys))
		for k := range keys[:n] {
			keys[k] = uint64(w.key.Fold(NodeID(w.nodes, lo+k)))
		}
		kernels.Dropout(keys[:n], w.p, lo, w.y.Cols, w.x.Data, w.x.Stride, w.y.Data, w.y.Stride, w.add)
	}
}

// DropSparse returns x with stored values dropped as DropRows would drop them, until Reset; the
// pattern stays.
func (t *Tape) DropSparse(x *mat.Sparse, p float32, key rng.Key, nodes []int64) *mat.Sparse {
	s := *x
	s.Val = t.arena.take(len(s.Val))
	each(loop{
		body: dropSparse, rows: s.Rows, width: 1 + len(s.Val)/max(s.Rows, 1),
		p: p, key: key, nodes: nodes, sparse: x, val: s.Val,
	})
	if len(s.Val) > 0 {
		t.dropped = append(t.dropped, dropped{at: &s.Val[0], from: x.Val, key: key, nodes: nodes, p: p})
	}
	return t.View(s)
}

func dropSparse(w *loop, lo, hi int) {
	for i := lo; i < hi; i++ {
		col, val := w.sparse.Row(i)
		key := uint64(w.key.Fold(NodeID(w.nodes, i)))
		kernels.DropoutColumns(key, w.p, col, val, w.val[w.sparse.RowPtr[i]:w.sparse.RowPtr[i+1]])
	}
}

// dropped is the values of a sparse input after dropout: new at every step, at the same address.
type dropped struct {
	at    *float32
	from  []float32 // the values before it, the same at every step
	key   rng.Key
	nodes []int64
	p     float32
}

// lost returns what dropout has made of the values of x, or zero where they are the caller's own.
func (t *Tape) lost(x *mat.Sparse) dropped {
	for _, d := range t.dropped {
		if len(x.Val) > 0 && d.at == &x.Val[0] {
			return d
		}
	}
	return dropped{}
}

// transposed writes the values to val in the order of tr, whose columns are the rows of the input
// or the pieces that these are cut into. The mask is computed in that order: nothing is fetched
// from all over the values.
func (d *dropped) transposed(val []float32, tr *Transpose, rows, pieces int, t *Tape) {
	t.keys = slices.Grow(t.keys[:0], rows)[:rows]
	for i := range rows {
		t.keys[i] = uint64(d.key.Fold(NodeID(d.nodes, i/pieces)))
	}
	cols := len(tr.RowPtr) - 1
	each(loop{
		body: dropTransposed, rows: cols, width: 1 + len(val)/max(cols, 1),
		p: d.p, keys: t.keys, trans: tr, val: val, weight: tr.Values(d.from),
	})
}

func dropTransposed(w *loop, lo, hi int) {
	for c := lo; c < hi; c++ {
		k, end := w.trans.RowPtr[c], w.trans.RowPtr[c+1]
		kernels.DropoutRows(w.keys, c, w.p, w.trans.Col[k:end], w.weight[k:end], w.val[k:end])
	}
}
