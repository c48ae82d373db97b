package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Sum is h_i = Σ_j w_ij z_j over the in-edges (j, i). How the edges are weighted (graph.Normalise)
// makes it the aggregator of GCN (Kipf and Welling, ICLR 2017), of GraphSAGE's mean (Hamilton, Ying
// and Leskovec, NeurIPS 2017) and of GIN (Xu et al., ICLR 2019). A destination without edges gets
// zeros.
type Sum struct{ plain }

// Properties returns that it is a sum: its gradient is the transposed sum.
func (Sum) Properties() Properties { return Properties{Sum: true} }

// Add adds a block of sources z.
func (Sum) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Sum", acc.sum.Rows, g, z)
	sumInto(acc.sum, g, z, true)
}

// AddGrad adds Σ_i w_ij dh_i to each source's dz_j. z may be empty.
func (Sum) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	sumGrad(dz, g, dacc.sum, acc.patterns(), true)
}

// sumInto writes the weighted sums of g over the rows z to h, or adds them.
func sumInto(h mat.Dense, g *graph.CSR, z mat.Dense, add bool) {
	tape.WeightedSum(h, g.RowPtr, g.Col, g.Weight, z, add)
}

// sumGrad writes the transposed sums over dh to dz, or adds them.
func sumGrad(dz mat.Dense, g *graph.CSR, dh mat.Dense, ps *tape.Patterns, add bool) {
	if len(g.Col) == 0 {
		if !add {
			dz.Zero()
		}
		return
	}
	tr := ps.Transpose(g.RowPtr, g.Col, g.NumSrc)
	tape.WeightedSum(dz, tr.RowPtr, tr.Col, tr.Values(g.Weight), dh, add)
}
