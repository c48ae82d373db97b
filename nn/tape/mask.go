package tape

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
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

// DropSparse returns x with stored values dropped as DropRows would drop them, until Reset: those
// that are left, so that products and gradients pass over the others.
func (t *Tape) DropSparse(x *mat.Sparse, p float32, key rng.Key, nodes []int64) *mat.Sparse {
	d := Next[dropped](t)
	d.ends = resize(d.ends, x.Rows+1)
	d.ends[0] = 0
	d.mask = kernels.NewMask(d.mask, x.RowPtr[x.Rows], x.Rows)
	l := loop{body: countKept, rows: x.Rows, width: 1 + len(x.Val)/max(x.Rows, 1), p: p, key: key, nodes: nodes,
		sparse: x, ends: d.ends, mask: d.mask}
	each(l)
	for i := range x.Rows {
		d.ends[i+1] += d.ends[i]
	}
	n := int(d.ends[x.Rows])
	d.col, d.val = resize(d.col, n), resize(d.val, n)
	l.body, l.places, l.val = packKept, d.col, d.val
	each(l)
	d.turned, d.from, d.p = mat.Sparse{}, x, p
	d.Sparse = mat.Sparse{Rows: x.Rows, Cols: x.Cols, RowPtr: d.ends, Col: d.col, Val: d.val}
	t.dropped = append(t.dropped, d)
	return &d.Sparse
}

func countKept(w *loop, lo, hi int) {
	var keys [64]uint64
	x := w.sparse
	for ; lo < hi; lo += len(keys) {
		n := min(hi-lo, len(keys))
		for k := range keys[:n] {
			keys[k] = uint64(w.key.Fold(NodeID(w.nodes, lo+k)))
		}
		kernels.DropoutKept(keys[:n], w.p, lo, x.RowPtr[lo:lo+n+1], x.Col, x.Val, w.mask, w.ends[lo+1:lo+n+1])
	}
}

func packKept(w *loop, lo, hi int) {
	x := w.sparse
	kernels.DropoutPack(w.p, lo, x.RowPtr[lo:hi+1], x.Col, x.Val, w.mask, w.ends[lo:hi+1], w.places, w.val)
}

// dropped is what dropout has left of a sparse input at this step.
type dropped struct {
	mat.Sparse
	from *mat.Sparse // what it was of, with probability p
	p    float32
	mask kernels.Mask // which values of from are left
	ends []int64
	col  []int32
	val  []float32

	turned mat.Sparse      // what has been transposed: the rows, or pieces of them
	of     int             // rows of a block
	blocks []kernels.Block // as a gradient reads them
}

func (d *dropped) Bytes() int64 {
	n := 8*int64(cap(d.ends)) + 4*int64(cap(d.col)+cap(d.val)) + 2*int64(cap(d.mask))
	for _, b := range d.blocks[:cap(d.blocks)] {
		n += b.Bytes()
	}
	return n
}

// resize returns a slice of n values in the memory of s, if that is large enough. New memory has a
// few values more, because dropout does not leave as many at each step.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		s = make([]T, n, n+n/16+256)
	}
	return s[:n]
}

// Lost reports whether dropout has left x. Only this step then has x's pattern.
func (t *Tape) Lost(x *mat.Sparse) bool { return t.lost(x) != nil }

func (t *Tape) lost(x *mat.Sparse) *dropped {
	if t == nil || len(x.Col) == 0 {
		return nil
	}
	for _, d := range t.dropped {
		if len(d.col) > 0 && &d.col[0] == &x.Col[0] {
			return d
		}
	}
	return nil
}
