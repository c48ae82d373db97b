package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Dropout sets elements to 0 with probability P and divides the others by 1−P (Srivastava et al., JMLR 2014). Which
// ones is a function of (tape's key, Name, global node ID, column): the same for any number of peers and any block,
// and nothing is stored.
type Dropout struct {
	Name string
	P    float32 // in [0, 1)
}

// Params returns nil.
func (d *Dropout) Params() []*Param { return nil }

// Dims returns 0, 0: any width.
func (d *Dropout) Dims() (in, out int) { return 0, 0 }

// Forward writes y, which may be x. In inference y = x.
func (d *Dropout) Forward(y, x mat.Dense, t *Tape) {
	copyRows(y, x)
	if !t.training() {
		return
	}
	e := entry{key: t.Key.FoldString(d.Name), nodes: t.Nodes}
	if d.P > 0 {
		w := loop{body: dropRows, rows: y.Rows, width: y.Cols, y: y, p: d.P, key: e.key, nodes: e.nodes}
		m := t.arena.at
		w.sums = t.raw(w.bands(), y.Cols) // of each band: a row's mask
		each(w)
		t.arena.release(m)
	}
	t.push(e)
}

func dropRows(w *loop, band, lo, hi int) {
	keep := w.sums.Row(band)
	for i := lo; i < hi; i++ {
		kernels.DropoutMask(uint64(w.key.Fold(node(w.nodes, i))), w.p, keep)
		kernels.Mul(keep, w.y.Row(i))
	}
}

// Backward adds dy times the mask to dx.
func (d *Dropout) Backward(dx, dy mat.Dense, t *Tape) {
	e := t.pop()
	if dx.Empty() {
		return
	}
	if d.P == 0 {
		addRows(dx, dy)
		return
	}
	w := loop{body: dropGrads, rows: dy.Rows, width: dy.Cols, y: dx, d: dy, p: d.P, key: e.key, nodes: e.nodes}
	m := t.arena.at
	w.sums = t.raw(w.bands(), dy.Cols)
	each(w)
	t.arena.release(m)
}

func dropGrads(w *loop, band, lo, hi int) {
	keep := w.sums.Row(band)
	for i := lo; i < hi; i++ {
		kernels.DropoutMask(uint64(w.key.Fold(node(w.nodes, i))), w.p, keep)
		kernels.Mul(w.d.Row(i), keep)
		kernels.Add(keep, w.y.Row(i))
	}
}

// features is Forward into the tape's own memory, dense or sparse; x itself in inference. Of a sparse matrix the
// stored values are dropped as Forward would drop them, and the pattern stays.
func (d *Dropout) features(x graph.Features, t *Tape) graph.Features {
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
		t.dropped = append(t.dropped, &s.Val[0])
	}
	t.push(e)
	return graph.Features{Sparse: t.view(s)}
}

func dropSparse(w *loop, _, lo, hi int) {
	for i := lo; i < hi; i++ {
		col, val := w.sparse.Row(i)
		dropColumns(w.key.Fold(node(w.nodes, i)), w.p, col, val, w.val[w.sparse.RowPtr[i]:w.sparse.RowPtr[i+1]])
	}
}

// dropColumns writes y = x times the mask that kernels.DropoutMask has at the given columns, for rows of which few
// columns are stored.
func dropColumns(key rng.Key, p float32, col []int32, x, y []float32) {
	limit, up := int64(min(float64(p)*0x1p32, math.MaxUint32)), math.Float32bits(1/(1-p))
	lo, hi := uint32(key), uint32(key>>32)
	x, y = x[:len(col)], y[:len(col)]
	for k, c := range col {
		z := (lo + uint32(c)*0x9e3779b9) ^ hi
		z = (z ^ z>>16) * 0x7feb352d
		z = (z ^ z>>15) * 0x846ca68b
		z ^= z >> 16
		drop := uint32((int64(z) - limit) >> 63) // all ones where z < limit: no branch on a random bit
		y[k] = x[k] * math.Float32frombits(up&^drop)
	}
}
