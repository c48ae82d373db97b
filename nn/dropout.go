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
	if t == nil {
		return
	}
	e := entry{key: t.Key.FoldString(d.Name), nodes: t.Nodes}
	if d.P > 0 {
		m := t.arena.at
		keep := t.raw(1, y.Cols).Row(0)
		for i := range y.Rows {
			kernels.DropoutMask(uint64(e.key.Fold(node(e.nodes, i))), d.P, keep)
			yi := y.Row(i)
			for c, k := range keep {
				yi[c] *= k
			}
		}
		t.arena.release(m)
	}
	t.push(e)
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
	m := t.arena.at
	keep := t.raw(1, dy.Cols).Row(0)
	for i := range dy.Rows {
		kernels.DropoutMask(uint64(e.key.Fold(node(e.nodes, i))), d.P, keep)
		di := dx.Row(i)
		for c, g := range dy.Row(i) {
			di[c] += float32(g * keep[c])
		}
	}
	t.arena.release(m)
}

// features is Forward into the tape's own memory, dense or sparse; x itself in inference. Of a sparse matrix the
// stored values are dropped as Forward would drop them, and the pattern stays.
func (d *Dropout) features(x graph.Features, t *Tape) graph.Features {
	if t == nil || d.P == 0 {
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
	for i := range s.Rows {
		lo, hi := s.RowPtr[i], s.RowPtr[i+1]
		dropColumns(e.key.Fold(node(e.nodes, i)), d.P, s.Col[lo:hi], x.Sparse.Val[lo:hi], s.Val[lo:hi])
	}
	if len(s.Val) > 0 {
		t.dropped = append(t.dropped, &s.Val[0])
	}
	t.push(e)
	return graph.Features{Sparse: t.view(s)}
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
