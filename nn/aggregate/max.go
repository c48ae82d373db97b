package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Max is h_i = max_j z_j over the in-edges (j, i), element by element (Hamilton, Ying and Leskovec, NeurIPS 2017, eq.
// 3, whose ReLU(Linear) comes before it). The gradient goes to the first source with the maximum, whose index is kept.
// Weights are not read; a destination without edges gets zeros.
type Max struct{ plain }

// Begin allocates the rows of the destinations, of z's shape.
func (Max) Begin(acc *Acc, z mat.Dense) {
	acc.begin(z.Rows, z.Cols)
	acc.arg = ints(&acc.arg, z.Rows*z.Cols)
	lowest(acc.sum.Data, acc.arg)
}

// Add takes the maximum with a block of sources z.
func (Max) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	base := acc.add(g, "Max", z)
	h, n := acc.sum, z.Cols
	if base == 0 {
		kernels.SpMax(g.RowPtr, g.Col, n, z.Data, z.Stride, h.Data, h.Stride, acc.arg, n)
		return
	}
	here := ints(&acc.argNow, len(acc.arg)) // the kernel counts within this block
	for i := range here {
		here[i] = -1
	}
	kernels.SpMax(g.RowPtr, g.Col, n, z.Data, z.Stride, h.Data, h.Stride, here, n)
	for i, j := range here {
		if j >= 0 {
			acc.arg[i] = int32(base) + j
		}
	}
}

// End writes the maxima to h.
func (Max) End(h mat.Dense, acc *Acc) {
	for i := range h.Rows {
		hi, ai := h.Row(i), acc.arg[i*h.Cols:]
		for c, v := range acc.sum.Row(i) {
			if ai[c] < 0 {
				v = 0
			}
			hi[c] = v
		}
	}
}

// AddGrad adds dh_i to dz_j where source j of the block has destination i's maximum. z may be
// empty.
func (Max) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	lo := int32(acc.base(g))
	hi := lo + int32(g.NumSrc)
	for i := range dacc.sum.Rows {
		gi := dacc.sum.Row(i)
		for c, j := range acc.arg[i*len(gi) : (i+1)*len(gi)] {
			if lo <= j && j < hi {
				dz.Data[int(j-lo)*dz.Stride+c] += gi[c]
			}
		}
	}
}

// ints returns n uninitialized numbers in a buffer, which grows if it is too short.
func ints(buf *[]int32, n int) []int32 {
	if cap(*buf) < n {
		*buf = make([]int32, n)
	}
	return (*buf)[:n]
}
