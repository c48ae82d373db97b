package aggregate

import (
	"cmp"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// dynamicAttention is GATv2's attention: α is the softmax of vector·LeakyReLU(z_j + r_i + e_ij·U) (Brody, Alon and
// Yahav, ICLR 2022, arXiv 2105.14491, eq. 7, and appendix on edge features). r are the destinations' rows,
// R×(heads·dim) like z, and e the columns of the edges, if they are read. The backward pass loops over the edges by
// destination, by source and, if they have columns, by the rows of columns. Both directions of an edge share a row.
type dynamicAttention struct {
	softmax
	vector *tape.Param // heads×dim
	edge   *tape.Param // U, columns×(heads·dim), or nil if edge columns are not read
}

// NewDynamicAttention returns the attention of GATv2 with heads of width dim. columns is how many
// columns edges have.
func NewDynamicAttention(name string, heads, dim, columns int, dropout float32, key rng.Key) Aggregator {
	a := &dynamicAttention{
		softmax: softmax{heads, dim, dropout, name + ".vector"},
		vector:  tape.Glorot(name+".vector", heads, dim, heads, dim, key),
	}
	if columns > 0 {
		a.edge = tape.Glorot(name+".edge", columns, heads*dim, columns, heads*dim, key)
	}
	return a
}

// Params returns the vectors of all heads and the map of the edges' columns, if there is one.
func (a *dynamicAttention) Params() []*tape.Param {
	if a.edge == nil {
		return []*tape.Param{a.vector}
	}
	return []*tape.Param{a.vector, a.edge}
}

// Properties returns the properties of attention, and how many columns of edges it reads.
func (a *dynamicAttention) Properties() Properties {
	p := a.softmax.Properties()
	if a.edge != nil {
		p.EdgeColumns = a.edge.Value.Rows
	}
	return p
}

// Begin keeps the destinations' rows own, which must not change until BeginGrad, and maps the columns of the edges.
func (a *dynamicAttention) Begin(acc *Acc, own mat.Dense) {
	a.begin(acc, own, a.heads)
	acc.dst, acc.edges = own, mat.Dense{}
	if a.edge != nil {
		x, u := acc.EdgeX, a.edge.Value
		if x.Cols != u.Rows {
			panic(shapeFault("columns of the edges for attention", x.Cols, u.Rows))
		}
		acc.edges = acc.take(4, x.Rows, u.Cols)
		y := acc.edges
		kernels.GemmNN(x.Rows, u.Cols, u.Rows, x.Data, x.Stride, u.Data, u.Stride, y.Data, y.Stride, false)
	}
}

// Add adds a block of sources z.
func (a *dynamicAttention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	checkBlock("attention", acc.sum.Rows, g, z)
	a.edges(acc, nil, g, z).each((*loop).add)
}

// EndGrad computes dh_i·h_i and allocates the gradient of the destinations' rows.
func (a *dynamicAttention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.dst = dacc.take(3, dh.Rows, dh.Cols)
	dacc.dst.Zero()
	if a.edge != nil {
		dacc.edges = dacc.take(4, acc.edges.Rows, acc.edges.Cols)
		dacc.edges.Zero()
	}
	a.endGrad(dacc, dh, acc)
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z were given to Add. It also adds the gradients of
// the vectors and of the edges' rows.
func (a *dynamicAttention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	checkBlock("attention", acc.sum.Rows, g, z)
	if len(g.Col) == 0 {
		return
	}
	w, n := a.edges(acc, dacc, g, z), a.width()
	w.vectors = acc.takeEdges(w.bands() * n) // one a band, summed in order: the same bits for any number of cores
	clear(w.vectors)
	w.each((*loop).destinationGrad)
	for k := range w.bands() {
		kernels.Add(w.vectors[k*n:(k+1)*n], a.vector.Grad.Data)
	}
	if a.edge != nil {
		w.uses = usesOf(acc, g)
		w.cut(len(w.uses.rows), len(g.Col))
		w.each((*loop).edgeGrad)
	}
	tr := acc.patterns().Transpose(g.RowPtr, g.Col, g.NumSrc)
	w.rowPtr, w.col, w.places, w.dz = tr.RowPtr, tr.Col, tr.Places(), dz
	w.cut(g.NumSrc, len(g.Col))
	w.each((*loop).sourceGrad)
}

// BeginGrad adds to dOwn the gradient of the destinations' rows, and adds the gradient of the map
// of the edges' columns.
func (a *dynamicAttention) BeginGrad(dOwn, own mat.Dense, acc, dacc *Acc) {
	if a.edge != nil {
		x, d, du := acc.EdgeX, dacc.edges, a.edge.Grad
		kernels.GemmTN(du.Rows, du.Cols, x.Rows, x.Data, x.Stride, d.Data, d.Stride, du.Data, du.Stride, true)
	}
	tape.AddTo(dOwn, dacc.dst)
}

// edges returns the loop over the edges of a block, by destination.
func (a *dynamicAttention) edges(acc, dacc *Acc, g *graph.CSR, z mat.Dense) *loop {
	if a.edge != nil && g.Edge == nil && len(g.Col) > 0 {
		panic("nn: edges must have columns where attention reads them")
	}
	w := &acc.loop
	*w = loop{softmax: &a.softmax, vector: a.vector, acc: acc, dacc: dacc, rowPtr: g.RowPtr, col: g.Col, z: z}
	if a.edge != nil {
		w.edgeOf = g.Edge
	}
	w.cut(g.NumDst, len(g.Col))
	return w
}

// cut cuts the rows into bands of equal length, chosen for about tape.BandLen values of edges each.
func (w *loop) cut(rows, edges int) {
	w.rows, w.band = rows, max(1, tape.BandLen*rows/max(1, edges*w.softmax.width()))
}

// edge returns the mapped columns of the edge at an index of col, or nil if it has none.
func (w *loop) edge(at int64) []float32 {
	if w.edgeOf == nil {
		return nil
	}
	if w.places != nil {
		at = int64(w.places[at])
	}
	if e := w.edgeOf[at]; e >= 0 {
		return w.acc.edges.Row(int(e))
	}
	return nil
}

// input returns column c of LeakyReLU's input, the sum of rows z, own and edge (nil = zeros).
func input(z, own, edge []float32, c int) float32 {
	u := z[c] + own[c]
	if edge != nil {
		u += edge[c]
	}
	return u
}

// logit returns vector·LeakyReLU(z_j + r_i + e) of head k.
func (w *loop) logit(i, j, k int, edge []float32) float32 {
	v := w.vector.Value.Row(k)
	lo := k * len(v)
	z, own := w.z.Row(j)[lo:lo+len(v)], w.acc.dst.Row(i)[lo:lo+len(v)]
	if edge == nil {
		return kernels.LeakyDot(attentionSlope, v, z, own)
	}
	edge = edge[lo : lo+len(v)]
	var s float32
	for c, x := range v {
		u := input(z, own, edge, c)
		if u < 0 {
			u *= attentionSlope
		}
		s += float32(x * u)
	}
	return s
}

// edgeKey returns the key of dropout of the edge (j, i).
func (w *loop) edgeKey(i, j int) rng.Key {
	acc := w.acc
	if !acc.Train || w.softmax.dropout == 0 {
		return rng.Key(0)
	}
	return acc.key.Fold(tape.NodeID(acc.Dst, i)).Fold(tape.NodeID(acc.Src, j))
}

// kept returns the factor that dropout applies to head k's α on the edge with a key: 0, or the inverse of its
// probability.
func (w *loop) kept(key rng.Key, k int) float32 {
	p := w.softmax.dropout
	switch {
	case !w.acc.Train || p == 0:
		return 1
	case key.Float64(uint64(k)) < float64(p):
		return 0
	}
	return 1 / (1 - p)
}

// add adds the edges to destination i to its running aggregate.
func (w *loop) add(i, _ int) {
	heads, dim := w.softmax.heads, w.softmax.dim
	sum, top, norm := w.acc.sum.Row(i), w.acc.stat.Row(i), w.acc.norm.Row(i)
	for at := w.rowPtr[i]; at < w.rowPtr[i+1]; at++ {
		j, edge := w.col[at], w.edge(at)
		key := w.edgeKey(i, int(j))
		for k := range heads {
			h := sum[k*dim : (k+1)*dim]
			s := w.logit(i, int(j), k, edge)
			if s > top[k] {
				less := float32(math.Exp(float64(top[k] - s)))
				top[k] = s
				norm[k] *= less
				scale(less, h)
			}
			p := float32(math.Exp(float64(s - top[k])))
			norm[k] += p
			if p *= w.kept(key, k); p != 0 {
				kernels.Axpy(p, w.z.Row(int(j))[k*dim:(k+1)*dim], h)
			}
		}
	}
}

// gradient returns α, its value after dropout, and the gradient of the logit of head k on the edge (j, i).
func (w *loop) gradient(i, j, k int, edge []float32, key rng.Key) (alpha, dropped, d float32) {
	dim := w.softmax.dim
	alpha = float32(math.Exp(float64(w.logit(i, j, k, edge) - w.acc.stat.Row(i)[k])))
	var along float32
	if dropped = w.kept(key, k); dropped != 0 {
		along = float32(dropped * kernels.Dot(w.dacc.sum.Row(i)[k*dim:(k+1)*dim], w.z.Row(j)[k*dim:(k+1)*dim]))
	}
	return alpha, dropped * alpha, alpha * (along - w.dacc.stat.Row(i)[k])
}

// destinationGrad adds to the gradients of destination i's row and of the vectors.
func (w *loop) destinationGrad(i, band int) {
	heads, dim, n := w.softmax.heads, w.softmax.dim, w.softmax.width()
	own, down, vectors := w.acc.dst.Row(i), w.dacc.dst.Row(i), w.vectors[band*n:(band+1)*n]
	for place := w.rowPtr[i]; place < w.rowPtr[i+1]; place++ {
		j, edge := int(w.col[place]), w.edge(place)
		z, key := w.z.Row(j), w.edgeKey(i, j)
		for k := range heads {
			_, _, d := w.gradient(i, j, k, edge, key)
			if lo, hi := k*dim, (k+1)*dim; edge == nil {
				kernels.LeakyDotGrad(d, attentionSlope, w.vector.Value.Row(k), z[lo:hi], own[lo:hi], vectors[lo:hi],
					down[lo:hi])
				continue
			}
			for c, x := range w.vector.Value.Row(k) {
				at := k*dim + c
				u, slope := input(z, own, edge, at), float32(1)
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
	for place := w.rowPtr[j]; place < w.rowPtr[j+1]; place++ {
		i, edge := int(w.col[place]), w.edge(place)
		own, dh, key := w.acc.dst.Row(i), w.dacc.sum.Row(i), w.edgeKey(i, j)
		for k := range heads {
			_, dropped, d := w.gradient(i, j, k, edge, key)
			if lo, hi := k*dim, (k+1)*dim; edge == nil {
				kernels.LeakySourceGrad(dropped, d, attentionSlope, dh[lo:hi], w.vector.Value.Row(k), z[lo:hi],
					own[lo:hi], dz[lo:hi])
				continue
			}
			for c, x := range w.vector.Value.Row(k) {
				at := k*dim + c
				slope := float32(1)
				if input(z, own, edge, at) < 0 {
					slope = attentionSlope
				}
				dz[at] += float32(dropped*dh[at]) + float32(d*slope*x)
			}
		}
	}
}

// edgeUses lists the edges of a block by their row of the edges' columns.
type edgeUses struct {
	rows       []int32 // used rows of the columns, ascending
	ptr        []int64 // edges [ptr[k], ptr[k+1]) of the lists below have row k
	place, dst []int32
}

// usesOf returns the uses of a block, which acc caches.
func usesOf(acc *Acc, g *graph.CSR) *edgeUses {
	return tape.Remember(acc.patterns(), g.RowPtr, g.Col, g.NumSrc, func() *edgeUses {
		u, dst := &edgeUses{ptr: []int64{0}}, make([]int32, len(g.Col))
		for i := range g.NumDst {
			for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
				dst[k] = int32(i)
				if g.Edge[k] >= 0 {
					u.place = append(u.place, int32(k))
				}
			}
		}
		slices.SortStableFunc(u.place, func(a, b int32) int { return cmp.Compare(g.Edge[a], g.Edge[b]) })
		for n, k := range u.place {
			u.dst = append(u.dst, dst[k])
			if n+1 == len(u.place) || g.Edge[u.place[n+1]] != g.Edge[k] {
				u.rows, u.ptr = append(u.rows, g.Edge[k]), append(u.ptr, int64(n+1))
			}
		}
		return u
	})
}

// edgeGrad adds to the gradient of the n-th used row of the mapped columns.
func (w *loop) edgeGrad(n, _ int) {
	heads, dim := w.softmax.heads, w.softmax.dim
	row := int(w.uses.rows[n])
	edge, down := w.acc.edges.Row(row), w.dacc.edges.Row(row)
	for at := w.uses.ptr[n]; at < w.uses.ptr[n+1]; at++ {
		i, j := int(w.uses.dst[at]), int(w.col[w.uses.place[at]])
		z, own, key := w.z.Row(j), w.acc.dst.Row(i), w.edgeKey(i, j)
		for k := range heads {
			_, _, d := w.gradient(i, j, k, edge, key)
			for c, x := range w.vector.Value.Row(k) {
				c += k * dim
				slope := float32(1)
				if input(z, own, edge, c) < 0 {
					slope = attentionSlope
				}
				down[c] += float32(d * slope * x)
			}
		}
	}
}
