package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// maximum is h_i = max_j z_j over the in-edges (j, i), element by element (Hamilton, Ying and
// Leskovec, NeurIPS 2017, eq. 3, whose ReLU(Linear) stands before it). The gradient goes to the
// first source that has the maximum. Weights are not read; a destination without edges gets zeros.
type maximum struct{}

// Params returns nil.
func (maximum) Params() []*Param { return nil }

// Dims returns 0, 0: any width is kept.
func (maximum) Dims() (in, out int) { return 0, 0 }

// IsSum returns false.
func (maximum) IsSum() bool { return false }

// NeedsSource returns false: the places of the maxima are kept.
func (maximum) NeedsSource() bool { return false }

// Begin makes room for the rows of z, the destinations.
func (maximum) Begin(acc *Acc, z mat.Dense) {
	acc.begin(z.Rows)
	acc.sum = acc.take(0, z.Rows, z.Cols)
	for i := range acc.sum.Data {
		acc.sum.Data[i] = float32(math.Inf(-1))
	}
	acc.arg = ints(&acc.arg, z.Rows*z.Cols)
	for i := range acc.arg {
		acc.arg[i] = -1
	}
}

// Add takes the maximum with a block of sources z.
func (maximum) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	base := acc.add(g, "Max", z)
	h, n := acc.sum, z.Cols
	if base == 0 {
		kernels.SpMax(g.RowPtr, g.Col, n, z.Data, z.Stride, h.Data, h.Stride, acc.arg, n)
		return
	}
	here := ints(&acc.argNow, len(acc.arg)) // the kernel knows this block's places only
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
func (maximum) End(h mat.Dense, acc *Acc) {
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

// EndGrad keeps dh, which must stay as it is until the last AddGrad.
func (maximum) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) { dacc.sum = dh }

// AddGrad adds dh_i to dz_j where source j of the block has destination i's maximum. z may be
// empty.
func (maximum) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
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

// BeginGrad has nothing to add: Begin read no value.
func (maximum) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {}

func ints(buf *[]int32, n int) []int32 {
	if cap(*buf) < n {
		*buf = make([]int32, n)
	}
	return (*buf)[:n]
}
