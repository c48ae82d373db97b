package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Messages is h_i = Σ_j m(z_j, w_ij) over the in-edges (j, i) for a message that its user writes,
// as wide as z: a layer of one's own in two functions, called edge by edge. Edges that are
// normalised by graph.Mean make of the sum a mean if the message is proportional to w. What the sum
// of neighbours cannot express takes an Aggregator of its own (Acc.State).
type Messages struct {
	plain
	// Message writes the message m of a source's row z along an edge of weight w.
	Message func(m, z []float32, w float32)
	// Gradient adds to dz, and to the gradients of Parameters, what the gradient dm of that message
	// brings.
	Gradient   func(dz, dm, z []float32, w float32)
	Parameters []*tape.Param // that both read
}

// Params returns Parameters.
func (f *Messages) Params() []*tape.Param { return f.Parameters }

// Properties returns that Gradient reads z.
func (f *Messages) Properties() Properties { return Properties{NeedsSource: true} }

// Add adds the messages of a block of sources z.
func (f *Messages) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Messages", acc.sum.Rows, g, z)
	m := acc.takeEdges(z.Cols)
	f.edges(g, func(i, j int, w float32) {
		f.Message(m, z.Row(j), w)
		row := acc.sum.Row(i)
		for c, v := range m {
			row[c] += v
		}
	})
}

// edges calls do for every edge.
func (f *Messages) edges(g *graph.CSR, do func(i, j int, w float32)) {
	for i := range g.NumDst {
		col, weight := g.Row(i)
		for k, j := range col {
			w := float32(1)
			if weight != nil {
				w = weight[k]
			}
			do(i, int(j), w)
		}
	}
}

// AddGrad adds to dz, and to the gradients of the parameters, what each message of the block
// brings.
func (f *Messages) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	f.edges(g, func(i, j int, w float32) { f.Gradient(dz.Row(j), dacc.sum.Row(i), z.Row(j), w) })
}
