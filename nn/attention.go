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
	dim := a.dim()
	for i := range z.Rows {
		zi, si := z.Row(i), s.Row(i)
		for h := range si {
			si[h] = kernels.Dot(v.Value.Row(h), zi[h*dim:(h+1)*dim])
		}
	}
}

// Begin computes the destinations' part of the logits from their rows z.
func (a *Attention) Begin(acc *Acc, z mat.Dense) {
	if z.Cols != a.heads()*a.dim() {
		panic(shapeFault("Attention", z.Cols, a.heads()*a.dim()))
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
	heads, dim := a.heads(), a.dim()
	src := mat.View(z.Rows, heads, acc.takeEdges(0, z.Rows*heads))
	a.scores(src, z, a.Src)
	keep := acc.takeEdges(1, heads)
	for i := range g.NumDst {
		col, _ := g.Row(i)
		if len(col) == 0 {
			continue
		}
		top, sum, own, out := acc.stat.Row(i), acc.norm.Row(i), acc.dst.Row(i), acc.sum.Row(i)
		for h := range heads {
			m := top[h]
			for _, j := range col {
				m = max(m, leaky(src.At(int(j), h)+own[h]))
			}
			if shrink := exp(top[h] - m); shrink != 1 {
				sum[h] *= shrink
				kernels.Scale(shrink, out[h*dim:(h+1)*dim])
			}
			top[h] = m
		}
		for _, j := range col {
			a.mask(keep, acc, i, int(j))
			zj, sj := z.Row(int(j)), src.Row(int(j))
			for h := range heads {
				p := exp(leaky(sj[h]+own[h]) - top[h])
				sum[h] += p
				kernels.Axpy(float32(p*keep[h]), zj[h*dim:(h+1)*dim], out[h*dim:(h+1)*dim])
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
	if len(g.Col) == 0 {
		return
	}
	heads, dim := a.heads(), a.dim()
	// Destination by destination: δ, the gradient of each logit, and the weight that reached the sum; both per edge.
	edges := len(g.Col) * heads
	buf := acc.takeEdges(0, z.Rows*heads+2*edges)
	src := mat.View(z.Rows, heads, buf)
	delta, alpha := buf[z.Rows*heads:][:edges], buf[z.Rows*heads+edges:][:edges]
	a.scores(src, z, a.Src)
	keep := acc.takeEdges(1, heads)
	for i := range g.NumDst {
		top, own, gi, base, down := acc.stat.Row(i), acc.dst.Row(i), dacc.sum.Row(i), dacc.stat.Row(i), dacc.dst.Row(i)
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			j := int(g.Col[k])
			a.mask(keep, acc, i, j)
			zj, sj := z.Row(j), src.Row(j)
			for h := range heads {
				e := sj[h] + own[h]
				p := exp(leaky(e) - top[h])
				w := float32(p * keep[h])
				d := float32(w*kernels.Dot(gi[h*dim:(h+1)*dim], zj[h*dim:(h+1)*dim])) - float32(p*base[h])
				if e < 0 {
					d *= attentionSlope
				}
				alpha[int(k)*heads+h], delta[int(k)*heads+h] = w, d
				down[h] += d
			}
		}
	}
	// Source by source, so that each row is written by one loop in one order.
	tr := acc.transposes().get(g.RowPtr, g.Col, g.NumSrc)
	for j := range g.NumSrc {
		zj, dj := z.Row(j), dz.Row(j)
		for h := range heads {
			d := dj[h*dim : (h+1)*dim]
			var sum float32
			for k := tr.rowPtr[j]; k < tr.rowPtr[j+1]; k++ {
				e := int(tr.perm[k])*heads + h
				sum += delta[e]
				kernels.Axpy(alpha[e], dacc.sum.Row(int(tr.col[k]))[h*dim:(h+1)*dim], d)
			}
			kernels.Axpy(sum, a.Src.Value.Row(h), d)
			kernels.Axpy(sum, zj[h*dim:(h+1)*dim], a.Src.Grad.Row(h))
		}
	}
}

// BeginGrad adds to dz the gradient that reached the destinations' rows z as such.
func (a *Attention) BeginGrad(dz, z mat.Dense, acc, dacc *Acc) {
	dim := a.dim()
	for i := range z.Rows {
		zi, di := z.Row(i), dz.Row(i)
		for h, d := range dacc.dst.Row(i) {
			kernels.Axpy(d, a.Dst.Value.Row(h), di[h*dim:(h+1)*dim])
			kernels.Axpy(d, zi[h*dim:(h+1)*dim], a.Dst.Grad.Row(h))
		}
	}
}

// mask writes the dropout of edge (j, i) for every head.
func (a *Attention) mask(keep []float32, acc *Acc, i, j int) {
	if !acc.Train || a.Dropout == 0 {
		for h := range keep {
			keep[h] = 1
		}
		return
	}
	key := acc.Key.Fold(node(acc.Dst, i)).Fold(node(acc.Src, j))
	kernels.DropoutMask(uint64(key), a.Dropout, keep)
}

func leaky(x float32) float32 {
	if x < 0 {
		return attentionSlope * x
	}
	return x
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

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
