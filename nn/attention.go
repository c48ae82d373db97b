package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// newGAT is graph attention, y_i = Σ_j α_ij x_j·W + b for each head (Attention), over a graph with
// self-loops: x R×In. y is R×Out: the heads side by side, or their mean (Veličković et al., ICLR
// 2018).
func newGAT(name string, s LayerSpec, key rng.Key) Conv {
	heads, dim := s.Heads, s.headWidth()
	c := Conv{
		Pre: newLinear(name+".pre", s.In, heads*dim, false, key),
		Agg: newAttention(name+".attention", heads, dim, s.AttentionDropout, key),
	}
	if s.Average {
		c.Post = headMean{heads, dim}
	}
	if !s.BatchNorm {
		c.Bias = newParam(name+".post.bias", 1, s.Out, 0)
	}
	return c
}

// headWidth returns the width of one attention head.
func (s LayerSpec) headWidth() int {
	if s.Average {
		return s.Out
	}
	return s.Out / s.Heads
}

const attentionSlope = 0.2 // of LeakyReLU (Veličković et al., §2.2)

// attention is, for each head, h_i = Σ_j α_ij z_j with α = softmax over the in-edges (j, i) of
// LeakyReLU(src·z_j + dst·z_i) (Veličković et al., ICLR 2018, eqs. 3 and 4). z has the heads side
// by side: R×(heads·dim). The softmax is streamed with a running maximum and sum, so blocks of
// sources may come one by one; with h_i comes its derivative by dst·z_i, and both passes go through
// the edges once and keep nothing of them: the backward pass computes α again. Weights are not
// read; a destination without edges gets zeros.
type attention struct {
	Src, Dst *Param  // heads×dim
	Dropout  float32 // of α, keyed by destination, source and head
}

// newAttention returns an Attention of the given heads, each dim wide.
func newAttention(name string, heads, dim int, dropout float32, key rng.Key) *attention {
	return &attention{
		Src:     glorot(name+".src", heads, dim, heads, dim, key),
		Dst:     glorot(name+".dst", heads, dim, heads, dim, key),
		Dropout: dropout,
	}
}

// Params returns the two vectors of every head.
func (a *attention) Params() []*Param { return []*Param{a.Src, a.Dst} }

// Dims returns the width of all heads twice.
func (a *attention) Dims() (in, out int) { return a.heads() * a.dim(), a.heads() * a.dim() }

// NeedsSource returns true: the gradient of α reads z.
func (a *attention) NeedsSource() bool { return true }

// IsSum returns false: α weighs the rows.
func (a *attention) IsSum() bool { return false }

func (a *attention) keepsAggregate() {}

func (a *attention) heads() int { return a.Src.Value.Rows }
func (a *attention) dim() int   { return a.Src.Value.Cols }

// pad is the width of a row of values of heads.
func (a *attention) pad() int { return kernels.PadHeads(a.heads()) }

// vectors writes to m, (heads·dim)×pad, the vectors of the heads one below another, each in its own
// column: z·m are their scores.
func (a *attention) vectors(m mat.Dense, v *Param) {
	m.Zero()
	for h := range a.heads() {
		for c, x := range v.Value.Row(h) {
			m.Row(h*a.dim() + c)[h] = x
		}
	}
}

// scores writes v_h·z_h to s for every row and head; m is scratch for the vectors.
func (a *attention) scores(s, z, m mat.Dense, v *Param) {
	a.vectors(m, v)
	kernels.GemmNN(z.Rows, m.Cols, z.Cols, z.Data, z.Stride, m.Data, m.Stride, s.Data, s.Stride, false)
}

// scoreGrads adds to dz and to v's gradient what ds, the gradient of scores, brings; m and dm are
// scratch.
func (a *attention) scoreGrads(dz, ds, z, m, dm mat.Dense, v *Param) {
	a.vectors(m, v)
	kernels.GemmNT(z.Rows, z.Cols, m.Cols, ds.Data, ds.Stride, m.Data, m.Stride, dz.Data, dz.Stride, true)
	kernels.GemmTN(z.Cols, m.Cols, z.Rows, z.Data, z.Stride, ds.Data, ds.Stride, dm.Data, dm.Stride, false)
	for h := range a.heads() {
		for c := range a.dim() {
			v.Grad.Row(h)[c] += dm.Row(h*a.dim() + c)[h]
		}
	}
}

// Begin computes the destinations' part of the logits from their rows z.
func (a *attention) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.heads()*a.dim() {
		panic(shapeFault("columns of Attention's input", z.Cols, a.heads()*a.dim()))
	}
	acc.begin(z.Rows)
	if acc.Train {
		acc.key = acc.Key.FoldString(a.Src.Name)
	}
	acc.sum = acc.take(0, z.Rows, z.Cols)
	acc.sum.Zero()
	acc.stat = acc.take(1, z.Rows, a.pad()) // running maximum, then m + ln s
	for i := range acc.stat.Data {
		acc.stat.Data[i] = float32(math.Inf(-1))
	}
	acc.norm = acc.take(2, z.Rows, a.pad()) // running sum
	acc.norm.Zero()
	acc.dst = acc.take(3, z.Rows, a.pad())
	a.scores(acc.dst, z, mat.View(z.Cols, a.pad(), acc.takeEdges(z.Cols*a.pad())), a.Dst)
	acc.slope, acc.normSlope = mat.Dense{}, mat.Dense{}
	if !acc.Infer {
		acc.slope = acc.take(4, z.Rows, z.Cols)
		acc.slope.Zero()
		acc.normSlope = acc.take(5, z.Rows, a.pad())
		acc.normSlope.Zero()
	}
}

// Add takes in a block of sources z.
func (a *attention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Attention", acc.rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	pad := a.pad()
	scratch := acc.takeEdges((z.Rows + z.Cols) * pad)
	src := mat.View(z.Rows, pad, scratch[:z.Rows*pad])
	a.scores(src, z, mat.View(z.Cols, pad, scratch[z.Rows*pad:]), a.Src)
	edges := a.edges(acc, g.RowPtr, g.Col)
	edges.Keys = (*inKeys)(acc)
	edges.Forward(acc.dst.Data, src.Data, z.Data, z.Stride, &kernels.Softmax{
		Top: acc.stat.Data, Sum: acc.norm.Data, Y: acc.sum.Data, LDY: acc.sum.Stride, SumSlope: acc.normSlope.Data, YSlope: acc.slope.Data,
	})
}

func (a *attention) edges(acc *Acc, rowPtr []int64, col []int32) kernels.Attention {
	e := kernels.Attention{RowPtr: rowPtr, Col: col, Heads: a.heads(), Dim: a.dim(), Slope: attentionSlope}
	if acc.Train {
		e.Dropout = a.Dropout
	}
	return e
}

// End writes the aggregate to h and leaves in acc what the gradient needs.
func (a *attention) End(h mat.Dense, acc *Acc) {
	each(loop{body: endRows, rows: h.Rows, width: 2*h.Cols + 16*a.heads(), y: h, attention: a, acc: acc})
}

func endRows(w *loop, _, lo, hi int) {
	a, acc := w.attention, w.acc
	heads, dim := a.heads(), a.dim()
	for i := lo; i < hi; i++ {
		out, stat, norm := acc.sum.Row(i), acc.stat.Row(i), acc.norm.Row(i)
		for k := range heads {
			s := norm[k]
			if s <= 0 {
				continue
			}
			stat[k] += float32(math.Log(float64(s)))
			scale(1/s, out[k*dim:(k+1)*dim])
			if !acc.Infer {
				scale(1/s, acc.slope.Row(i)[k*dim:(k+1)*dim])
				acc.normSlope.Row(i)[k] *= 1 / s
			}
		}
		copy(w.y.Row(i), out)
	}
}

// EndGrad computes dh_i·h_i, which the softmax's gradient subtracts, and the gradient of the
// destinations' part of the logits. It keeps dh, which must stay as it is until the last AddGrad.
func (a *attention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.begin(dh.Rows)
	dacc.sum = dh
	dacc.stat = dacc.take(1, dh.Rows, a.pad())
	dacc.dst = dacc.take(3, dh.Rows, a.pad())
	each(loop{body: endGrads, rows: dh.Rows, width: 4 * dh.Cols, attention: a, acc: acc, dacc: dacc})
}

func endGrads(w *loop, _, lo, hi int) {
	a, acc, dacc := w.attention, w.acc, w.dacc
	heads, dim := a.heads(), a.dim()
	for i := lo; i < hi; i++ {
		gi, hi, slope, norm := dacc.sum.Row(i), acc.sum.Row(i), acc.slope.Row(i), acc.normSlope.Row(i)
		base, down := dacc.stat.Row(i), dacc.dst.Row(i)
		clear(base)
		clear(down)
		for h := range heads {
			g := gi[h*dim : (h+1)*dim]
			base[h] = dot(g, hi[h*dim:(h+1)*dim])
			down[h] = dot(g, slope[h*dim:(h+1)*dim]) - float32(base[h]*norm[h])
		}
	}
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z are those given to Add.
func (a *attention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("Attention", acc.rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	pad := a.pad()
	scratch := acc.takeEdges(2 * (z.Rows + z.Cols) * pad)
	src, scratch := mat.View(z.Rows, pad, scratch[:z.Rows*pad]), scratch[z.Rows*pad:]
	up, scratch := mat.View(z.Rows, pad, scratch[:z.Rows*pad]), scratch[z.Rows*pad:] // the gradient of src
	m, dm := mat.View(z.Cols, pad, scratch[:z.Cols*pad]), mat.View(z.Cols, pad, scratch[z.Cols*pad:])
	a.scores(src, z, m, a.Src)
	tr := acc.transposes().get(g.RowPtr, g.Col, g.NumSrc)
	edges, dh := a.edges(acc, tr.rowPtr, tr.col), dacc.sum
	edges.Keys = (*outKeys)(acc)
	edges.Backward(src.Data, acc.dst.Data, acc.stat.Data, dacc.stat.Data, dh.Data, dh.Stride, z.Data, z.Stride, dz.Data, dz.Stride, up.Data)
	a.scoreGrads(dz, up, z, m, dm, a.Src)
}

// BeginGrad adds to dz the gradient that reached the destinations' rows z as such.
func (a *attention) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {
	pad := a.pad()
	scratch := acc.takeEdges(2 * z.Cols * pad)
	a.scoreGrads(dz, dacc.dst, z, mat.View(z.Cols, pad, scratch[:z.Cols*pad]), mat.View(z.Cols, pad, scratch[z.Cols*pad:]), a.Dst)
}

// inKeys names the edges to a destination, outKeys those from a source.
type (
	inKeys  Acc
	outKeys Acc
)

func (acc *inKeys) Keys(i int, sources []int32, keys []uint64) {
	key := acc.key.Fold(node(acc.Dst, i))
	for k, j := range sources {
		keys[k] = uint64(key.Fold(node(acc.Src, int(j))))
	}
}

func (acc *outKeys) Keys(j int, destinations []int32, keys []uint64) {
	source := node(acc.Src, j)
	for k, i := range destinations {
		keys[k] = uint64(acc.key.Fold(node(acc.Dst, int(i))).Fold(source))
	}
}

// dot and scale are for the few columns of one head, for which a call of the kernels costs more
// than the work.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var s float32
	for c, v := range x {
		s += float32(v * y[c])
	}
	return s
}

func scale(a float32, x []float32) {
	for c := range x {
		x[c] *= a
	}
}

// headMean is the mean of heads that lie side by side: x R×(heads·dim), y R×dim.
type headMean struct{ Heads, Dim int }

// Params returns nil.
func (m headMean) Params() []*Param { return nil }

// Dims returns heads·dim and dim.
func (m headMean) Dims() (in, out int) { return m.Heads * m.Dim, m.Dim }

// Forward writes y.
func (m headMean) Forward(y, x mat.Dense, t *Tape) {
	for i := range x.Rows {
		yi, xi := y.Row(i), x.Row(i)
		clear(yi)
		for h := range m.Heads {
			kernels.Axpy(1/float32(m.Heads), xi[h*m.Dim:(h+1)*m.Dim], yi)
		}
	}
}

// Backward adds dy/heads to dx, for every head.
func (m headMean) Backward(dx, dy mat.Dense, t *Tape) {
	if dx.Empty() {
		return
	}
	for i := range dy.Rows {
		di := dx.Row(i)
		for h := range m.Heads {
			kernels.Axpy(1/float32(m.Heads), dy.Row(i), di[h*m.Dim:(h+1)*m.Dim])
		}
	}
}
