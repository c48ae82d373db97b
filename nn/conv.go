package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// Conv is y = Post(Self(x) + Nbr(Agg(Pre(x)))): x the rows of a block's sources, y those of its destinations. Self nil
// leaves its term out; Pre, Nbr and Post nil are identities; Agg nil means that there is no neighbour term.
type Conv struct {
	Pre, Self, Nbr, Post Rows
	Agg                  Aggregator
	Teleport             float32 // not 0: the share of Pre's rows in what each hop puts out (NewAPPNP)
	Relations            int     // of typed edges, of which a block has that many rows a destination; 0: they have no types
	Hops                 int     // times Agg is applied, 0 meaning 1; more than once only on a whole graph
}

// NewGCN is y_i = Σ_j ã_ij x_j·W + b over a graph normalised by graph.GCN (Kipf and Welling, ICLR 2017, eq. 2).
func NewGCN(name string, in, out int, key rng.Key) Conv {
	return Conv{Agg: Sum{}, Nbr: NewLinear(name+".nbr", in, out, true, key)}
}

// NewSAGE is y_i = x_i·W₁ + mean_j x_j·W₂ + b over a graph normalised by graph.Mean (Hamilton, Ying and Leskovec,
// NeurIPS 2017, algorithm 1, with the mean aggregator).
func NewSAGE(name string, in, out int, key rng.Key) Conv {
	return Conv{Self: NewLinear(name+".self", in, out, false, key), Agg: Sum{}, Nbr: NewLinear(name+".nbr", in, out, true, key)}
}

// NewSAGEPool is y_i = x_i·W₁ + max_j ReLU(x_j·P + c)·W₂ + b (the same, eq. 3); the pooled rows are as wide as y.
func NewSAGEPool(name string, in, out int, key rng.Key) Conv {
	return Conv{
		Pre:  Stack{NewLinear(name+".pre", in, out, true, key), ReLU{}},
		Self: NewLinear(name+".self", in, out, false, key), Agg: Max{}, Nbr: NewLinear(name+".nbr", out, out, true, key),
	}
}

// NewGAT is y_i = Σ_j α_ij x_j·W + b, for each head, over a graph with self-loops (Veličković et al., ICLR 2018). out is
// the width of y: all heads side by side, or that of their mean.
func NewGAT(name string, in, out, heads int, average bool, dropout float32, key rng.Key) Conv {
	c := Conv{Post: &Bias{newParam(name+".post.bias", 1, out, 0)}}
	dim := out / heads
	if average {
		dim = out
		c.Nbr = HeadMean{heads, dim}
	}
	c.Pre = NewLinear(name+".pre", in, heads*dim, false, key)
	c.Agg = NewAttention(name+".attention", heads, dim, dropout, key)
	return c
}

// NewGIN is y_i = ReLU((x_i + Σ_j x_j)·W₁ + b₁)·W₂ + b₂ over a graph with self-loops: GIN-0, the variant without ε that
// its authors found to generalise best (Xu et al., ICLR 2019, eq. 4.1 and §7).
func NewGIN(name string, in, out int, key rng.Key) Conv {
	return Conv{
		Agg: Sum{}, Nbr: NewLinear(name+".nbr", in, out, true, key),
		Post: Stack{ReLU{}, NewLinear(name+".post", out, out, true, key)},
	}
}

// NewRGCN is y_i = x_i·W₀ + b + Σ_r mean_{j∈N_r(i)} x_j·W_r over typed edges normalised by graph.Mean, the W_r combined of
// that many bases, or free where there are none (Schlichtkrull et al., ESWC 2018, eqs. 2 and 3).
func NewRGCN(name string, in, out, relations, bases int, key rng.Key) Conv {
	return Conv{Self: NewLinear(name+".self", in, out, true, key), Agg: NewRelational(name+".nbr", in, out, relations, bases, key), Relations: relations}
}

// NewMLP is y_i = x_i·W + b, without edges.
func NewMLP(name string, in, out int, key rng.Key) Conv {
	return Conv{Self: NewLinear(name+".self", in, out, true, key)}
}

// endWithoutBias leaves out the bias that is added last. A BatchNorm would take it away again, and its gradient would be
// nothing but rounding, by which an Adam step moves it as far as by any other.
func (c *Conv) endWithoutBias() {
	switch last := c.Post.(type) {
	case *Bias:
		c.Post = nil
		return
	case Stack:
		last[len(last)-1].(*Linear).B = nil
		return
	}
	switch {
	case c.Nbr != nil:
		c.Nbr.(*Linear).B = nil
	case c.Teleport > 0: // what Pre adds does not reach all rows alike
	default:
		switch self := c.Self.(type) {
		case *Linear:
			self.B = nil
		case *Beside:
			self.B = nil
		}
	}
}

// Params returns the parameters of Pre, Self, Agg, Nbr and Post.
func (c *Conv) Params() []*Param {
	var all []*Param
	if c.Pre != nil {
		all = append(all, c.Pre.Params()...)
	}
	if c.Self != nil {
		all = append(all, c.Self.Params()...)
	}
	if c.Agg != nil {
		all = append(all, c.Agg.Params()...)
	}
	if c.Nbr != nil {
		all = append(all, c.Nbr.Params()...)
	}
	if c.Post != nil {
		all = append(all, c.Post.Params()...)
	}
	return all
}

// Frozen reports whether the aggregate of a constant input is constant.
func (c *Conv) Frozen() bool { return c.Pre == nil && (c.Agg == nil || len(c.Agg.Params()) == 0) }

// Forward writes y. Where in.G is nil, in.Z is the aggregate of the destinations in.X.
func (c *Conv) Forward(y mat.Dense, in Input, t *Tape) {
	sum := y // what Post takes
	if c.Post != nil && !isBias(c.Post) {
		width, _ := c.Post.Dims()
		sum = t.raw(y.Rows, width)
	}
	if c.Self != nil {
		forward(c.Self, sum, firstRows(in.X, y.Rows, t), t)
	}
	kept := entry{graph: in.G, far: in.Far}
	switch add := c.Self != nil; {
	case c.Agg == nil:
	case c.Teleport > 0:
		c.propagate(sum, in, t)
	case in.G == nil:
		c.project(sum, in.Z, add, t)
	default:
		kept.flag, kept.sparse = c.projectsFirst(in), in.X.Sparse
		if kept.flag {
			c.projectThenSum(sum, in, add, t)
		} else {
			c.aggregateThenProject(sum, in, add, t)
		}
	}
	t.push(kept)
	if c.Post != nil {
		c.Post.Forward(y, sum, t)
	}
}

// Backward takes what Forward kept and adds to dx, the gradient of the rows of X, unless it is empty.
func (c *Conv) Backward(dx, dy mat.Dense, t *Tape) { c.backward(dx, dy, false, nil, t) }

// backward is Backward; over says that dx is X's memory, whose place the gradient takes. Where keepsSum, fill makes X there
// once dy has been read, which may lie there till then.
func (c *Conv) backward(dx, dy mat.Dense, over bool, fill func(), t *Tape) {
	m := t.arena.at
	sum := dy
	switch {
	case c.Post == nil:
	case isBias(c.Post):
		c.Post.Backward(mat.Dense{}, dy, t)
	default:
		width, _ := c.Post.Dims()
		sum = t.Scratch(dy.Rows, width)
		c.Post.Backward(sum, dy, t)
	}
	switch kept := t.pop(); {
	case over:
		c.backwardOver(dx, sum, kept, fill, t)
		t.arena.release(m)
		return
	case c.Agg == nil:
	case c.Teleport > 0:
		c.propagateGrad(dx, sum, kept.graph, kept.far, t)
	case kept.graph == nil:
		if c.Nbr != nil { // an aggregate that was given is a constant
			c.Nbr.Backward(mat.Dense{}, sum, t)
		}
	case kept.flag:
		c.projectThenSumGrad(dx, sum, kept.graph, kept.far, t)
	default:
		c.aggregateThenProjectGrad(dx, sum, kept, t)
	}
	if c.Self != nil {
		own := dx
		if !dx.Empty() {
			own = dx.RowRange(0, dy.Rows)
		}
		c.Self.Backward(own, sum, t)
	}
	t.arena.release(m)
}

// fitsOver reports whether the gradient of X can take X's place: what reads X are Linears and a sum over edges, or one Linear in
// front of the aggregator.
func (c *Conv) fitsOver() bool {
	linear := func(op Rows) bool { _, ok := op.(*Linear); return ok }
	if c.Teleport > 0 || c.Hops > 1 || c.Relations > 0 || c.Self != nil && !linear(c.Self) {
		return false
	}
	_, sum := c.Agg.(Sum)
	return c.Agg == nil || sum && c.Pre == nil && linear(c.Nbr) || !sum && linear(c.Pre)
}

// keepsSum reports whether what the convolution puts out is an attention's aggregate, which that keeps, and a bias.
func (c *Conv) keepsSum() bool {
	_, attention := c.Agg.(*Attention)
	_, linear := c.Pre.(*Linear)
	return attention && linear && c.Self == nil && c.Nbr == nil && c.Hops <= 1 && c.Post != nil && isBias(c.Post)
}

// backwardOver is backward where fitsOver: the gradients of what multiplies X first, then that of X in its place.
func (c *Conv) backwardOver(dx, dy mat.Dense, kept entry, fill func(), t *Tape) {
	own := dx.RowRange(0, dy.Rows)
	self, _ := c.Self.(*Linear)
	selfGrad := func(add bool) {
		switch {
		case self != nil:
			self.inputGrad(own, dy, add)
		case !add:
			own.Zero()
		}
	}
	selfWeights := func() {
		if self != nil {
			biasGrad(self.B, dy)
			self.weightGrad(dy, t)
		}
	}
	nbr, _ := c.Nbr.(*Linear)
	switch {
	case c.Agg == nil:
		selfWeights()
		selfGrad(false)
		return
	case kept.graph == nil:
		if c.Nbr != nil {
			c.Nbr.Backward(mat.Dense{}, dy, t)
		}
		selfWeights()
		selfGrad(false)
	case kept.flag: // X·W is summed
		biasGrad(nbr.B, dy)
		d := t.Scratch(dx.Rows, dy.Cols)
		sumOverGrad(d, kept.graph, kept.far, dy, t)
		nbr.weightGrad(d, t)
		selfWeights()
		nbr.inputGrad(dx, d, false)
		selfGrad(true)
	case c.Pre == nil: // sums of X are multiplied
		d := nbr.backwardOver(dy, t)
		selfWeights()
		selfGrad(false)
		dx.RowRange(dy.Rows, dx.Rows).Zero()
		sumOverGrad(dx, kept.graph, kept.far, d, t)
	default:
		pre := c.Pre.(*Linear)
		_, width := pre.Dims()
		dz, d := t.Scratch(dx.Rows, width), dy
		if c.Nbr != nil {
			in, _ := c.Nbr.Dims()
			d = t.Scratch(dy.Rows, in)
			c.Nbr.Backward(d, dy, t)
		}
		c.aggregateGrad(dz, d, kept.graph, kept.far, t)
		if c.keepsSum() {
			fill()
		}
		biasGrad(pre.B, dz)
		pre.weightGrad(dz, t)
		selfWeights()
		pre.inputGrad(dx, dz, false)
		selfGrad(true)
	}
}

// project writes Nbr(z) to y, or adds it.
func (c *Conv) project(y mat.Dense, z graph.Features, add bool, t *Tape) {
	switch lin, ok := c.Nbr.(*Linear); {
	case ok:
		lin.product(y, z, add, lin.B, t)
	case c.Nbr == nil && !add:
		y.CopyFrom(z.Dense)
	case c.Nbr == nil:
		addRows(y, z.Dense)
	case add:
		s := t.raw(y.Rows, y.Cols)
		forward(c.Nbr, s, z, t)
		addRows(y, s)
	default:
		forward(c.Nbr, y, z, t)
	}
}

// projectThenSum writes A(x·W) + b to y, or adds it.
func (c *Conv) projectThenSum(y mat.Dense, in Input, add bool, t *Tape) {
	lin, g := c.Nbr.(*Linear), in.G
	_, out := lin.Dims()
	var m mark
	if t != nil {
		m = t.arena.at
	}
	z := t.raw(g.NumSrc, out)
	lin.product(z, in.X, false, nil, t)
	for range c.hops(g) - 1 {
		next := t.raw(g.NumDst, out)
		sumOver(next, g, in.Far, z, false)
		z = next
	}
	sumOver(y, g, in.Far, z, add)
	addBias(y, lin.B)
	if t != nil {
		t.arena.release(m)
	}
}

func (c *Conv) projectThenSumGrad(dx, dy mat.Dense, g *graph.CSR, far Far, t *Tape) {
	lin := c.Nbr.(*Linear)
	biasGrad(lin.B, dy)
	for range c.hops(g) {
		d := t.Scratch(g.NumSrc, dy.Cols)
		sumOverGrad(d, g, far, dy, t)
		dy = d
	}
	lin.productGrad(dx, dy, t)
}

// dsts returns the number of destinations of a block.
func (c *Conv) dsts(g *graph.CSR) int { return g.NumDst / max(c.Relations, 1) }

// aggregateThenProject writes Nbr(Agg(Pre(x))) to y, or adds it.
func (c *Conv) aggregateThenProject(y mat.Dense, in Input, add bool, t *Tape) {
	z := in.X.Dense
	if a, ok := c.Agg.(*Relational); ok && in.X.Sparse != nil && c.Pre == nil {
		if in.Far != nil {
			panic("nn: sparse rows of far sources; they come once, to be near")
		}
		z = t.raw(y.Rows, y.Cols)
		a.sumSparse(z, in.G, in.X.Sparse, t)
		c.project(y, graph.Features{Dense: z}, add, t)
		return
	}
	if c.Pre != nil {
		z = t.raw(in.X.Rows(), outWidth(c.Pre, in.X.Cols()))
		forward(c.Pre, z, in.X, t)
	}
	for hop := range c.hops(in.G) {
		h := y // where nothing is to be done with the last aggregate, it is y
		if hop < c.hops(in.G)-1 || c.Nbr != nil || add {
			h = t.raw(c.dsts(in.G), aggWidth(c.Agg, z.Cols))
		}
		c.aggregate(h, in, z, t)
		z = h
	}
	if c.Nbr != nil || add {
		c.project(y, graph.Features{Dense: z}, add, t)
	}
}

func (c *Conv) aggregateThenProjectGrad(dx, dy mat.Dense, kept entry, t *Tape) {
	g, far := kept.graph, kept.far
	wanted := dx.Cols > 0 || !c.Frozen() // a worker without rows takes part all the same
	switch lin, ok := c.Nbr.(*Linear); {
	case ok && wanted:
		dy = lin.backwardOver(dy, t) // the aggregate was the layer's own
	case c.Nbr != nil:
		var d mat.Dense
		if wanted {
			width, _ := c.Nbr.Dims()
			d = t.Scratch(dy.Rows, width)
		}
		c.Nbr.Backward(d, dy, t)
		dy = d
	}
	if a, ok := c.Agg.(*Relational); ok && kept.sparse != nil && c.Pre == nil {
		a.sumSparseGrad(dy, g, t)
		return
	}
	for hop := c.hops(g); hop > 0; hop-- {
		var dz mat.Dense
		switch {
		case hop == 1 && c.Pre == nil && dx.Cols > 0:
			dz = dx
		case wanted:
			width, _ := c.Agg.Dims()
			if width == 0 {
				width = dy.Cols
			}
			dz = t.Scratch(g.NumSrc, width)
		}
		c.aggregateGrad(dz, dy, g, far, t)
		dy = dz
	}
	if c.Pre != nil {
		c.Pre.Backward(dx, dy, t)
	}
}

// aggregate writes the aggregate of all of z to h.
func (c *Conv) aggregate(h mat.Dense, in Input, z mat.Dense, t *Tape) {
	g := in.G
	if _, ok := c.Agg.(Sum); ok {
		checkBlock("Sum", h.Rows, g, z)
		sumOver(h, g, in.Far, z, false)
		return
	}
	acc := t.acc()
	acc.Train, acc.Infer, acc.Dst, acc.Src = t.training(), !t.training(), in.Nodes, in.Nodes
	if a, ok := c.Agg.(*Attention); ok && t.training() {
		acc.Key = t.Key.FoldString(a.Src.Name)
	}
	c.Agg.Begin(acc, z.RowRange(0, c.dsts(g)))
	if in.Far == nil {
		c.Agg.Add(acc, g, z)
	} else {
		addFar(c.Agg, acc, in, z)
	}
	c.Agg.End(h, acc)
	t.push(entry{acc: acc, x: z, nodes: in.Nodes})
}

// aggregateGrad adds to dz (empty: not wanted).
func (c *Conv) aggregateGrad(dz, dh mat.Dense, g *graph.CSR, far Far, t *Tape) {
	if _, ok := c.Agg.(Sum); ok {
		sumOverGrad(dz, g, far, dh, t)
		return
	}
	e := t.pop()
	if dz.Cols == 0 {
		return
	}
	dacc := t.acc()
	c.Agg.EndGrad(dacc, dh, e.acc)
	if far == nil {
		c.Agg.AddGrad(dz, g, e.x, e.acc, dacc)
	} else {
		addFarGrad(c.Agg, dz, g, e.nodes, far, e.x, e.acc, dacc)
	}
	c.Agg.BeginGrad(dz.RowRange(0, c.dsts(g)), e.x.RowRange(0, c.dsts(g)), e.acc, dacc)
}

// aggWidth returns the width of the aggregates of rows of the given width.
func aggWidth(agg Aggregator, width int) int {
	if _, out := agg.Dims(); out != 0 {
		return out
	}
	return width
}

// hops returns how often Agg is applied over g.
func (c *Conv) hops(g *graph.CSR) int {
	if c.Hops > 1 && g.NumDst != g.NumSrc {
		panic("nn: more than one hop over a block; it takes a whole graph")
	}
	return max(c.Hops, 1)
}

// gatherCost is what a value gathered along an edge costs, in multiply-adds of a dense product.
const gatherCost = 8

// projectsFirst reports whether A(XW) costs less than (AX)W, which is the same. Sparse rows, which would become dense
// as they are summed, are always projected first.
func (c *Conv) projectsFirst(in Input) bool {
	lin, ok := c.Nbr.(*Linear)
	if _, sum := c.Agg.(Sum); !ok || !sum || c.Pre != nil {
		return false
	}
	if in.X.Sparse != nil {
		return true
	}
	w, out := lin.Dims()
	if in.Far != nil { // what travels decides, and every worker must decide alike
		return out < w
	}
	edges := in.G.NumEdges() * max(c.Hops, 1) * gatherCost
	return edges*out+in.G.NumSrc*w*out < edges*w+in.G.NumDst*w*out
}

func isBias(op Rows) bool {
	_, ok := op.(*Bias)
	return ok
}

// firstRows returns the first n rows of x.
func firstRows(x graph.Features, n int, t *Tape) graph.Features {
	if x.Rows() == n {
		return x
	}
	if x.Sparse == nil {
		return graph.Features{Dense: x.Dense.RowRange(0, n)}
	}
	s := *x.Sparse
	s.Rows, s.RowPtr = n, s.RowPtr[:n+1]
	s.Col, s.Val = s.Col[:s.RowPtr[n]], s.Val[:s.RowPtr[n]]
	return graph.Features{Sparse: t.view(s)}
}
