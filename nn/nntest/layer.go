package nntest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Check tests a layer: shapes, permutation of nodes (and with it the order of edges), isolated
// nodes, blocks of destinations, workers with parts of the rows, equal to the whole graph in rows
// and in gradients (dropout included), derivatives by x and every parameter, inputs unwritten,
// training without dropout equal to inference, sparse input equal to dense input, and a frozen
// aggregate equal to the one computed in the pass. A BatchNorm in training takes a whole graph, and
// differs from inference.
func Check(t *testing.T, l *nn.Layer) {
	t.Helper()
	c := checkOf(t, l)
	t.Run("derivatives", c.derivatives)
	t.Run("unwritten", c.unwritten)
	t.Run("repeat", c.repeat)
	t.Run("inference", c.inference)
	t.Run("permutation", c.permutation)
	t.Run("sparse", c.sparse)
	if l.Conv.Agg == nil {
		return
	}
	t.Run("blocks", c.blocks)
	t.Run("workers", func(t *testing.T) { checkWorkers(t, l, c.whole, c.h, c.dx, c.params) })
	if l.Frozen() {
		t.Run("frozen", c.frozen)
	}
}

// nodes is how many the graph has that layers are checked on.
const nodes = 14

// check is a layer over a whole graph: what the laws compare with.
type check struct {
	whole     problem
	g         *graph.CSR
	relations int // at least 1
	x         mat.Dense
	h, dx     mat.Dense
	params    []mat.Dense // gradients
}

// checkOf computes the layer's rows and gradients on a random graph whose last node is isolated.
func checkOf(t *testing.T, l *nn.Layer) *check {
	t.Helper()
	adj, relations := RandomGraph(seed.Fold(11), nodes), l.Conv.Relations
	g := graph.Normalise(adj, adj.Degrees(), l.Edges)
	if n := l.Spec.Relations; n > 0 {
		g = l.Typed(RandomRelations(seed.Fold(11), nodes, n), nodes)
	}
	var edges mat.Dense
	if l.Conv.Agg != nil {
		edges = withEdgeColumns(g, l.Conv.Agg.Properties().EdgeColumns)
	}
	x := Random(seed.Fold(12), nodes, l.Spec.In)
	for i := range x.Data { // zeros, so that the sparse form leaves something out; no row of zeros: equal rows tie
		if i%x.Cols < x.Cols/2 && seed.Fold(13).Float64(uint64(i)) < 0.6 {
			x.Data[i] = 0
		}
	}
	perturb(l.Params())
	c := &check{g: g, relations: max(relations, 1), x: x}
	c.whole = problem{
		layer: l, tape: tape.New(), key: rng.New(17), in: input(l, g, graph.Features{Dense: x}, nil),
		weight: Random(seed.Fold(14), nodes, l.Spec.Out),
	}
	c.whole.in.EdgeX = edges
	c.h, c.dx, c.params = c.whole.run(true)
	for i, v := range c.h.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Fatalf("row %d is %v; node %d is isolated", i/c.h.Cols, c.h.Row(i/c.h.Cols), nodes-1)
		}
	}
	return c
}

// of returns the same problem for another input.
func (c *check) of(in nn.Input, weight mat.Dense) problem {
	p := c.whole
	in.EdgeX = p.in.EdgeX
	p.in, p.weight = in, weight
	return p
}

// derivatives agree with finite differences.
func (c *check) derivatives(t *testing.T) {
	f := func() float64 {
		h, _, _ := c.whole.run(false)
		return dot(h, c.whole.weight)
	}
	derivative(t, "x", c.x, c.dx, f)
	for k, p := range c.whole.layer.Params() {
		derivative(t, p.Name, p.Value, c.params[k], f)
	}
}

// unwritten: no pass writes to its inputs.
func (c *check) unwritten(t *testing.T) {
	keep, weight := c.x.Clone(), c.whole.weight.Clone()
	col, val := append([]int32(nil), c.g.Col...), append([]float32(nil), c.g.Weight...)
	c.whole.run(true)
	sameBits(t, "x", c.x, keep)
	sameBits(t, "dh", c.whole.weight, weight)
	for k := range col {
		if col[k] != c.g.Col[k] || val != nil && val[k] != c.g.Weight[k] {
			t.Fatalf("edge %d was written", k)
		}
	}
}

// repeat: the same step has the same bits.
func (c *check) repeat(t *testing.T) {
	again, dx2, params2 := c.whole.run(true)
	sameBits(t, "rows", again, c.h)
	sameBits(t, "dx", dx2, c.dx)
	for k, p := range c.whole.layer.Params() {
		sameBits(t, p.Name, params2[k], c.params[k])
	}
}

// inference is training without dropout.
func (c *check) inference(t *testing.T) {
	if c.whole.layer.Spec.Dropout > 0 || c.whole.layer.Spec.AttentionDropout > 0 || c.whole.layer.Spec.BatchNorm {
		return
	}
	y := mat.New(nodes, c.whole.layer.Spec.Out)
	c.whole.layer.Forward(y, c.whole.in, nil)
	sameBits(t, "rows", y, c.h)
}

// permutation: names of nodes do not matter.
func (c *check) permutation(t *testing.T) {
	perm := seed.Fold(15).Perm(nodes) // new node k was node perm[k]
	ids := make([]int64, nodes)
	for k, i := range perm {
		ids[k] = int64(i)
	}
	x := graph.Features{Dense: c.x.Select(perm)}
	p := c.of(input(c.whole.layer, permute(c.g, perm, c.relations), x, ids), c.whole.weight.Select(perm))
	hp, dxp, params2 := p.run(true)
	near(t, "rows", hp, c.h.Select(perm), rounding)
	near(t, "dx", dxp, c.dx.Select(perm), rounding)
	for k, q := range c.whole.layer.Params() {
		near(t, q.Name, params2[k], c.params[k], rounding)
	}
}

// sparse input gives what dense input does.
func (c *check) sparse(t *testing.T) {
	p := c.of(input(c.whole.layer, c.g, graph.Features{Sparse: sparse(c.x)}, nil), c.whole.weight)
	other := p
	other.key = rng.New(18)
	other.run(true) // what the tape remembers of a step must not reach the next
	hs, _, params2 := p.run(true)
	near(t, "rows", hs, c.h, rounding)
	for k, q := range c.whole.layer.Params() {
		near(t, q.Name, params2[k], c.params[k], rounding)
	}
}

// blocks of destinations add up to the whole graph.
func (c *check) blocks(t *testing.T) {
	if c.whole.layer.Spec.Hops > 1 || c.whole.layer.Spec.BatchNorm {
		return // takes a whole graph
	}
	sum := make([]mat.Dense, len(c.params))
	for k := range sum {
		sum[k] = mat.New(c.params[k].Rows, c.params[k].Cols)
	}
	dxs := mat.New(nodes, c.whole.layer.Spec.In)
	for lo := 0; lo < nodes; lo += 5 {
		block, src := destinations(c.g, lo, min(lo+5, nodes), c.relations)
		ids := make([]int64, len(src))
		for k, j := range src {
			ids[k] = int64(j)
		}
		in := nn.Input{G: block, X: graph.Features{Dense: c.x.Select(src)}, Nodes: ids}
		p := c.of(in, c.whole.weight.RowRange(lo, min(lo+5, nodes)))
		hb, dxb, pb := p.run(true)
		near(t, fmt.Sprintf("rows from %d", lo), hb, c.h.RowRange(lo, min(lo+5, nodes)), rounding)
		for k, j := range src {
			kernels.Add(dxb.Row(k), dxs.Row(int(j)))
		}
		for k := range sum {
			tape.AddTo(sum[k], pb[k])
		}
	}
	near(t, "dx", dxs, c.dx, rounding)
	for k, q := range c.whole.layer.Params() {
		near(t, q.Name, sum[k], c.params[k], rounding)
	}
}

// frozen: an aggregate that was computed before gives what one computed in the pass does.
func (c *check) frozen(t *testing.T) {
	if c.whole.layer.Spec.Dropout > 0 {
		return // the two are dropped at different places
	}
	for _, x := range []graph.Features{{Dense: c.x}, {Sparse: sparse(c.x)}} {
		z := x
		for range max(c.whole.layer.Spec.Hops, 1) {
			z = aggregate.Features(c.whole.layer.Conv.Agg, c.g, z)
		}
		p := c.of(nn.Input{X: x, Z: z}, c.whole.weight)
		hz, _, params2 := p.run(true)
		near(t, "rows", hz, c.h, rounding)
		for k, q := range c.whole.layer.Params() {
			near(t, q.Name, params2[k], c.params[k], rounding)
		}
	}
}

// problem is a layer, its input and the weights of the sum of its rows that is differentiated.
type problem struct {
	layer  *nn.Layer
	tape   *tape.Tape
	key    rng.Key // of dropout
	in     nn.Input
	weight mat.Dense
}

// run returns the rows and, where back, the gradients of Σ weight·h.
func (p problem) run(back bool) (h, dx mat.Dense, params []mat.Dense) {
	l := p.layer
	tape := p.tape
	tape.Reset()
	tape.Key = p.key
	zeroGrad(l.Params())
	h = mat.New(p.weight.Rows, l.Spec.Out)
	for i := range h.Data {
		h.Data[i] = float32(math.NaN()) // Forward overwrites
	}
	l.Forward(h, p.in, tape)
	if !back {
		return h, dx, nil
	}
	if p.in.X.Sparse == nil && p.in.Z.Rows() == 0 {
		dx = mat.New(p.in.X.Rows(), l.Spec.In)
		dx.Data[len(dx.Data)-1] = float32(math.NaN()) // Backward overwrites
	}
	l.Backward(dx, p.weight.Clone(), tape)
	return h, dx, grads(l.Params())
}

func input(l *nn.Layer, g *graph.CSR, x graph.Features, nodes []int64) nn.Input {
	in := nn.Input{X: x, Nodes: nodes}
	if l.Conv.Agg != nil {
		in.G = g
	}
	return in
}

// permute returns g, a stack of relations, with node perm[k] renamed to k.
func permute(g *graph.CSR, perm []int32, relations int) *graph.CSR {
	name := make([]int32, len(perm))
	for k, i := range perm {
		name[i] = int32(k)
	}
	return g.Relabel(graph.StackedRows(perm, len(perm), relations), name, g.NumSrc)
}

// destinations returns the block of destinations [lo, hi) of a stack of relations and the nodes
// that its sources are.
func destinations(g *graph.CSR, lo, hi, relations int) (*graph.CSR, []int32) {
	name := slices.Repeat([]int32{-1}, g.NumSrc)
	var src, dst []int32
	see := func(j int32) {
		if name[j] < 0 {
			name[j] = int32(len(src))
			src = append(src, j)
		}
	}
	for i := lo; i < hi; i++ {
		dst = append(dst, int32(i))
		see(int32(i))
	}
	dst = graph.StackedRows(dst, g.NumDst/relations, relations)
	for _, i := range dst {
		col, _ := g.Row(int(i))
		for _, j := range col {
			see(j)
		}
	}
	return g.Relabel(dst, name, len(src)), src
}

func sparse(x mat.Dense) *mat.Sparse {
	s := &mat.Sparse{Rows: x.Rows, Cols: x.Cols, RowPtr: make([]int64, x.Rows+1)}
	for i := range x.Rows {
		for c, v := range x.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(c)), append(s.Val, v)
			}
		}
		s.RowPtr[i+1] = int64(len(s.Col))
	}
	return s
}
