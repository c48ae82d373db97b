package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Messages is h_i = Σ_j m(z_j, w_ij) over the in-edges (j, i) for a message that its user writes,
// as wide as z: a layer of one's own in two functions, called edge by edge. Edges that are
// normalised by graph.Mean make of the sum a mean if the message is proportional to w. What the sum
// of neighbours cannot express takes an Aggregator of its own (Acc.State).
type Messages struct {
	// Message writes the message m of a source's row z along an edge of weight w.
	Message func(m, z []float32, w float32)
	// Gradient adds to dz, and to the gradients of Parameters, what the gradient dm of that message
	// brings.
	Gradient   func(dz, dm, z []float32, w float32)
	Parameters []*Param // that both read
}

// Params returns Parameters.
func (f *Messages) Params() []*Param { return f.Parameters }

// Dims returns 0, 0: any width is kept.
func (f *Messages) Dims() (in, out int) { return 0, 0 }

// IsSum returns false.
func (f *Messages) IsSum() bool { return false }

// NeedsSource returns true: Gradient reads z.
func (f *Messages) NeedsSource() bool { return true }

// Begin makes room for the rows of z, the destinations.
func (f *Messages) Begin(acc *Acc, z mat.Dense) { Sum{}.Begin(acc, z) }

// Add adds the messages of a block of sources z.
func (f *Messages) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Messages", acc.rows, g, z)
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

// End writes the sums to h.
func (f *Messages) End(h mat.Dense, acc *Acc) { h.CopyFrom(acc.sum) }

// EndGrad keeps dh, which must stay as it is until the last AddGrad.
func (f *Messages) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) { dacc.sum = dh }

// AddGrad adds to dz, and to the gradients of the parameters, what each message of the block
// brings.
func (f *Messages) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	f.edges(g, func(i, j int, w float32) { f.Gradient(dz.Row(j), dacc.sum.Row(i), z.Row(j), w) })
}

// BeginGrad has nothing to add: Begin read no value.
func (f *Messages) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {}
