package nn

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// dropout sets elements to 0 with probability P and divides the others by 1−P (Srivastava et al.,
// JMLR 2014). Which ones is a function of (tape's key, Name, global node ID, column): the same for
// any number of peers and any block, and nothing is stored.
type dropout struct {
	Name string
	P    float32 // in [0, 1)
}

// Params returns nil.
func (d *dropout) Params() []*Param { return nil }

// Dims returns 0, 0: any width.
func (d *dropout) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x. In inference y = x.
func (d *dropout) Forward(y, x mat.Dense, t *Tape) {
	if d.P == 0 || !t.training() {
		copyRows(y, x)
	}
	if !t.training() {
		return
	}
	e := entry{key: t.Key.FoldString(d.Name), nodes: t.Nodes}
	if d.P > 0 {
		each(loop{body: dropRows, rows: y.Rows, width: y.Cols, y: y, d: x, p: d.P, key: e.key, nodes: e.nodes})
	}
	t.push(e)
}

func dropRows(w *loop, _, lo, hi int) { w.dropout(lo, hi, false) }

// dropout drops the rows [lo, hi) of w.d into those of w.y.
func (w *loop) dropout(lo, hi int, add bool) {
	var keys [64]uint64
	for ; lo < hi; lo += len(keys) {
		n := min(hi-lo, len(keys))
		for k := range keys[:n] {
			keys[k] = uint64(w.key.Fold(node(w.nodes, lo+k)))
		}
		kernels.Dropout(keys[:n], w.p, lo, w.y.Cols, w.d.Data, w.d.Stride, w.y.Data, w.y.Stride, add)
	}
}

// Backward adds dy times the mask to dx.
func (d *dropout) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.pop()
	if dx.Empty() {
		return
	}
	if d.P == 0 {
		addRows(dx, dy)
		return
	}
	each(loop{body: dropGrads, rows: dy.Rows, width: dy.Cols, y: dx, d: dy, p: d.P, key: e.key, nodes: e.nodes})
}

func dropGrads(w *loop, _, lo, hi int) { w.dropout(lo, hi, true) }

// features is Forward into the tape's own memory, dense or sparse; x itself in inference. Of a
// sparse matrix the stored values are dropped as Forward would drop them, and the pattern stays.
func (d *dropout) features(x graph.Features, t *Tape) graph.Features {
	if !t.training() || d.P == 0 {
		t.push(entry{})
		return x
	}
	if x.Sparse == nil {
		y := t.raw(x.Dense.Rows, x.Dense.Cols)
		d.Forward(y, x.Dense, t)
		return graph.Features{Dense: y}
	}
	e := entry{key: t.Key.FoldString(d.Name), nodes: t.Nodes}
	s := *x.Sparse
	s.Val = t.arena.take(len(s.Val))
	each(loop{body: dropSparse, rows: s.Rows, width: 1 + len(s.Val)/max(s.Rows, 1), p: d.P, key: e.key, nodes: e.nodes, sparse: x.Sparse, val: s.Val})
	if len(s.Val) > 0 {
		t.dropped = append(t.dropped, dropped{at: &s.Val[0], from: x.Sparse.Val, key: e.key, nodes: e.nodes, p: d.P})
	}
	t.push(e)
	return graph.Features{Sparse: t.view(s)}
}

func dropSparse(w *loop, _, lo, hi int) {
	for i := lo; i < hi; i++ {
		col, val := w.sparse.Row(i)
		kernels.DropoutColumns(uint64(w.key.Fold(node(w.nodes, i))), w.p, col, val, w.val[w.sparse.RowPtr[i]:w.sparse.RowPtr[i+1]])
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

// transposed writes the values to val in the order of tr, whose columns are the rows of the input
// or the pieces that these are cut into. The mask is computed in that order: nothing is fetched
// from all over the values.
func (d *dropped) transposed(val []float32, tr *transpose, rows, pieces int, t *Tape) {
	t.keys = slices.Grow(t.keys[:0], rows)[:rows]
	for i := range rows {
		t.keys[i] = uint64(d.key.Fold(node(d.nodes, i/pieces)))
	}
	cols := len(tr.rowPtr) - 1
	each(loop{body: dropTransposed, rows: cols, width: 1 + len(val)/max(cols, 1), p: d.p, keys: t.keys, trans: tr, val: val, weight: tr.fixed(d.from)})
}

func dropTransposed(w *loop, _, lo, hi int) {
	for c := lo; c < hi; c++ {
		k, end := w.trans.rowPtr[c], w.trans.rowPtr[c+1]
		kernels.DropoutRows(w.keys, c, w.p, w.trans.col[k:end], w.weight[k:end], w.val[k:end])
	}
}
