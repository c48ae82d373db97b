package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

const attentionSlope = 0.2 // of LeakyReLU (Veličković et al., §2.2)

// Attention is, for each head, h_i = Σ_j α_ij z_j with α = softmax over the in-edges (j, i) of
// LeakyReLU(src·z_j + dst·z_i) (Veličković et al., ICLR 2018, eqs. 3 and 4). z has the heads side by side: R×(heads·dim).
// The softmax is streamed with a running maximum and sum, so blocks of sources may come one by one, and the backward
// pass computes α again from the two: no value per edge outlives a block. Weights are not read; a destination without
// edges gets zeros.
type Attention struct {
	Src, Dst *Param  // heads×dim
	Dropout  float32 // of α, keyed by destination, source and head
}

// NewAttention returns an Attention of the given heads, each dim wide.
func NewAttention(name string, heads, dim int, dropout float32, key rng.Key) *Attention {
	return &Attention{
		Src:     glorot(name+".src", heads, dim, heads, dim, key),
		Dst:     glorot(name+".dst", heads, dim, heads, dim, key),
		Dropout: dropout,
	}
}

// Params returns the two vectors of every head.
func (a *Attention) Params() []*Param { return []*Param{a.Src, a.Dst} }

// NeedsSource returns true: the gradient of α reads z.
func (a *Attention) NeedsSource() bool { return true }

func (a *Attention) heads() int { return a.Src.Value.Rows }
func (a *Attention) dim() int   { return a.Src.Value.Cols }

// scores writes v_h·z_h to s for every row and head.
func (a *Attention) scores(s, z mat.Dense, v *Param) {
	each(loop{body: scoreRows, rows: z.Rows, width: z.Cols, x: z, y: s, d: v.Value})
}

func scoreRows(w *loop, _, lo, hi int) {
	dim := w.d.Cols
	for i := lo; i < hi; i++ {
		zi, si := w.x.Row(i), w.y.Row(i)
		for h := range si {
			si[h] = kernels.Dot(w.d.Row(h), zi[h*dim:(h+1)*dim])
		}
	}
}

// Begin computes the destinations' part of the logits from their rows z.
func (a *Attention) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.heads()*a.dim() {
		panic(shapeFault("columns of Attention's input", z.Cols, a.heads()*a.dim()))
	}
	acc.begin(z.Rows)
	acc.sum = acc.take(0, z.Rows, z.Cols)
	acc.sum.Zero()
	acc.stat = acc.take(1, z.Rows, a.heads()) // running maximum, then m + ln s
	for i := range acc.stat.Data {
		acc.stat.Data[i] = float32(math.Inf(-1))
	}
	acc.norm = acc.take(2, z.Rows, a.heads()) // running sum
	acc.norm.Zero()
	acc.dst = acc.take(3, z.Rows, a.heads())
	a.scores(acc.dst, z, a.Dst)
}

// Add takes in a block of sources z.
func (a *Attention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("Attention", acc.rows, g, z)
	heads, edges := a.heads(), len(g.Col)
	if edges == 0 {
		return
	}
	w := loop{body: attendRows, rows: g.NumDst, width: a.edgeWork(g), attention: a, acc: acc, g: g}
	scratch := acc.takeEdges((z.Rows + edges + w.bands()) * heads)
	w.src, scratch = scratch[:z.Rows*heads], scratch[z.Rows*heads:]
	w.weight, scratch = scratch[:edges*heads], scratch[edges*heads:] // head by head, edge by edge
	w.sums = mat.View(w.bands(), heads, scratch)                     // of each band: the mask of an edge
	a.scores(mat.View(z.Rows, heads, w.src), z, a.Src)
	each(w)
	weight := w.weight
	for h := range heads {
		zh, out := a.head(z, h), a.head(acc.sum, h)
		kernels.SpMM(g.RowPtr, g.Col, weight[h*edges:(h+1)*edges], a.dim(), zh.Data, zh.Stride, out.Data, out.Stride, true)
	}
}

// edgeWork is the work of a destination's edges, in values of a row.
func (a *Attention) edgeWork(g *graph.CSR) int {
	return 1 + 4*a.heads()*len(g.Col)/max(g.NumDst, 1)
}

func attendRows(w *loop, band, lo, hi int) {
	a, acc, g, src, weight, keep := w.attention, w.acc, w.g, w.src, w.weight, w.sums.Row(band)
	heads, edges := a.heads(), len(g.Col)
	for i := lo; i < hi; i++ {
		lo, hi := int(g.RowPtr[i]), int(g.RowPtr[i+1])
		if lo == hi {
			continue
		}
		top, sum, own := acc.stat.Row(i), acc.norm.Row(i), acc.dst.Row(i)
		for h := range heads {
			m := top[h]
			for k := lo; k < hi; k++ {
				e := leaky(src[int(g.Col[k])*heads+h] + own[h])
				weight[h*edges+k] = e
				m = max(m, e)
			}
			if sum[h] > 0 && m > top[h] { // an earlier block had a smaller maximum
				shrink := exp(top[h] - m)
				kernels.Scale(shrink, a.head(acc.sum, h).Row(i))
				sum[h] *= shrink
			}
			top[h] = m
			for k := lo; k < hi; k++ {
				p := exp(weight[h*edges+k] - m)
				weight[h*edges+k] = p
				sum[h] += p
			}
		}
		if acc.Train && a.Dropout > 0 {
			for k := lo; k < hi; k++ {
				a.mask(keep, acc, i, int(g.Col[k]))
				for h, v := range keep {
					weight[h*edges+k] *= v
				}
			}
		}
	}
}

// End writes the aggregate to h and leaves in acc what the gradient needs.
func (a *Attention) End(h mat.Dense, acc *Acc) {
	heads, dim := a.heads(), a.dim()
	for i := range h.Rows {
		out := acc.sum.Row(i)
		for k := range heads {
			if s := acc.norm.Row(i)[k]; s > 0 {
				acc.stat.Row(i)[k] += float32(math.Log(float64(s)))
				kernels.Scale(1/s, out[k*dim:(k+1)*dim])
			}
		}
		copy(h.Row(i), out)
	}
}

// EndGrad computes dh_i·h_i, which the softmax's gradient subtracts. It keeps dh, which must stay as it is until the
// last AddGrad.
func (a *Attention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	heads, dim := a.heads(), a.dim()
	dacc.begin(dh.Rows)
	dacc.sum = dh
	dacc.stat = dacc.take(1, dh.Rows, heads)
	dacc.dst = dacc.take(3, dh.Rows, heads) // gradient of the destinations' part of the logits
	dacc.dst.Zero()
	for i := range dh.Rows {
		gi, hi := dh.Row(i), acc.sum.Row(i)
		for h := range heads {
			dacc.stat.Row(i)[h] = kernels.Dot(gi[h*dim:(h+1)*dim], hi[h*dim:(h+1)*dim])
		}
	}
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z are those given to Add.
func (a *Attention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("Attention", acc.rows, g, z)
	heads, dim, edges := a.heads(), a.dim(), len(g.Col)
	if edges == 0 {
		return
	}
	// Destination by destination: weight, what of the source reached the sum, and delta, the gradient of the logit.
	// Then source by source, so that each row is written by one core in one order.
	rows := loop{body: attendGrads, rows: g.NumDst, width: a.edgeWork(g) + z.Cols*edges/g.NumDst, attention: a, x: z, acc: acc, dacc: dacc, g: g}
	cols := loop{body: sourceGrads, rows: g.NumSrc, width: dim + edges/g.NumSrc}
	scratch := acc.takeEdges((z.Rows+2*edges+rows.bands())*heads + edges + cols.bands()*dim)
	rows.src, scratch = scratch[:z.Rows*heads], scratch[z.Rows*heads:]
	rows.weight, scratch = scratch[:edges*heads], scratch[edges*heads:]
	rows.delta, scratch = scratch[:edges*heads], scratch[edges*heads:]
	back, scratch := scratch[:edges], scratch[edges:]
	rows.sums, scratch = mat.View(rows.bands(), heads, scratch), scratch[rows.bands()*heads:]
	cols.sums = mat.View(cols.bands(), dim, scratch) // of each band: its part of the gradient of a head's vector
	a.scores(mat.View(z.Rows, heads, rows.src), z, a.Src)
	each(rows)
	tr := acc.transposes().get(g.RowPtr, g.Col, g.NumSrc)
	for h := range heads {
		tr.gather(back, rows.weight[h*edges:(h+1)*edges])
		gh, dh := a.head(dacc.sum, h), a.head(dz, h)
		kernels.SpMM(tr.rowPtr, tr.col, back, dim, gh.Data, gh.Stride, dh.Data, dh.Stride, true)
		cols.x, cols.y, cols.trans, cols.delta, cols.val = a.head(z, h), dh, tr, rows.delta[h*edges:(h+1)*edges], a.Src.Value.Row(h)
		cols.sums.Zero()
		each(cols)
		for band := range cols.sums.Rows {
			kernels.Add(cols.sums.Row(band), a.Src.Grad.Row(h))
		}
	}
}

func attendGrads(w *loop, band, lo, hi int) {
	a, acc, dacc, g := w.attention, w.acc, w.dacc, w.g
	heads, dim, edges := a.heads(), a.dim(), len(g.Col)
	keep := w.sums.Row(band)
	for h := range keep {
		keep[h] = 1
	}
	for i := lo; i < hi; i++ {
		top, own, gi, base, down := acc.stat.Row(i), acc.dst.Row(i), dacc.sum.Row(i), dacc.stat.Row(i), dacc.dst.Row(i)
		for k := int(g.RowPtr[i]); k < int(g.RowPtr[i+1]); k++ {
			j := int(g.Col[k])
			if acc.Train && a.Dropout > 0 {
				a.mask(keep, acc, i, j)
			}
			zj, sj := w.x.Row(j), w.src[j*heads:(j+1)*heads]
			for h := range heads {
				e := sj[h] + own[h]
				p := exp(leaky(e) - top[h])
				v := float32(p * keep[h])
				d := float32(v*dot(gi[h*dim:(h+1)*dim], zj[h*dim:(h+1)*dim])) - float32(p*base[h])
				if e < 0 {
					d *= attentionSlope
				}
				w.weight[h*edges+k], w.delta[h*edges+k] = v, d
				down[h] += d
			}
		}
	}
}

func sourceGrads(w *loop, band, lo, hi int) {
	grad, tr := w.sums.Row(band), w.trans
	for j := lo; j < hi; j++ {
		var sum float32
		for _, p := range tr.perm[tr.rowPtr[j]:tr.rowPtr[j+1]] {
			sum += w.delta[p]
		}
		axpy(sum, w.val, w.y.Row(j))
		axpy(sum, w.x.Row(j), grad)
	}
}

// BeginGrad adds to dz the gradient that reached the destinations' rows z as such.
func (a *Attention) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {
	dim := a.dim()
	for i := range z.Rows {
		zi, di := z.Row(i), dz.Row(i)
		for h, d := range dacc.dst.Row(i) {
			axpy(d, a.Dst.Value.Row(h), di[h*dim:(h+1)*dim])
			axpy(d, zi[h*dim:(h+1)*dim], a.Dst.Grad.Row(h))
		}
	}
}

// mask writes the dropout of edge (j, i) for every head.
func (a *Attention) mask(keep []float32, acc *Acc, i, j int) {
	key := acc.Key.Fold(node(acc.Dst, i)).Fold(node(acc.Src, j))
	kernels.DropoutMask(uint64(key), a.Dropout, keep)
}

// head returns the columns of head h.
func (a *Attention) head(m mat.Dense, h int) mat.Dense { return m.ColRange(h*a.dim(), (h+1)*a.dim()) }

func leaky(x float32) float32 {
	if x < 0 {
		return attentionSlope * x
	}
	return x
}

// dot and axpy are for the few columns of one head, for which a call of the kernels costs more than the work.
func dot(x, y []float32) float32 {
	y = y[:len(x)]
	var s float32
	for c, v := range x {
		s += float32(v * y[c])
	}
	return s
}

func axpy(a float32, x, y []float32) {
	y = y[:len(x)]
	for c, v := range x {
		y[c] += float32(a * v)
	}
}

// HeadMean is the mean of heads that lie side by side: x R×(heads·dim), y R×dim.
type HeadMean struct{ Heads, Dim int }

// Params returns nil.
func (m HeadMean) Params() []*Param { return nil }

// Dims returns heads·dim and dim.
func (m HeadMean) Dims() (in, out int) { return m.Heads * m.Dim, m.Dim }

// Forward writes y.
func (m HeadMean) Forward(y, x mat.Dense, t *Tape) {
	for i := range x.Rows {
		yi, xi := y.Row(i), x.Row(i)
		clear(yi)
		for h := range m.Heads {
			kernels.Axpy(1/float32(m.Heads), xi[h*m.Dim:(h+1)*m.Dim], yi)
		}
	}
}

// Backward adds dy/heads to dx, for every head.
func (m HeadMean) Backward(dx, dy mat.Dense, t *Tape) {
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
