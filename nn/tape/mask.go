package tape

import (
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// DropRows writes the rows x to y, or adds them, after dropout with probability p: which elements it
// drops is a function of (key, global node ID, column). y may be x.
func DropRows(y, x mat.Dense, add bool, p float32, key rng.Key, nodes []int64) {
	each(loop{body: dropRows, rows: x.Rows, width: x.Cols, y: y, x: x, add: add, p: p, key: key, nodes: nodes})
}

// dropRows is DropRows for rows [lo, hi).
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
	d.loop = loop{rows: x.Rows, width: 1 + len(x.Val)/max(x.Rows, 1), p: p, key: key, nodes: nodes, sparse: x,
		ends: d.ends, mask: d.mask}
	l := d.loop
	l.body = countKept
	each(l)
	for i := range x.Rows {
		d.ends[i+1] += d.ends[i]
	}
	n := int(d.ends[x.Rows])
	near, _ := kernels.BlockRows(math.MaxInt) // blocks, which will be in the same memory, have at least as many rows
	room := n + kernels.DropMore*(x.Rows/near+2)
	d.col, d.val = resize(d.col, room), resize(d.val, room)
	d.from, d.p, d.first, d.cuts = x, p, x.Rows, cuts{}
	d.pack()
	d.Sparse = mat.Sparse{Rows: x.Rows, Cols: x.Cols, RowPtr: d.ends, Col: d.col[:n], Val: d.val[:n]}
	t.dropped = append(t.dropped, d)
	return &d.Sparse
}

// countKept marks and counts the values of rows [lo, hi) that dropout keeps.
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

// packKept writes these values and their columns one after another.
func packKept(w *loop, lo, hi int) {
	x := w.sparse
	kernels.DropoutPack(w.p, lo, x.RowPtr[lo:hi+1], x.Col, x.Val, w.mask, w.ends[lo:hi+1], w.places, w.val)
}

// dropped is the part of a sparse input that dropout keeps in this step.
type dropped struct {
	mat.Sparse
	from *mat.Sparse // the input, dropped with probability p
	p    float32
	mask kernels.Mask // which values of from are kept
	ends []int64
	col  []int32
	val  []float32
	loop loop // over from

	first  int // rows that some map has read without the others; all rows if none has
	cuts   cuts
	blocks []kernels.Block // transposed, as a gradient reads them
	lent   bool            // they are in col and val,
	spent  bool            // which they have overwritten in this step
}

// pack writes the values that are left, and their columns.
func (d *dropped) pack() {
	l := d.loop
	l.body, l.places, l.val = packKept, d.col, d.val
	each(l)
	d.spent = false
}

// Mend restores all sparse rows after dropout: gradients of linear maps overwrite them.
func (t *Tape) Mend() {
	for _, d := range t.dropped {
		d.mend()
	}
}

// mend restores d after blocks have used its memory.
func (d *dropped) mend() {
	if d.lent {
		clear(d.blocks[:cap(d.blocks)])
		d.lent, d.cuts = false, cuts{}
	}
	if d.spent {
		d.pack()
	}
}

func (d *dropped) Bytes() int64 {
	n := 8*int64(cap(d.ends)) + 4*int64(cap(d.col)+cap(d.val)) + 2*int64(cap(d.mask))
	for _, b := range d.blocks[:cap(d.blocks)] {
		if !d.lent {
			n += b.Bytes()
		}
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

// lost returns what dropout has left that x is a part of, or nil.
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
