// Package aggregate has what graph neural networks make of the rows of a node's neighbours, with
// hand-written backward passes: sums, maxima, attention, messages. Nothing else sees edges.
package aggregate

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Aggregator is an operator over edges. Its law: Add over two disjoint sets of sources equals Add
// over their union, up to rounding; so a whole graph and a sequence of blocks give the same rows
// and the same gradients.
//
// Forward: Begin with the destinations' own rows z, Add for each block and the rows z of its
// sources, End writes the aggregate h. Backward: EndGrad with dh, then for each block, in any
// order, AddGrad adds to dz, the gradient of its sources (z may be empty unless the gradient reads
// sources), and BeginGrad adds to the destinations' dz what came through Begin. A block is the same
// CSR in both passes.
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

// Properties say what an aggregator does and needs.
type Properties struct {
	Sum            bool // it is Σ_j w_ij z_j and nothing else, which a Hop then computes itself, as Sum does
	NeedsSource    bool // AddGrad reads z, which sequential training must then fetch again
	KeepsAggregate bool // Acc.Aggregate is the aggregate until EndGrad
	// AddGrad writes dz instead of adding to it: the first dz of a HopGrad, whatever is in it, and each dz that is z
	// itself
	WritesGrad  bool
	EdgeColumns int // columns of the edges that it reads (0 = none)
}

// SparseAggregator multiplies sparse rows before it aggregates them, which would make them dense.
type SparseAggregator interface {
	Aggregator
	SumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *tape.Tape)
	SumSparseGrad(dh mat.Dense, g *graph.CSR, t *tape.Tape)
}

// plain is what aggregators share that have no parameters and keep the width of their rows: a
// running row for each destination, which is the aggregate in the end.
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

// EndGrad keeps dh, which must stay as it is until the last AddGrad.
func (plain) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) { dacc.sum = dh }

// BeginGrad has nothing to add: Begin read no value.
func (plain) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {}
