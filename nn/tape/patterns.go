package tape

import (
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Patterns remembers what was computed from the patterns of graphs and sparse inputs: above all
// their transposes, with which a gradient is a product whose output rows are split between cores,
// in the same order each time.
type Patterns struct {
	of   map[pattern]*remembered
	now  int
	used bool // since the last age
}

// pattern names a sparse matrix by the memory of its columns, and what was computed from it by its
// type.
type pattern struct {
	kind       any
	col        *int32
	rows, cols int
}

type remembered struct {
	value any
	used  int
}

// Remember returns what compute makes of the pattern, which must have at least one column entry. It
// calls it once, as long as every step asks for it. Nil Patterns remember nothing.
func Remember[T any](ps *Patterns, rowPtr []int64, col []int32, cols int, compute func() *T) *T {
	if ps == nil {
		return compute()
	}
	p := pattern{(*T)(nil), &col[0], len(rowPtr) - 1, cols}
	r := ps.of[p]
	if r == nil {
		if ps.of == nil {
			ps.of = map[pattern]*remembered{}
		}
		r = &remembered{value: compute()}
		ps.of[p] = r
	}
	r.used, ps.used = ps.now, true
	return r.value.(*T)
}

// age ends a step: it drops what the step did not use, for a sampler's blocks are new at every
// step.
func (ps *Patterns) age() {
	if !ps.used {
		return
	}
	for p, r := range ps.of {
		if r.used < ps.now {
			delete(ps.of, p)
		}
	}
	ps.now, ps.used = ps.now+1, false
}

// Transpose is the transposed pattern of a sparse matrix.
type Transpose struct {
	RowPtr []int64
	Col    []int32
	perm   []int32 // index in the original of each value
	val    []float32
	valOf  *float32 // the values that val was taken from
}

// Transpose returns the transpose of the pattern, which must have at least one column entry.
func (ps *Patterns) Transpose(rowPtr []int64, col []int32, cols int) *Transpose {
	return Remember(ps, rowPtr, col, cols, func() *Transpose {
		rows := len(rowPtr) - 1
		n := rowPtr[rows]
		s := mat.Sparse{Rows: rows, Cols: cols, RowPtr: rowPtr, Col: col[:n], Val: make([]float32, n)}
		perm := make([]int32, n)
		st := s.Transpose(perm)
		return &Transpose{RowPtr: st.RowPtr, Col: st.Col, perm: perm, val: st.Val}
	})
}

// Places returns the index in the original of each value of the transpose.
func (tr *Transpose) Places() []int32 { return tr.perm }

// Values returns val in the transpose's order. val (nil = ones) never changes, so the order is kept.
func (tr *Transpose) Values(val []float32) []float32 {
	if val == nil {
		return nil
	}
	if tr.valOf != &val[0] {
		for k, p := range tr.perm {
			tr.val[k] = val[p]
		}
		tr.valOf = &val[0]
	}
	return tr.val
}

// turnedPattern is a sparse matrix transposed in blocks of rows.
type turnedPattern struct {
	since  int // the step that it was first seen in
	cuts   cuts
	valOf  *float32
	blocks []kernels.Turned // nil if there are none yet, or the matrix has too many values
}

// turned returns the transpose of x in the given blocks, from the second step on that has x. Before, it returns nil: a
// sampler's rows are in one step only.
func (ps *Patterns) turned(x *mat.Sparse, c cuts) []kernels.Turned {
	tr := Remember(ps, x.RowPtr, x.Col, x.Cols, func() *turnedPattern { return &turnedPattern{since: ps.now} })
	if tr.since == ps.now {
		return nil
	}
	if tr.cuts.of == 0 {
		tr.cuts, tr.valOf = c, &x.Val[0]
		for k := range c.until(c.all) {
			first, end := c.begin(k), c.begin(k+1)
			b, ok := kernels.NewTurned(first, x.RowPtr[first:end+1], x.Col, x.Val, x.Cols)
			if !ok {
				tr.blocks = nil
				break
			}
			tr.blocks = append(tr.blocks, b)
		}
	}
	if tr.cuts != c || tr.valOf != &x.Val[0] {
		return nil
	}
	return tr.blocks
}
