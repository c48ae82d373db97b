package mat

import (
	"fmt"
	"slices"
)

// Sparse is a matrix with few non-zeros (CSR): row i has the columns Col[RowPtr[i]:RowPtr[i+1]], ascending and without
// repeats, and the values Val at the same indices.
type Sparse struct {
	Rows, Cols int
	RowPtr     []int64 // len Rows+1, RowPtr[0] = 0
	Col        []int32
	Val        []float32
}

// NNZ returns the number of stored values.
func (s *Sparse) NNZ() int { return len(s.Col) }

// Row returns the columns and values of row i; both share s's memory.
func (s *Sparse) Row(i int) ([]int32, []float32) {
	lo, hi := s.RowPtr[i], s.RowPtr[i+1]
	return s.Col[lo:hi:hi], s.Val[lo:hi:hi]
}

// First returns the first n rows, in the same memory.
func (s *Sparse) First(n int) Sparse {
	end := s.RowPtr[n]
	return Sparse{Rows: n, Cols: s.Cols, RowPtr: s.RowPtr[:n+1], Col: s.Col[:end], Val: s.Val[:end]}
}

// Select returns a copy whose row k is row rows[k] of s.
func (s *Sparse) Select(rows []int32) *Sparse {
	out := &Sparse{Rows: len(rows), Cols: s.Cols, RowPtr: make([]int64, len(rows)+1)}
	for k, i := range rows {
		out.RowPtr[k+1] = out.RowPtr[k] + s.RowPtr[i+1] - s.RowPtr[i]
	}
	out.Col = make([]int32, out.RowPtr[len(rows)])
	out.Val = make([]float32, out.RowPtr[len(rows)])
	for k, i := range rows {
		col, val := s.Row(int(i))
		copy(out.Col[out.RowPtr[k]:], col)
		copy(out.Val[out.RowPtr[k]:], val)
	}
	return out
}

// Dense returns s with its zeros written out.
func (s *Sparse) Dense() Dense {
	d := New(s.Rows, s.Cols)
	for i := range s.Rows {
		s.Spread(d.Row(i), i)
	}
	return d
}

// Spread writes row i to y, [Cols], with its zeros.
func (s *Sparse) Spread(y []float32, i int) {
	clear(y)
	col, val := s.Row(i)
	for k, j := range col {
		y[j] = val[k]
	}
}

// Transpose returns sᵀ. If perm is not nil, it must have length NNZ; perm[k] becomes the index in s of the transpose's
// k-th value. A transpose of other values with the same pattern then needs no second sort.
func (s *Sparse) Transpose(perm []int32) *Sparse {
	t := &Sparse{
		Rows: s.Cols, Cols: s.Rows,
		RowPtr: make([]int64, s.Cols+1), Col: make([]int32, s.NNZ()), Val: make([]float32, s.NNZ()),
	}
	for _, j := range s.Col {
		t.RowPtr[j+1]++
	}
	for j := range s.Cols {
		t.RowPtr[j+1] += t.RowPtr[j]
	}
	next := slices.Clone(t.RowPtr[:s.Cols])
	for i := range s.Rows {
		for k := s.RowPtr[i]; k < s.RowPtr[i+1]; k++ {
			j := s.Col[k]
			t.Col[next[j]], t.Val[next[j]] = int32(i), s.Val[k]
			if perm != nil {
				perm[next[j]] = int32(k)
			}
			next[j]++
		}
	}
	return t
}

// Valid returns an error that names the first broken invariant, or nil.
func (s *Sparse) Valid() error {
	if s.Rows < 0 || s.Cols < 0 || len(s.RowPtr) != s.Rows+1 || s.RowPtr[0] != 0 {
		return fmt.Errorf("sparse %d×%d must have %d row pointers, the first of them 0 (got %d)",
			s.Rows, s.Cols, s.Rows+1, len(s.RowPtr))
	}
	for i := range s.Rows {
		if s.RowPtr[i+1] < s.RowPtr[i] || s.RowPtr[i+1] > int64(len(s.Col)) {
			return fmt.Errorf("sparse row %d must end between %d and %d (got %d)",
				i, s.RowPtr[i], len(s.Col), s.RowPtr[i+1])
		}
	}
	if s.RowPtr[s.Rows] != int64(len(s.Col)) || len(s.Col) != len(s.Val) {
		return fmt.Errorf("columns and values of a sparse matrix must be %d, where its rows end (got %d and %d)",
			s.RowPtr[s.Rows], len(s.Col), len(s.Val))
	}
	for i := range s.Rows {
		col, _ := s.Row(i)
		for k, j := range col {
			if j < 0 || int(j) >= s.Cols || k > 0 && col[k-1] >= j {
				return fmt.Errorf("sparse row %d column %d is out of [0, %d) or not ascending", i, j, s.Cols)
			}
		}
	}
	return nil
}
