// Package mat has row-major matrix views. It has shapes and addresses, and no arithmetic: that is package kernels.
package mat

import (
	"fmt"

	"github.com/heddle-gnn/heddle/kernels"
)

// Dense is a row-major view: element (i, j) is Data[i*Stride+j], 0 ≤ i < Rows, 0 ≤ j < Cols ≤ Stride.
// Fields and order are the same as in gonum's blas32.General, so one converts to the other.
// The zero value is the empty matrix.
type Dense struct {
	Rows, Cols, Stride int
	Data               []float32
}

// New returns a zeroed rows×cols matrix with Stride = cols.
func New(rows, cols int) Dense {
	return Dense{Rows: rows, Cols: cols, Stride: cols, Data: kernels.Room(rows * cols)}
}

// View returns data as a rows×cols matrix with Stride = cols. It panics if data is too short.
func View(rows, cols int, data []float32) Dense {
	return Dense{Rows: rows, Cols: cols, Stride: cols, Data: data[:rows*cols]}
}

// Empty reports whether m has no elements.
func (m Dense) Empty() bool { return m.Rows == 0 || m.Cols == 0 }

// Row returns row i, a slice of length Cols that shares m's memory.
func (m Dense) Row(i int) []float32 {
	lo := i * m.Stride
	return m.Data[lo : lo+m.Cols : lo+m.Cols]
}

// At returns element (i, j).
func (m Dense) At(i, j int) float32 { return m.Row(i)[j] }

// Set sets element (i, j) to v.
func (m Dense) Set(i, j int, v float32) { m.Row(i)[j] = v }

// RowRange returns the view of rows [lo, hi).
func (m Dense) RowRange(lo, hi int) Dense {
	v := Dense{Rows: hi - lo, Cols: m.Cols, Stride: m.Stride}
	if !v.Empty() {
		v.Data = m.Data[lo*m.Stride : (hi-1)*m.Stride+m.Cols]
	}
	return v
}

// ColRange returns the view of columns [lo, hi).
func (m Dense) ColRange(lo, hi int) Dense {
	v := Dense{Rows: m.Rows, Cols: hi - lo, Stride: m.Stride}
	if !v.Empty() {
		v.Data = m.Data[lo : (m.Rows-1)*m.Stride+hi]
	}
	return v
}

// Compact reports whether the rows of m follow one another without gaps.
func (m Dense) Compact() bool { return m.Stride == m.Cols || m.Rows <= 1 }

// Zero sets every element to 0.
func (m Dense) Zero() {
	if m.Compact() {
		clear(m.Data[:m.Rows*m.Cols])
		return
	}
	for i := range m.Rows {
		clear(m.Row(i))
	}
}

// Clone returns a compact copy.
func (m Dense) Clone() Dense {
	c := New(m.Rows, m.Cols)
	c.CopyFrom(m)
	return c
}

// CopyFrom copies src, which must have m's shape, into m.
func (m Dense) CopyFrom(src Dense) {
	if m.Rows != src.Rows || m.Cols != src.Cols {
		panic(fmt.Sprintf("mat: the source of a copy must be %d×%d (got %d×%d)", m.Rows, m.Cols, src.Rows, src.Cols))
	}
	if m.Compact() && src.Compact() {
		copy(m.Data[:m.Rows*m.Cols], src.Data)
		return
	}
	for i := range m.Rows {
		copy(m.Row(i), src.Row(i))
	}
}

// Select returns a compact matrix whose row k is row rows[k] of m.
func (m Dense) Select(rows []int32) Dense {
	s := New(len(rows), m.Cols)
	kernels.GatherRows(m.Cols, rows, m.Data, m.Stride, s.Data, s.Stride)
	return s
}

// EveryRow returns the numbers of n rows: 0, 1, …, n−1.
func EveryRow(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// Valid returns an error unless every element of m is inside Data.
func (m Dense) Valid() error {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols {
		return fmt.Errorf("a shape must have 0 ≤ rows and 0 ≤ columns ≤ stride (got %d×%d, stride %d)",
			m.Rows, m.Cols, m.Stride)
	}
	if !m.Empty() && len(m.Data) < (m.Rows-1)*m.Stride+m.Cols {
		return fmt.Errorf("%d×%d with stride %d must have %d values (got %d)",
			m.Rows, m.Cols, m.Stride, (m.Rows-1)*m.Stride+m.Cols, len(m.Data))
	}
	return nil
}
