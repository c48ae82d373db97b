package aggregate

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// EdgeMessages is h_i = ⊕_j m(z_j, r_i, x_ij, w_ij) over the in-edges (j, i), for a user's own messages m. ⊕ is a sum,
// a mean or a maximum, z_j the source's row, x_ij the columns of the edge and w_ij its weight. r_i is the destination's
// row: Conv.Dst(x)_i if the layer has such a map, else its row as a source (Gilmer et al., ICML 2017, eq. 1). A
// destination without edges gets zeros.
//
// The messages of some hundred edges are computed at a time, from matrices that have a row for each edge, so that they
// can be products and other kernels; several cores compute such batches at the same time. No value of an edge is kept:
// the backward pass computes its message again. The result is the same for any number of cores.
type EdgeMessages struct {
	Reduce Reduction
	Width  int // width of a message (0 = the width of z)
	// Linear means that Gradient reads none of b.Src, b.Dst and b.M, because a message is linear in the rows. The
	// backward pass then computes none of them again, and no rows are fetched again for it.
	Linear     bool
	ReadsDst   bool // whether messages read the destinations' rows
	EdgeWidth  int  // columns of the edges that messages read (0 = none)
	Parameters []*tape.Param
	// Message writes b.M. It must write nothing else, because several goroutines call it at a time.
	Message func(b *EdgeBatch)
	// Gradient adds to b.DSrc, b.DDst and b.Grads the contribution of b.DM, the gradient of the
	// messages. b.M has the messages, unless Linear. It must write nothing else.
	Gradient func(b *EdgeBatch)
}

// Reduction is the operation ⊕ on the messages to a destination, element by element.
type Reduction uint8

const (
	SumOf  Reduction = iota // their sum
	MeanOf                  // their mean, ignoring their weights
	MaxOf                   // their maximum; the gradient goes to the first such message
)

// EdgeBatch is some edges; each edge has a row in every matrix.
type EdgeBatch struct {
	Src    mat.Dense // n×width of z: the sources' rows
	Dst    mat.Dense // n×width of r: the destinations' rows; empty unless ReadsDst
	Edge   mat.Dense // n×EdgeWidth: the edges' columns; empty if EdgeWidth is 0
	Weight []float32 // weight of each edge (nil = 1)
	M      mat.Dense // n×Width: the messages

	DM    mat.Dense   // gradient of the messages
	DSrc  mat.Dense   // gradient of Src, initially zeros
	DDst  mat.Dense   // gradient of Dst, initially zeros
	Grads []mat.Dense // gradients of the parameters, with the shapes of their values
}

// Params returns Parameters.
func (f *EdgeMessages) Params() []*tape.Param { return f.Parameters }

// Dims returns 0 and Width: rows of any width.
func (f *EdgeMessages) Dims() (in, out int) { return 0, f.Width }

// Properties returns whether the gradient reads z, and how many columns of edges messages read.
func (f *EdgeMessages) Properties() Properties {
	return Properties{NeedsSource: !f.Linear, EdgeColumns: f.EdgeWidth}
}

// Begin keeps the destinations' rows own, which must not change until BeginGrad.
func (f *EdgeMessages) Begin(acc *Acc, own mat.Dense) {
	width := f.Width
	if width == 0 {
		width = own.Cols
	}
	acc.begin(own.Rows, width)
	acc.dst = own
	switch f.Reduce {
	case MeanOf:
		acc.norm = acc.take(2, own.Rows, 1)
		acc.norm.Zero()
	case MaxOf:
		acc.arg = ints(&acc.arg, own.Rows*width)
		lowest(acc.sum.Data, acc.arg)
	}
}

// lowest sets the maxima over no message.
func lowest(x []float32, arg []int32) {
	for i := range x {
		x[i] = float32(math.Inf(-1))
	}
	for i := range arg {
		arg[i] = -1
	}
}

// Add adds the messages of a block of sources z.
func (f *EdgeMessages) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Messages", acc.sum.Rows, g, z)
	base := acc.added
	acc.blocks, acc.added = append(acc.blocks, addedBlock{g, base}), base+len(g.Col)
	if f.Reduce == MeanOf {
		for i := range g.NumDst {
			acc.norm.Row(i)[0] += float32(g.RowPtr[i+1] - g.RowPtr[i])
		}
	}
	f.loop(acc, g, z, base).run(acc.sum)
}

// End writes the aggregate to h.
func (f *EdgeMessages) End(h mat.Dense, acc *Acc) {
	for i := range h.Rows {
		hi := h.Row(i)
		copy(hi, acc.sum.Row(i))
		switch f.Reduce {
		case MeanOf:
			if n := acc.norm.Row(i)[0]; n > 0 {
				scale(1/n, hi)
			}
		case MaxOf:
			for c, e := range acc.arg[i*h.Cols : (i+1)*h.Cols] {
				if e < 0 {
					hi[c] = 0
				}
			}
		}
	}
}

// EndGrad allocates the gradient of the destinations' rows; dh must not change until the last AddGrad.
func (f *EdgeMessages) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.sum, dacc.dst = dh, mat.Dense{}
	if f.ReadsDst {
		dacc.dst = dacc.take(3, acc.dst.Rows, acc.dst.Cols)
		dacc.dst.Zero()
	}
	if f.Reduce != MeanOf {
		return
	}
	dacc.sum = dacc.take(0, dh.Rows, dh.Cols)
	dacc.sum.CopyFrom(dh)
	for i := range dh.Rows {
		if n := acc.norm.Row(i)[0]; n > 0 {
			scale(1/n, dacc.sum.Row(i))
		}
	}
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z were given to Add. It also adds the gradients of
// the parameters.
func (f *EdgeMessages) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	if f.Linear {
		z = mat.Dense{Rows: g.NumSrc, Cols: acc.messages.width}
	}
	checkBlock("Messages", acc.sum.Rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	w := f.loopBack(acc, dacc, g, z)
	w.run(dz)
	for k := range w.lane {
		for n, p := range f.Parameters {
			for i := range p.Grad.Rows {
				kernels.Add(w.lane[k].Grads[n].Row(i), p.Grad.Row(i))
			}
		}
	}
}

// BeginGrad adds to dOwn the gradient of the destinations' rows.
func (f *EdgeMessages) BeginGrad(dOwn, own mat.Dense, acc, dacc *Acc) {
	for i := range dacc.dst.Rows {
		kernels.Add(dacc.dst.Row(i), dOwn.Row(i))
	}
}
