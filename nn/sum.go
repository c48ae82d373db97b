package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Sum is h_i = Σ_j w_ij z_j over the in-edges (j, i). How the edges are weighted (graph.Normalise)
// makes it the aggregator of GCN (Kipf and Welling, ICLR 2017), of GraphSAGE's mean (Hamilton, Ying
// and Leskovec, NeurIPS 2017) and of GIN (Xu et al., ICLR 2019). A destination without edges gets
// zeros.
type Sum struct{}

// Params returns nil.
func (Sum) Params() []*Param { return nil }

// Dims returns 0, 0: any width is kept.
func (Sum) Dims() (in, out int) { return 0, 0 }

// IsSum returns true.
func (Sum) IsSum() bool { return true }

// NeedsSource returns false: the gradient is the transposed sum.
func (Sum) NeedsSource() bool { return false }

// Begin makes room for the rows of z, the destinations.
func (Sum) Begin(acc *Acc, z mat.Dense) {
	acc.begin(z.Rows)
	acc.sum = acc.take(0, z.Rows, z.Cols)
	acc.sum.Zero()
}

// Add adds a block of sources z.
func (Sum) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Sum", acc.rows, g, z)
	sumInto(acc.sum, g, z, true)
}

// End writes the sums to h.
func (Sum) End(h mat.Dense, acc *Acc) { h.CopyFrom(acc.sum) }

// EndGrad keeps dh, which must stay as it is until the last AddGrad.
func (Sum) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) { dacc.sum = dh }

// AddGrad adds Σ_i w_ij dh_i to each source's dz_j. z may be empty.
func (Sum) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	sumGrad(dz, g, dacc.sum, acc.transposes())
}

// BeginGrad has nothing to add: Begin read no value.
func (Sum) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {}

func sumInto(h mat.Dense, g *graph.CSR, z mat.Dense, add bool) {
	kernels.SpMM(g.RowPtr, g.Col, g.Weight, z.Cols, z.Data, z.Stride, h.Data, h.Stride, add)
}

func sumGrad(dz mat.Dense, g *graph.CSR, dh mat.Dense, ts *transposes) {
	if len(g.Col) == 0 {
		return
	}
	tr := ts.get(g.RowPtr, g.Col, g.NumSrc)
	kernels.SpMM(tr.rowPtr, tr.col, tr.fixed(g.Weight), dh.Cols, dh.Data, dh.Stride, dz.Data, dz.Stride, true)
}
