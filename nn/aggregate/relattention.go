package aggregate

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// relationalAttention is graph attention over the edges of R relations, for each head
//
//	h_i = Σ_r Σ_j α_ijr g_jr,  g_jr = z_j·W_r,  α_ijr = softmax over j and r of LeakyReLU(q_r·g_ir + k_r·g_jr)
//
// (Busbridge, Sherburn, Cavallo and Hammerla, 2019, arXiv 1904.05811, eqs. 3, 4 and 6: additive
// logits, one softmax over all relations): z is S×in, h D×(heads·dim). A block has R·D rows,
// relation by relation (graph.Relations). Weights of edges are not read.
//
// A relation's rows are multiplied when its edges are visited, in both passes, so that no more than
// one relation's are held.
type relationalAttention struct {
	softmax
	maps     matrices
	dst, src *tape.Param // (R·heads)×dim: q and k
}

// NewRelationalAttention returns the attention of RGAT with heads of width dim.
func NewRelationalAttention(name string, in, relations, heads, dim int, bases int, dropout float32,
	key rng.Key) SparseAggregator {
	return &relationalAttention{
		softmax: softmax{heads, dim, dropout, name + ".src"},
		maps:    newMatrices(name, in, heads*dim, relations, bases, key),
		dst:     tape.Glorot(name+".dst", relations*heads, dim, heads, dim, key),
		src:     tape.Glorot(name+".src", relations*heads, dim, heads, dim, key),
	}
}

// Params returns the matrices and the two vectors of every relation and head.
func (a *relationalAttention) Params() []*tape.Param { return append(a.maps.params(), a.dst, a.src) }

// Dims returns the widths of z and h.
func (a *relationalAttention) Dims() (in, out int) { return a.maps.in, a.maps.out }

// attended is one relation of a block: its edges, and the destinations and sources with such edges.
type attended struct {
	kind     int
	dst, src []int32
	g, back  *graph.CSR // len(dst)×len(src), and its transpose
	perm     []int64    // [edge of back] its index in g
}

type attendedCut struct {
	of          []attended
	dst, src, e int // largest numbers in a relation
}

// cut splits a block of R·D rows into its relations, without those that have no edges.
func (a *relationalAttention) cut(acc *Acc, g *graph.CSR) *attendedCut {
	if g.NumDst != a.maps.relations*acc.sum.Rows {
		panic(shapeFault("rows of a block for attention over relations", g.NumDst, a.maps.relations*acc.sum.Rows))
	}
	if len(g.Col) == 0 {
		return &attendedCut{}
	}
	return tape.Remember(acc.patterns(), g.RowPtr, g.Col, g.NumSrc, func() *attendedCut {
		c, to := new(attendedCut), make([]int32, g.NumSrc)
		for k := range a.maps.relations {
			one := g.Relation(k, a.maps.relations)
			if len(one.Col) == 0 {
				continue
			}
			r := attended{kind: k}
			for j := range to {
				to[j] = -1
			}
			for i := range one.NumDst {
				col, _ := one.Row(i)
				if len(col) > 0 {
					r.dst = append(r.dst, int32(i))
				}
				for _, j := range col {
					to[j] = 0
				}
			}
			for j := range to {
				if to[j] == 0 {
					to[j] = int32(len(r.src))
					r.src = append(r.src, int32(j))
				}
			}
			r.g = one.Relabel(r.dst, to, len(r.src))
			r.perm = make([]int64, len(r.g.Col))
			r.back = r.g.Transpose(r.perm)
			c.of = append(c.of, r)
			c.dst, c.src, c.e = max(c.dst, len(r.dst)), max(c.src, len(r.src)), max(c.e, len(r.g.Col))
		}
		return c
	})
}

// Begin keeps the destinations' rows own, which must not change until BeginGrad.
func (a *relationalAttention) Begin(acc *Acc, own mat.Dense) {
	if own.Cols != a.maps.in {
		panic(shapeFault("columns of attention's input", own.Cols, a.maps.in))
	}
	a.begin(acc, own.Rows)
	acc.dst = own
}

// begin makes the running state of the softmax and computes the matrices.
func (a *relationalAttention) begin(acc *Acc, rows int) {
	a.start(acc, rows, a.heads)
	a.maps.begin(acc)
}

// Add adds a block of sources z.
func (a *relationalAttention) Add(acc *Acc, g *graph.CSR, z mat.Dense) {
	a.add(acc, g, &denseRows{z: z, own: acc.dst})
}

// EndGrad computes dh_i·h_i and allocates the gradient of the destinations' rows.
func (a *relationalAttention) EndGrad(dacc *Acc, dh mat.Dense, acc *Acc) {
	dacc.dst = dacc.take(3, dh.Rows, a.maps.in)
	dacc.dst.Zero()
	a.maps.beginGrad(dacc)
	a.endGrad(dacc, dh, acc)
}

// AddGrad adds to dz the gradient of a block's sources, whose rows z were given to Add. It also adds the gradients of
// the parameters.
func (a *relationalAttention) AddGrad(dz mat.Dense, g *graph.CSR, z mat.Dense, acc, dacc *Acc) {
	a.addGrad(g, acc, dacc, &denseRows{z: z, own: acc.dst, dz: dz, dOwn: dacc.dst})
}

// BeginGrad adds to dOwn the gradient of the destinations' rows, and the gradient of the matrices
// to the gradients of bases and coefficients.
func (a *relationalAttention) BeginGrad(dOwn, own mat.Dense, acc, dacc *Acc) {
	a.maps.endGrad(dacc)
	tape.AddTo(dOwn, dacc.dst)
}

// SumSparse writes the result of Begin, Add and End over sparse rows x to h.
func (a *relationalAttention) SumSparse(h mat.Dense, g *graph.CSR, x *mat.Sparse, t *tape.Tape) {
	acc := newAcc(t)
	acc.Train, acc.Infer, acc.Dst, acc.Src = t.Training(), !t.Training(), nil, nil
	if t != nil {
		acc.Key, acc.Dst, acc.Src = t.Key, t.Nodes, t.Nodes
	}
	a.begin(acc, h.Rows)
	a.add(acc, g, &sparseRows{x: x, t: t})
	a.End(h, acc)
	t.Push(tape.Entry{State: acc, Sparse: x})
}

// SumSparseGrad adds to the gradients of the parameters.
func (a *relationalAttention) SumSparseGrad(dh mat.Dense, g *graph.CSR, t *tape.Tape) {
	e := t.Pop()
	acc, dacc := e.State.(*Acc), newAcc(t)
	a.maps.beginGrad(dacc)
	a.endGrad(dacc, dh, acc)
	a.addGrad(g, acc, dacc, &sparseRows{x: e.Sparse, t: t})
	a.maps.endGrad(dacc)
}

// relationRows are the rows of a block's sources and destinations. They are multiplied for one relation at a time.
type relationRows interface {
	// sources writes z_j·w_r of the sources of r to y.
	sources(y mat.Dense, m *matrices, weights mat.Dense, r *attended)
	// destinations writes own_i·u of the destinations of r to q; u is in×heads.
	destinations(q, u mat.Dense, r *attended)
	// sourcesGrad and destinationsGrad are their backward passes.
	sourcesGrad(dy mat.Dense, m *matrices, weights, grads mat.Dense, r *attended)
	destinationsGrad(dq, u, du mat.Dense, r *attended)
}

// relAttention is one pass over the edges of one relation, whose bands of rows cores share.
type relAttention struct {
	a              *relationalAttention
	r              *attended
	acc, dacc      *Acc
	g, q, k, u     mat.Dense // g_jr of the sources, the parts of the logits, and W_r·q_r
	dg, dq, dk, du mat.Dense
	down, drop     mat.Dense // [edge × head] gradient of the logit; α after dropout
	key            rng.Key   // of dropout
	band           int
	rows           int
	do             func(w *relAttention, i int)
}

// Run processes one band of rows.
func (w *relAttention) Run(part int) {
	for i := part * w.band; i < min((part+1)*w.band, w.rows); i++ {
		w.do(w, i)
	}
}

// each calls do for each of the rows, in bands with equal numbers of rows that cores share.
func (w *relAttention) each(rows int, do func(w *relAttention, i int)) {
	w.rows, w.do = rows, do
	w.band = max(1, tape.BandLen*rows/max(1, len(w.r.g.Col)*w.a.width()))
	kernels.Parallel(w, (rows+w.band-1)/w.band)
}

// prepare computes g_jr and the parts of the logits, in the block's memory.
func (w *relAttention) prepare(c *attendedCut, r *attended, rows relationRows, backward bool) {
	a, acc := w.a, w.acc
	n, m, width, in := len(r.dst), len(r.src), a.width(), a.maps.in
	size := c.src*(width+a.heads) + (c.dst+in)*a.heads
	if backward {
		size = 2*size + 2*c.e*a.heads
	}
	room := acc.takeEdges(size)
	take := func(rows, cols int) mat.Dense {
		d := mat.View(rows, cols, room[:rows*cols])
		room = room[rows*cols:]
		return d
	}
	w.r, w.key = r, acc.key.Fold(uint64(r.kind))
	w.g, w.q, w.k = take(m, width), take(n, a.heads), take(m, a.heads)
	w.u = take(in, a.heads)
	rows.sources(w.g, &a.maps, acc.weight, r)
	a.projected(w.u, a.maps.of(acc.weight, r.kind), r.kind)
	rows.destinations(w.q, w.u, r)
	for j := range m {
		for h := range a.heads {
			w.k.Row(j)[h] = dot(a.vector(a.src.Value, r.kind, h), w.g.Row(j)[h*a.dim:(h+1)*a.dim])
		}
	}
	if backward {
		w.dg, w.dq, w.dk, w.du = take(m, width), take(n, a.heads), take(m, a.heads), take(in, a.heads)
		w.du.Zero()
		w.down, w.drop = take(len(r.g.Col), a.heads), take(len(r.g.Col), a.heads)
	}
}

// vector returns the vector of head h of relation r.
func (a *relationalAttention) vector(m mat.Dense, r, h int) []float32 { return m.Row(r*a.heads + h) }

// projected writes to u, in×heads, W_r·q_r: own·u are the destinations' parts of the logits.
func (a *relationalAttention) projected(u, w mat.Dense, r int) {
	for c := range w.Rows {
		for h := range a.heads {
			u.Row(c)[h] = dot(a.vector(a.dst.Value, r, h), w.Row(c)[h*a.dim:(h+1)*a.dim])
		}
	}
}

// projectedGrad adds the contribution of du to the gradients of W_r and q_r.
func (a *relationalAttention) projectedGrad(du, w, dw mat.Dense, r int) {
	for c := range w.Rows {
		for h := range a.heads {
			d, lo, hi := du.At(c, h), h*a.dim, (h+1)*a.dim
			axpy(d, w.Row(c)[lo:hi], a.vector(a.dst.Grad, r, h))
			axpy(d, a.vector(a.dst.Value, r, h), dw.Row(c)[lo:hi])
		}
	}
}

// add adds the edges of a block, relation by relation.
func (a *relationalAttention) add(acc *Acc, g *graph.CSR, rows relationRows) {
	c := a.cut(acc, g)
	w := relAttention{a: a, acc: acc}
	for k := range c.of {
		w.prepare(c, &c.of[k], rows, false)
		w.each(len(w.r.dst), (*relAttention).forward)
	}
}

// logit returns the logit of head h on an edge, and the derivative of LeakyReLU there.
func (w *relAttention) logit(i, j, h int) (s, slope float32) {
	s = w.q.At(i, h) + w.k.At(j, h)
	if s < 0 {
		return s * attentionSlope, attentionSlope
	}
	return s, 1
}

// kept returns the factor that dropout applies to head h's α on an edge.
func (w *relAttention) kept(i, j, h int) float32 {
	p, acc := w.a.dropout, w.acc
	switch {
	case !acc.Train || p == 0:
		return 1
	case w.key.Fold(tape.NodeID(acc.Dst, int(w.r.dst[i]))).Fold(tape.NodeID(acc.Src,
		int(w.r.src[j]))).Float64(uint64(h)) < float64(p):
		return 0
	}
	return 1 / (1 - p)
}

// forward adds the edges to destination i to its running aggregate.
func (w *relAttention) forward(i int) {
	dim, at := w.a.dim, int(w.r.dst[i])
	sum, top, norm := w.acc.sum.Row(at), w.acc.stat.Row(at), w.acc.norm.Row(at)
	col, _ := w.r.g.Row(i)
	for h := range w.a.heads {
		out := sum[h*dim : (h+1)*dim]
		for _, j := range col {
			s, _ := w.logit(i, int(j), h)
			if s > top[h] {
				less := float32(math.Exp(float64(top[h] - s)))
				top[h] = s
				norm[h] *= less
				scale(less, out)
			}
			p := float32(math.Exp(float64(s - top[h])))
			norm[h] += p
			axpy(p*w.kept(i, int(j), h), w.g.Row(int(j))[h*dim:(h+1)*dim], out)
		}
	}
}

// addGrad is the backward pass of add.
func (a *relationalAttention) addGrad(g *graph.CSR, acc, dacc *Acc, rows relationRows) {
	c := a.cut(acc, g)
	w := relAttention{a: a, acc: acc, dacc: dacc}
	for n := range c.of {
		w.prepare(c, &c.of[n], rows, true)
		r := w.r
		w.each(len(r.dst), (*relAttention).destinationGrad)
		w.each(len(r.src), (*relAttention).sourceGrad)
		for j := range r.src {
			for h := range a.heads {
				lo, hi := h*a.dim, (h+1)*a.dim
				axpy(w.dk.At(j, h), w.g.Row(j)[lo:hi], a.vector(a.src.Grad, r.kind, h))
				axpy(w.dk.At(j, h), a.vector(a.src.Value, r.kind, h), w.dg.Row(j)[lo:hi])
			}
		}
		rows.sourcesGrad(w.dg, &a.maps, acc.weight, dacc.weight, r)
		rows.destinationsGrad(w.dq, w.u, w.du, r)
		a.projectedGrad(w.du, a.maps.of(acc.weight, r.kind), a.maps.of(dacc.weight, r.kind), r.kind)
	}
}

// destinationGrad computes the gradients of the logits of the edges to destination i, and of its
// own parts of them.
func (w *relAttention) destinationGrad(i int) {
	dim, at := w.a.dim, int(w.r.dst[i])
	dh, log, base := w.dacc.sum.Row(at), w.acc.stat.Row(at), w.dacc.stat.Row(at)
	dq := w.dq.Row(i)
	clear(dq)
	for e := w.r.g.RowPtr[i]; e < w.r.g.RowPtr[i+1]; e++ {
		j := int(w.r.g.Col[e])
		down, drop := w.down.Row(int(e)), w.drop.Row(int(e))
		for h := range dq {
			s, slope := w.logit(i, j, h)
			alpha, kept := float32(math.Exp(float64(s-log[h]))), w.kept(i, j, h)
			along := kept * dot(dh[h*dim:(h+1)*dim], w.g.Row(j)[h*dim:(h+1)*dim])
			drop[h] = kept * alpha
			down[h] = alpha * (along - base[h]) * slope
			dq[h] += down[h]
		}
	}
}

// sourceGrad computes the gradient of g_jr and of its parts of the logits. It omits the gradient of g_jr through its
// logits.
func (w *relAttention) sourceGrad(j int) {
	dim, dg, dk := w.a.dim, w.dg.Row(j), w.dk.Row(j)
	clear(dg)
	clear(dk)
	for e := w.r.back.RowPtr[j]; e < w.r.back.RowPtr[j+1]; e++ {
		dh := w.dacc.sum.Row(int(w.r.dst[w.r.back.Col[e]]))
		down, drop := w.down.Row(int(w.r.perm[e])), w.drop.Row(int(w.r.perm[e]))
		for h := range dk {
			axpy(drop[h], dh[h*dim:(h+1)*dim], dg[h*dim:(h+1)*dim])
			dk[h] += down[h]
		}
	}
}

// axpy adds a·x to y, both with the few columns of one head.
func axpy(a float32, x, y []float32) {
	y = y[:len(x)]
	for c, v := range x {
		y[c] += float32(a * v)
	}
}
