package nn

import "github.com/heddle-gnn/heddle/mat"

// transposes remembers the transposed patterns of the graphs and sparse inputs that gradients flow
// back through. With a transpose a gradient is a product whose output rows are split between cores,
// in the same order each time.
type transposes struct {
	of   map[pattern]*transpose
	cuts map[pattern]*relationCut // blocks of typed edges
	rows map[pattern]*piecePtr    // of sparse rows that are cut into pieces
	now  int
	used bool // since the last age
}

// pattern names a sparse matrix by the memory of its columns.
type pattern struct {
	col        *int32
	rows, cols int
}

type transpose struct {
	rowPtr []int64
	col    []int32
	perm   []int32 // place in the original of each value
	val    []float32
	valOf  *float32 // the values that val was taken from
	used   int
}

// get returns the transpose of the pattern, which must have at least one column entry.
func (ts *transposes) get(rowPtr []int64, col []int32, cols int) *transpose {
	p := pattern{&col[0], len(rowPtr) - 1, cols}
	tr := ts.of[p]
	if tr == nil {
		n := rowPtr[p.rows]
		s := mat.Sparse{Rows: p.rows, Cols: cols, RowPtr: rowPtr, Col: col[:n], Val: make([]float32, n)}
		perm := make([]int32, n)
		st := s.Transpose(perm)
		tr = &transpose{rowPtr: st.RowPtr, col: st.Col, perm: perm, val: st.Val}
		if ts.of == nil {
			ts.of = map[pattern]*transpose{}
		}
		ts.of[p] = tr
	}
	tr.used, ts.used = ts.now, true
	return tr
}

// fixed returns val in the transpose's order; val (nil: ones) never changes, so the order is kept.
func (tr *transpose) fixed(val []float32) []float32 {
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

// age ends a step: it drops what the step did not use, for a sampler's blocks are new at every
// step.
func (ts *transposes) age() {
	if !ts.used {
		return
	}
	for p, tr := range ts.of {
		if tr.used < ts.now {
			delete(ts.of, p)
		}
	}
	for p, c := range ts.cuts {
		if c.used < ts.now {
			delete(ts.cuts, p)
		}
	}
	for p, c := range ts.rows {
		if c.used < ts.now {
			delete(ts.rows, p)
		}
	}
	ts.now, ts.used = ts.now+1, false
}
