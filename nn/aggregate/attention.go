package aggregate

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// attention is GAT's attention: α is the softmax of LeakyReLU(src·z_j + dst·z_i) (Veličković et al., ICLR 2018, eqs. 3
// and 4). Both passes read the edges once.
type attention struct {
	softmax
	Src, Dst *tape.Param // heads×dim
}

// NewAttention returns the attention of GAT with heads of width dim.
func NewAttention(name string, heads, dim int, dropout float32, key rng.Key) Aggregator {
	return &attention{
		softmax: softmax{heads, dim, dropout, name + ".src"},
		Src:     tape.Glorot(name+".src", heads, dim, heads, dim, key),
		Dst:     tape.Glorot(name+".dst", heads, dim, heads, dim, key),
	}
}

// Properties returns the softmax's properties, and that gradients need no zeros.
func (a *attention) Properties() Properties {
	p := a.softmax.Properties()
	p.WritesGrad = true
	return p
}

// Params returns the two vectors of every head.
func (a *attention) Params() []*tape.Param { return []*tape.Param{a.Src, a.Dst} }

// pad is the length of a row with one value for each head.
func (a *attention) pad() int { return kernels.PadHeads(a.heads) }

// vectors writes the vectors of the heads to m, (heads·dim)×pad, one below another, each in its own column: z·m are
// their parts of the logits.
func (a *attention) vectors(m mat.Dense, v *tape.Param) {
	m.Zero()
	for h := range a.heads {
		for c, x := range v.Value.Row(h) {
			m.Row(h*a.dim + c)[h] = x
		}
	}
}

// logits writes v_h·z_h to s for every row and head; m is scratch for the vectors.
func (a *attention) logits(s, z, m mat.Dense, v *tape.Param) {
	a.vectors(m, v)
	kernels.GemmNN(z.Rows, m.Cols, z.Cols, z.Data, z.Stride, m.Data, m.Stride, s.Data, s.Stride, false)
}

// logitGrads adds to dz the contribution of ds, the gradient of the logits. It adds the gradient of the
// vectors m to dm, or writes it there.
func logitGrads(dz, ds, z, m, dm mat.Dense, add bool) {
	kernels.GemmNT(z.Rows, z.Cols, m.Cols, ds.Data, ds.Stride, m.Data, m.Stride, dz.Data, dz.Stride, true)
	kernels.GemmTN(z.Cols, m.Cols, z.Rows, z.Data, z.Stride, ds.Data, ds.Stride, dm.Data, dm.Stride, add)
}

// learn adds dm, the gradient of the stacked vectors, to v's gradient.
func (a *attention) learn(v *tape.Param, dm mat.Dense) {
	for h := range a.heads {
		for c := range a.dim {
			v.Grad.Row(h)[c] += dm.Row(h*a.dim + c)[h]
		}
	}
}

// Begin computes the destinations' part of the logits from their rows z.
func (a *attention) Begin(acc *Acc, z mat.Dense) {
	pad := a.pad()
	a.room(acc, z, pad)
	acc.dst = acc.take(3, z.Rows, pad)
	a.logits(acc.dst, z, mat.View(z.Cols, pad, acc.takeEdges(z.Cols*pad)), a.Dst)
}

// Add adds a block of sources z.
func (a *attention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("attention", acc.sum.Rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	pad := a.pad()
	scratch := acc.takeEdges((z.Rows + z.Cols) * pad)
	src := mat.View(z.Rows, pad, scratch[:z.Rows*pad])
	a.logits(src, z, mat.View(z.Cols, pad, scratch[z.Rows*pad:]), a.Src)
	edges := a.edges(acc, g.RowPtr, g.Col)
	edges.Keys = (*inKeys)(acc)
	edges.Forward(acc.dst.Data, src.Data, z.Data, z.Stride, &kernels.Softmax{
		Top: acc.stat.Data, Sum: acc.norm.Data, Y: acc.sum.Data, LDY: acc.sum.Stride, Fresh: acc.fresh,
	})
	acc.fresh = false
}

// End writes the aggregate to h and keeps in acc what the gradient needs.
func (a *attention) End(h mat.Dense, acc *Acc) {
	if acc.fresh {
		a.clear(acc)
	}
	a.softmax.End(h, acc)
}

// edges returns the kernel's arguments for the edges of a block, or of its transpose.
func (a *attention) edges(acc *Acc, rowPtr []int64, col []int32) kernels.Attention {
	e := kernels.Attention{RowPtr: rowPtr, Col: col, Heads: a.heads, Dim: a.dim, Slope: attentionSlope}
	if acc.Train {
		e.Dropout = a.dropout
	}
	return e
}

// EndGrad computes dh_i·h_i and allocates the gradient of the destinations' part of the logits.
func (a *attention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.dst = dacc.take(3, dh.Rows, a.pad())
	dacc.dst.Zero()
	a.endGrad(dacc, dh, acc)
	if acc.Train && a.dropout > 0 {
		acc.ofDst = slices.Grow(acc.ofDst[:0], dh.Rows)
		for i := range dh.Rows {
			acc.ofDst = append(acc.ofDst, acc.key.Fold(tape.NodeID(acc.Dst, i)))
		}
	}
}

// bandValues is how many values of sources AddGrad processes at a time, so that a band is still in the caches when the
// next kernel reads it.
const bandValues = 1 << 16

// AddGrad adds to dz the gradient of a block's sources, whose rows z were given to Add. If dz is z, the gradient
// replaces the rows.
func (a *attention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("attention", acc.sum.Rows, g, z)
	over := len(z.Data) > 0 && &dz.Data[0] == &z.Data[0]
	fresh := dacc.fresh || over
	dacc.fresh = false
	if len(g.Col) == 0 {
		if fresh {
			dz.Zero()
		}
		return
	}
	pad, band := a.pad(), min(z.Rows, max(1, bandValues/z.Cols))
	values := 0 // values of a gradient that is not in dz yet
	if over {
		values = band * z.Cols
	}
	mark := acc.tape.Mark() // layers share this memory
	defer acc.tape.Release(mark)
	scratch := acc.takeUntil(2*(band+z.Cols)*pad + values)
	take := func(rows, cols int) mat.Dense {
		m := mat.View(rows, cols, scratch[:rows*cols])
		scratch = scratch[rows*cols:]
		return m
	}
	src, up, m, dm := take(band, pad), take(band, pad), take(z.Cols, pad), take(z.Cols, pad) // up: the gradient of src
	a.vectors(m, a.Src)
	tr, dh := acc.patterns().Transpose(g.RowPtr, g.Col, g.NumSrc), dacc.sum
	for lo := 0; lo < z.Rows; lo += band {
		hi := min(lo+band, z.Rows)
		src, up, z, dz := src.RowRange(0, hi-lo), up.RowRange(0, hi-lo), z.RowRange(lo, hi), dz.RowRange(lo, hi)
		to := dz
		if over {
			to = mat.View(hi-lo, z.Cols, scratch[:(hi-lo)*z.Cols])
		}
		kernels.GemmNN(z.Rows, pad, z.Cols, z.Data, z.Stride, m.Data, m.Stride, src.Data, src.Stride, false)
		edges := a.edges(acc, tr.RowPtr[lo:hi+1], tr.Col)
		acc.from, edges.Keys = lo, (*outKeys)(acc)
		edges.Backward(src.Data, acc.dst.Data, &kernels.AttentionGrad{
			Log: acc.stat.Data, Base: dacc.stat.Data, DY: dh.Data, LDDY: dh.Stride, X: z.Data, LDX: z.Stride,
			DX: to.Data, LDDX: to.Stride, Fresh: fresh, DOwn: up.Data, DFar: dacc.dst.Data,
		})
		logitGrads(to, up, z, m, dm, lo > 0)
		if over {
			dz.CopyFrom(to)
		}
	}
	a.learn(a.Src, dm)
}

// BeginGrad adds to dz the gradient of the rows z as destinations.
func (a *attention) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {
	pad := a.pad()
	scratch := acc.takeEdges(2 * z.Cols * pad)
	m, dm := mat.View(z.Cols, pad, scratch[:z.Cols*pad]), mat.View(z.Cols, pad, scratch[z.Cols*pad:])
	a.vectors(m, a.Dst)
	logitGrads(dz, dacc.dst, z, m, dm, false)
	a.learn(a.Dst, dm)
}

// inKeys gives the dropout keys of the edges to a destination, outKeys of the edges from a source.
type (
	inKeys  Acc
	outKeys Acc
)

func (acc *inKeys) Keys(i int, sources []int32, keys []uint64) {
	key := acc.key.Fold(tape.NodeID(acc.Dst, i))
	for k, j := range sources {
		keys[k] = uint64(key.Fold(tape.NodeID(acc.Src, int(j))))
	}
}

func (acc *outKeys) Keys(j int, destinations []int32, keys []uint64) {
	source := tape.NodeID(acc.Src, acc.from+j)
	of := acc.ofDst
	for k, i := range destinations {
		keys[k] = uint64(of[i].Fold(source))
	}
}
