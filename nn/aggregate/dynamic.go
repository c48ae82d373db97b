package aggregate

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// dynamicAttention is that of GATv2: α is the softmax of vector·LeakyReLU(z_j + r_i), r being the
// destinations' rows, R×(heads·dim) as z (Brody, Alon and Yahav, ICLR 2022, arXiv 2105.14491, eq.
// 7). The backward pass goes through the edges twice, by destination and by source.
type dynamicAttention struct {
	softmax
	vector *tape.Param // heads×dim
}

// NewDynamicAttention returns the attention of GATv2 with heads of width dim.
func NewDynamicAttention(name string, heads, dim int, dropout float32, key rng.Key) Aggregator {
	return &dynamicAttention{
		softmax: softmax{heads, dim, dropout, name + ".vector"},
		vector:  tape.Glorot(name+".vector", heads, dim, heads, dim, key),
	}
}

// Params returns the vectors of all heads.
func (a *dynamicAttention) Params() []*tape.Param { return []*tape.Param{a.vector} }

// Begin keeps the destinations' rows own, which must stay as they are until BeginGrad.
func (a *dynamicAttention) Begin(acc *Acc, own mat.Dense) {
	a.begin(acc, own, a.heads)
	acc.dst = own
}

// Add takes in a block of sources z.
func (a *dynamicAttention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("attention", acc.sum.Rows, g, z)
	a.edges(acc, nil, g.RowPtr, g.Col, z).each((*loop).add)
}

// EndGrad computes dh_i·h_i and makes room for the gradient of the destinations' rows.
func (a *dynamicAttention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.dst = dacc.take(3, dh.Rows, dh.Cols)
	dacc.dst.Zero()
	a.endGrad(dacc, dh, acc)
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z are those given to Add, and to
// the vectors' gradient.
func (a *dynamicAttention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("attention", acc.sum.Rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	w, n := a.edges(acc, dacc, g.RowPtr, g.Col, z), a.width()
	w.vectors = acc.takeEdges(w.bands() * n) // one a band, added up in order: the same bits for any number of cores
	clear(w.vectors)
	w.each((*loop).destinationGrad)
	for k := range w.bands() {
		kernels.Add(w.vectors[k*n:(k+1)*n], a.vector.Grad.Data)
	}
	tr := acc.patterns().Transpose(g.RowPtr, g.Col, g.NumSrc)
	w = a.edges(acc, dacc, tr.RowPtr, tr.Col, z)
	w.dz = dz
	w.each((*loop).sourceGrad)
}

// BeginGrad adds to dOwn the gradient of the destinations' rows.
func (a *dynamicAttention) BeginGrad(dOwn, own mat.Dense, acc, dacc *Acc) {
	for i := range dOwn.Rows {
		kernels.Add(dacc.dst.Row(i), dOwn.Row(i))
	}
}

// edges returns the loop over the edges of a block, grouped by destination or by source.
func (a *dynamicAttention) edges(acc, dacc *Acc, rowPtr []int64, col []int32, z mat.Dense) *loop {
	w, rows := &acc.loop, len(rowPtr)-1
	*w = loop{
		softmax: &a.softmax, vector: a.vector, acc: acc, dacc: dacc, rowPtr: rowPtr, col: col, z: z,
		rows: rows, band: max(1, tape.BandLen*rows/max(1, len(col)*a.width())),
	}
	return w
}

// logit returns vector·LeakyReLU(z_j + r_i) of head k.
func (w *loop) logit(i, j, k int) float32 {
	v := w.vector.Value.Row(k)
	lo := k * len(v)
	z, own := w.z.Row(j)[lo:lo+len(v)], w.acc.dst.Row(i)[lo:lo+len(v)]
	var s float32
	for c, x := range v {
		u := z[c] + own[c]
		if u < 0 {
			u *= attentionSlope
		}
		s += float32(x * u)
	}
	return s
}

// kept returns what dropout makes of head k's α on the edge (j, i), divided by it: 0, or the
// inverse of its probability.
func (w *loop) kept(i, j, k int) float32 {
	p := w.softmax.dropout
	switch acc := w.acc; {
	case !acc.Train || p == 0:
		return 1
	case acc.key.Fold(tape.NodeID(acc.Dst, i)).Fold(tape.NodeID(acc.Src, j)).Float64(uint64(k)) < float64(p):
		return 0
	}
	return 1 / (1 - p)
}

// add takes the edges to destination i into its running aggregate.
func (w *loop) add(i, _ int) {
	heads, dim := w.softmax.heads, w.softmax.dim
	sum, top, norm := w.acc.sum.Row(i), w.acc.stat.Row(i), w.acc.norm.Row(i)
	for _, j := range w.col[w.rowPtr[i]:w.rowPtr[i+1]] {
		for k := range heads {
			h := sum[k*dim : (k+1)*dim]
			s := w.logit(i, int(j), k)
			if s > top[k] {
				less := float32(math.Exp(float64(top[k] - s)))
				top[k] = s
				norm[k] *= less
				scale(less, h)
			}
			p := float32(math.Exp(float64(s - top[k])))
			norm[k] += p
			p *= w.kept(i, int(j), k)
			for c, x := range w.z.Row(int(j))[k*dim : (k+1)*dim] {
				h[c] += float32(p * x)
			}
		}
	}
}

// gradient returns α, what dropout makes of it, and the gradient of the logit of head k on the edge
// (j, i).
func (w *loop) gradient(i, j, k int) (alpha, dropped, d float32) {
	dim := w.softmax.dim
	alpha = float32(math.Exp(float64(w.logit(i, j, k) - w.acc.stat.Row(i)[k])))
	dropped = w.kept(i, j, k)
	along := float32(dropped * dot(w.dacc.sum.Row(i)[k*dim:(k+1)*dim], w.z.Row(j)[k*dim:(k+1)*dim]))
	return alpha, dropped * alpha, alpha * (along - w.dacc.stat.Row(i)[k])
}

// destinationGrad adds to the gradients of destination i's row and of the vectors.
func (w *loop) destinationGrad(i, band int) {
	heads, dim, n := w.softmax.heads, w.softmax.dim, w.softmax.width()
	own, down, vectors := w.acc.dst.Row(i), w.dacc.dst.Row(i), w.vectors[band*n:(band+1)*n]
	for _, j := range w.col[w.rowPtr[i]:w.rowPtr[i+1]] {
		z := w.z.Row(int(j))
		for k := range heads {
			_, _, d := w.gradient(i, int(j), k)
			for c, x := range w.vector.Value.Row(k) {
				at := k*dim + c
				u, slope := z[at]+own[at], float32(1)
				if u < 0 {
					slope = attentionSlope
				}
				vectors[at] += float32(d * slope * u)
				down[at] += float32(d * slope * x)
			}
		}
	}
}

// sourceGrad adds to the gradient of source j's row.
func (w *loop) sourceGrad(j, _ int) {
	heads, dim := w.softmax.heads, w.softmax.dim
	z, dz := w.z.Row(j), w.dz.Row(j)
	for _, i := range w.col[w.rowPtr[j]:w.rowPtr[j+1]] {
		own, dh := w.acc.dst.Row(int(i)), w.dacc.sum.Row(int(i))
		for k := range heads {
			_, dropped, d := w.gradient(int(i), j, k)
			for c, x := range w.vector.Value.Row(k) {
				at := k*dim + c
				slope := float32(1)
				if z[at]+own[at] < 0 {
					slope = attentionSlope
				}
				dz[at] += float32(dropped*dh[at]) + float32(d*slope*x)
			}
		}
	}
}
