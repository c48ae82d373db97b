package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// newGATv2 is dynamic graph attention, y_i = Σ_j α_ij z_j + b for each head, z_j = x_j·W + c, over
// a graph with self-loops: x R×In. y is R×Out: the heads side by side, or their mean (Brody, Alon
// and Yahav, ICLR 2022, arXiv 2105.14491). α is that of dynamicAttention, which reads x_i·W' + c'
// of a destination.
func newGATv2(name string, s LayerSpec, key rng.Key) Conv {
	heads, dim := s.Heads, s.headWidth()
	c := Conv{
		Pre: newLinear(name+".pre", s.In, heads*dim, true, key),
		Dst: newLinear(name+".dst", s.In, heads*dim, true, key),
		Agg: &dynamicAttention{vector: glorot(name+".attention.vector", heads, dim, heads, dim, key), dropout: s.AttentionDropout},
	}
	if s.Average {
		c.Post = headMean{heads, dim}
	}
	if !s.BatchNorm {
		c.Bias = newParam(name+".post.bias", 1, s.Out, 0)
	}
	return c
}

// weightsOfGATv2 are those of attention twice: of sources and of destinations.
func weightsOfGATv2(s LayerSpec, matrix func(rows, cols int)) {
	weightsOfHeads(s, matrix)
	weightsOfHeads(s, matrix)
}

// dynamicAttention is, for each head, h_i = Σ_j α_ij z_j with α = softmax over the in-edges (j, i)
// of vector·LeakyReLU(z_j + r_i), r being the destinations' rows (Brody, Alon and Yahav, eq. 7): z
// and r are R×(heads·dim). The softmax is streamed with a running maximum and sum, so blocks of
// sources may come one by one, and nothing is kept of the edges: the backward pass goes through
// them twice, by destination and by source, and computes α again. Weights are not read; a
// destination without edges gets zeros.
type dynamicAttention struct {
	vector  *Param  // heads×dim
	dropout float32 // of α, keyed by destination, source and head
}

// Params returns the vectors of all heads.
func (a *dynamicAttention) Params() []*Param { return []*Param{a.vector} }

// Dims returns the width of all heads twice.
func (a *dynamicAttention) Dims() (in, out int) { return a.width(), a.width() }

// IsSum returns false: α weighs the rows.
func (a *dynamicAttention) IsSum() bool { return false }

// NeedsSource returns true: the gradient of α reads z.
func (a *dynamicAttention) NeedsSource() bool { return true }

func (a *dynamicAttention) width() int { return a.vector.Value.Rows * a.vector.Value.Cols }

// Begin keeps the destinations' rows own, which must stay as they are until BeginGrad.
func (a *dynamicAttention) Begin(acc *Acc, own mat.Dense) {
	if own.Cols != a.width() {
		panic(shapeFault("columns of dynamicAttention's input", own.Cols, a.width()))
	}
	heads := a.vector.Value.Rows
	acc.begin(own.Rows)
	if acc.Train {
		acc.key = acc.Key.FoldString(a.vector.Name)
	}
	acc.sum = acc.take(0, own.Rows, own.Cols)
	acc.sum.Zero()
	acc.stat = acc.take(1, own.Rows, heads) // running maximum, then m + ln s
	for i := range acc.stat.Data {
		acc.stat.Data[i] = float32(math.Inf(-1))
	}
	acc.norm = acc.take(2, own.Rows, heads) // running sum
	acc.norm.Zero()
	acc.dst = own
}

// Add takes in a block of sources z.
func (a *dynamicAttention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("dynamicAttention", acc.rows, g, z)
	w := a.edges(acc, nil, g.RowPtr, g.Col, z)
	w.each((*dynamicEdges).add)
}

// End writes the aggregate to h and leaves in acc what the gradient needs.
func (a *dynamicAttention) End(h mat.Dense, acc *Acc) {
	dim := a.vector.Value.Cols
	for i := range h.Rows {
		sum, stat := acc.sum.Row(i), acc.stat.Row(i)
		for k, s := range acc.norm.Row(i) {
			if s > 0 {
				stat[k] += float32(math.Log(float64(s)))
				scale(1/s, sum[k*dim:(k+1)*dim])
			}
		}
		copy(h.Row(i), sum)
	}
}

// EndGrad computes dh_i·h_i, which the softmax's gradient subtracts. It keeps dh, which must stay
// as it is until the last AddGrad.
func (a *dynamicAttention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	heads, dim := a.vector.Value.Rows, a.vector.Value.Cols
	dacc.begin(dh.Rows)
	dacc.sum = dh
	dacc.stat = dacc.take(1, dh.Rows, heads)
	dacc.dst = dacc.take(3, dh.Rows, dh.Cols)
	dacc.dst.Zero()
	for i := range dh.Rows {
		for k := range heads {
			dacc.stat.Row(i)[k] = dot(dh.Row(i)[k*dim:(k+1)*dim], acc.sum.Row(i)[k*dim:(k+1)*dim])
		}
	}
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z are those given to Add, and to
// the vectors' gradient.
func (a *dynamicAttention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("dynamicAttention", acc.rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	w := a.edges(acc, dacc, g.RowPtr, g.Col, z)
	w.vectors = acc.takeEdges(w.bands() * a.width()) // one a band, added up in order: the same bits for any number of cores
	clear(w.vectors)
	w.each((*dynamicEdges).destinationGrad)
	for k := range w.bands() {
		kernels.Add(w.vectors[k*a.width():(k+1)*a.width()], a.vector.Grad.Data)
	}
	tr := acc.transposes().get(g.RowPtr, g.Col, g.NumSrc)
	w = a.edges(acc, dacc, tr.rowPtr, tr.col, z)
	w.dz = dz
	w.each((*dynamicEdges).sourceGrad)
}

// BeginGrad adds to dOwn the gradient of the destinations' rows.
func (a *dynamicAttention) BeginGrad(dOwn, own mat.Dense, acc, dacc *Acc) { addRows(dOwn, dacc.dst) }

// dynamicEdges is a loop over the edges of a block, grouped by destination or by source, that cores
// share.
type dynamicEdges struct {
	a         *dynamicAttention
	acc, dacc *Acc
	rowPtr    []int64
	col       []int32
	z, dz     mat.Dense
	vectors   []float32
	do        func(w *dynamicEdges, i, band int) // of one row
}

// edges returns the loop of acc, which keeps it from step to step.
func (a *dynamicAttention) edges(acc, dacc *Acc, rowPtr []int64, col []int32, z mat.Dense) *dynamicEdges {
	w, ok := acc.State.(*dynamicEdges)
	if !ok {
		w = new(dynamicEdges)
		acc.State = w
	}
	*w = dynamicEdges{a: a, acc: acc, dacc: dacc, rowPtr: rowPtr, col: col, z: z}
	return w
}

func (w *dynamicEdges) rows() int  { return len(w.rowPtr) - 1 }
func (w *dynamicEdges) band() int  { return max(1, bandLen*w.rows()/max(1, len(w.col)*w.a.width())) }
func (w *dynamicEdges) bands() int { return (w.rows() + w.band() - 1) / w.band() }

func (w *dynamicEdges) each(do func(w *dynamicEdges, i, band int)) {
	w.do = do
	kernels.Parallel(w, w.bands())
}

// Run does one band of rows.
func (w *dynamicEdges) Run(part int) {
	n := w.band()
	for i := part * n; i < min((part+1)*n, w.rows()); i++ {
		w.do(w, i, part)
	}
}

// logit returns vector·LeakyReLU(z_j + r_i) of head k.
func (w *dynamicEdges) logit(i, j, k int) float32 {
	v := w.a.vector.Value.Row(k)
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
func (w *dynamicEdges) kept(i, j, k int) float32 {
	p := w.a.dropout
	switch acc := w.acc; {
	case !acc.Train || p == 0:
		return 1
	case acc.key.Fold(node(acc.Dst, i)).Fold(node(acc.Src, j)).Float64(uint64(k)) < float64(p):
		return 0
	}
	return 1 / (1 - p)
}

// add takes the edges to destination i into its running aggregate.
func (w *dynamicEdges) add(i, _ int) {
	heads, dim := w.a.vector.Value.Rows, w.a.vector.Value.Cols
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
func (w *dynamicEdges) gradient(i, j, k int) (alpha, dropped, d float32) {
	dim := w.a.vector.Value.Cols
	alpha = float32(math.Exp(float64(w.logit(i, j, k) - w.acc.stat.Row(i)[k])))
	dropped = w.kept(i, j, k)
	along := float32(dropped * dot(w.dacc.sum.Row(i)[k*dim:(k+1)*dim], w.z.Row(j)[k*dim:(k+1)*dim]))
	return alpha, dropped * alpha, alpha * (along - w.dacc.stat.Row(i)[k])
}

// destinationGrad adds to the gradients of destination i's row and of the vectors.
func (w *dynamicEdges) destinationGrad(i, band int) {
	heads, dim, n := w.a.vector.Value.Rows, w.a.vector.Value.Cols, w.a.width()
	own, down, vectors := w.acc.dst.Row(i), w.dacc.dst.Row(i), w.vectors[band*n:(band+1)*n]
	for _, j := range w.col[w.rowPtr[i]:w.rowPtr[i+1]] {
		z := w.z.Row(int(j))
		for k := range heads {
			_, _, d := w.gradient(i, int(j), k)
			for c, x := range w.a.vector.Value.Row(k) {
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
func (w *dynamicEdges) sourceGrad(j, _ int) {
	heads, dim := w.a.vector.Value.Rows, w.a.vector.Value.Cols
	z, dz := w.z.Row(j), w.dz.Row(j)
	for _, i := range w.col[w.rowPtr[j]:w.rowPtr[j+1]] {
		own, dh := w.acc.dst.Row(int(i)), w.dacc.sum.Row(int(i))
		for k := range heads {
			_, dropped, d := w.gradient(int(i), j, k)
			for c, x := range w.a.vector.Value.Row(k) {
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
