// Package aggregate has the aggregations of graph neural networks over the rows of a node's neighbours, with
// hand-written backward passes: sums, maxima, attention, messages. Only this package reads edges.
package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Aggregator is an operator over edges. Its law: Add over two disjoint sets of sources equals Add over their union, up
// to rounding; so a whole graph and a sequence of blocks give the same rows and the same gradients.
//
// Forward: Begin with the destinations' own rows z, Add for each block and the rows z of its sources, End writes the
// aggregate h. Backward: EndGrad with dh. Then AddGrad for each block, in any order, adds to dz, the gradient of its
// sources; z may be empty unless the gradient reads sources. Last, BeginGrad adds to the destinations' dz the gradient
// through Begin. A block is the same CSR in both passes.
type Aggregator interface {
	Params() []*tape.Param
	Dims() (in, out int) // widths of z and of h (0, 0 = h is as wide as z)
	Properties() Properties
	Begin(acc *Acc, z mat.Dense)
	Add(acc *Acc, g *graph.CSR, z mat.Dense)
	End(h mat.Dense, acc *Acc)
	EndGrad(dacc *Acc, dh mat.Dense, acc *Acc)
	AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc)
	BeginGrad(dz, z mat.Dense, acc, dacc *Acc)
}

// Properties are what an aggregator computes and needs.
type Properties struct {
	Sum            bool // it is Σ_j w_ij z_j; a Hop then computes it itself, as Sum does
	NeedsSource    bool // AddGrad reads z, which sequential training must then fetch again
	KeepsAggregate bool // Acc.Aggregate is the aggregate until EndGrad
	// AddGrad overwrites dz instead of adding to it, for the first dz of a HopGrad and for each dz that is z itself
	WritesGrad  bool
	EdgeColumns int // columns of the edges that it reads (0 = none)
}

// SparseAggregator multiplies sparse rows before it aggregates them: their aggregate would be dense.
type SparseAggregator interface {
	Aggregator
	SumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *tape.Tape)
	SumSparseGrad(dh mat.Dense, g *graph.CSR, t *tape.Tape)
}

// plain is the common part of aggregators without parameters that keep the width of their rows. The running row of a
// destination is its aggregate in the end.
type plain struct{}

// Params returns nil.
func (plain) Params() []*tape.Param { return nil }

// Dims returns 0, 0, because any width is kept.
func (plain) Dims() (in, out int) { return 0, 0 }

// Properties returns none.
func (plain) Properties() Properties { return Properties{} }

// Begin allocates the rows of the destinations, of z's shape.
func (plain) Begin(acc *Acc, z mat.Dense) { acc.begin(z.Rows, z.Cols) }

// End writes the aggregate to h.
func (plain) End(h mat.Dense, acc *Acc) { h.CopyFrom(acc.sum) }

// EndGrad keeps dh, which must not change until the last AddGrad.
func (plain) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) { dacc.sum = dh }

// BeginGrad has nothing to add: Begin read no value.
func (plain) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {}
