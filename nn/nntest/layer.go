package nntest

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
)

// Check tests a layer: shapes, permutation of nodes (and with it the order of edges), isolated nodes, blocks of
// destinations equal to the whole graph in rows and in gradients (dropout included), derivatives by x and every
// parameter, inputs unwritten, training without dropout equal to inference, sparse input equal to dense input, and a
// frozen aggregate equal to the one computed in the pass. A BatchNorm in training takes a whole graph, and is not that of
// inference.
func Check(t *testing.T, l *nn.Layer) {
	t.Helper()
	const n = 14
	adj, relations := RandomGraph(seed.Fold(11), n), l.Conv.Relations
	if relations > 0 {
		adj = RandomRelations(seed.Fold(11), n, relations)
	}
	g := graph.Normalise(adj, adj.Degrees(), l.Edges)
	x := Random(seed.Fold(12), n, l.Spec.In)
	for i := range x.Data { // zeros, so that the sparse form leaves something out; no row of zeros: equal rows tie
		if i%x.Cols < x.Cols/2 && seed.Fold(13).Float64(uint64(i)) < 0.6 {
			x.Data[i] = 0
		}
	}
	perturb(l.Params())
	tape := nn.NewTape()
	whole := problem{layer: l, tape: tape, key: rng.New(17), in: input(l, g, graph.Features{Dense: x}, nil), weight: Random(seed.Fold(14), n, l.Spec.Out)}
	h, dx, params := whole.run(true)
	for i, v := range h.Data {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Fatalf("row %d is %v; node %d is isolated", i/h.Cols, h.Row(i/h.Cols), n-1)
		}
	}

	t.Run("derivatives", func(t *testing.T) {
		f := func() float64 {
			h, _, _ := whole.run(false)
			return dot(h, whole.weight)
		}
		derivative(t, "x", x, dx, f)
		for k, p := range l.Params() {
			derivative(t, p.Name, p.Value, params[k], f)
		}
	})
	t.Run("unwritten", func(t *testing.T) {
		keep, weight := x.Clone(), whole.weight.Clone()
		col, val := append([]int32(nil), g.Col...), append([]float32(nil), g.Weight...)
		whole.run(true)
		sameBits(t, "x", x, keep)
		sameBits(t, "dh", whole.weight, weight)
		for k := range col {
			if col[k] != g.Col[k] || val != nil && val[k] != g.Weight[k] {
				t.Fatalf("edge %d was written", k)
			}
		}
	})
	t.Run("repeat", func(t *testing.T) {
		again, dx2, params2 := whole.run(true)
		sameBits(t, "rows", again, h)
		sameBits(t, "dx", dx2, dx)
		for k, p := range l.Params() {
			sameBits(t, p.Name, params2[k], params[k])
		}
	})
	t.Run("inference", func(t *testing.T) {
		if l.Spec.Dropout > 0 || l.Spec.AttentionDropout > 0 || l.Spec.BatchNorm {
			return
		}
		y := mat.New(n, l.Spec.Out)
		l.Forward(y, whole.in, nil)
		sameBits(t, "rows", y, h)
	})
	t.Run("permutation", func(t *testing.T) {
		perm := seed.Fold(15).Perm(n) // new node k was node perm[k]
		nodes := make([]int64, n)
		for k, i := range perm {
			nodes[k] = int64(i)
		}
		p := problem{layer: l, tape: tape, key: rng.New(17), weight: whole.weight.Select(perm)}
		p.in = input(l, permute(g, perm, max(relations, 1)), graph.Features{Dense: x.Select(perm)}, nodes)
		hp, dxp, params2 := p.run(true)
		near(t, "rows", hp, h.Select(perm), rounding)
		near(t, "dx", dxp, dx.Select(perm), rounding)
		for k, q := range l.Params() {
			near(t, q.Name, params2[k], params[k], rounding)
		}
	})
	t.Run("sparse", func(t *testing.T) {
		p := problem{layer: l, tape: tape, key: rng.New(17), in: input(l, g, graph.Features{Sparse: sparse(x)}, nil), weight: whole.weight}
		other := p
		other.key = rng.New(18)
		other.run(true) // what the tape remembers of a step must not reach the next
		hs, _, params2 := p.run(true)
		near(t, "rows", hs, h, rounding)
		for k, q := range l.Params() {
			near(t, q.Name, params2[k], params[k], rounding)
		}
	})
	if l.Conv.Agg == nil {
		return
	}
	t.Run("blocks", func(t *testing.T) {
		if l.Spec.Hops > 1 || l.Spec.BatchNorm {
			return // takes a whole graph
		}
		sum := make([]mat.Dense, len(params))
		for k := range sum {
			sum[k] = mat.New(params[k].Rows, params[k].Cols)
		}
		dxs := mat.New(n, l.Spec.In)
		for lo := 0; lo < n; lo += 5 {
			block, src := destinations(g, lo, min(lo+5, n), max(relations, 1))
			nodes := make([]int64, len(src))
			for k, j := range src {
				nodes[k] = int64(j)
			}
			p := problem{layer: l, tape: tape, key: rng.New(17), in: nn.Input{G: block, X: graph.Features{Dense: x.Select(src)}, Nodes: nodes}, weight: whole.weight.RowRange(lo, min(lo+5, n))}
			hb, dxb, pb := p.run(true)
			near(t, fmt.Sprintf("rows from %d", lo), hb, h.RowRange(lo, min(lo+5, n)), rounding)
			for k, j := range src {
				for c, v := range dxb.Row(k) {
					dxs.Data[int(j)*dxs.Stride+c] += v
				}
			}
			for k := range sum {
				for i, v := range pb[k].Data {
					sum[k].Data[i] += v
				}
			}
		}
		near(t, "dx", dxs, dx, rounding)
		for k, q := range l.Params() {
			near(t, q.Name, sum[k], params[k], rounding)
		}
	})
	if !l.Frozen() {
		return
	}
	t.Run("frozen", func(t *testing.T) {
		if l.Spec.Dropout > 0 {
			return // the two are dropped at different places
		}
		for _, x := range []graph.Features{{Dense: x}, {Sparse: sparse(x)}} {
			z := x
			for range max(l.Spec.Hops, 1) {
				z = nn.Aggregate(l.Conv.Agg, g, z)
			}
			p := problem{layer: l, tape: tape, key: rng.New(17), in: nn.Input{X: x, Z: z}, weight: whole.weight}
			hz, _, params2 := p.run(true)
			near(t, "rows", hz, h, rounding)
			for k, q := range l.Params() {
				near(t, q.Name, params2[k], params[k], rounding)
			}
		}
	})
}

// problem is a layer, its input and the weights of the sum of its rows that is differentiated.
type problem struct {
	layer  *nn.Layer
	tape   *nn.Tape
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
	return choose(g, graph.StackedRows(perm, len(perm), relations), name, g.NumSrc)
}

// choose returns the rows of g named by dst, with source j renamed to name[j].
func choose(g *graph.CSR, dst, name []int32, sources int) *graph.CSR {
	out := &graph.CSR{NumDst: len(dst), NumSrc: sources, RowPtr: make([]int64, len(dst)+1)}
	for k, i := range dst {
		col, w := g.Row(int(i))
		for j := range int32(sources) {
			for e, c := range col {
				if name[c] == j {
					out.Col = append(out.Col, j)
					if w != nil {
						out.Weight = append(out.Weight, w[e])
					}
				}
			}
		}
		out.RowPtr[k+1] = int64(len(out.Col))
	}
	return out
}

// destinations returns the block of destinations [lo, hi) of a stack of relations and the nodes that its sources are.
func destinations(g *graph.CSR, lo, hi, relations int) (*graph.CSR, []int32) {
	name := make([]int32, g.NumSrc)
	for j := range name {
		name[j] = -1
	}
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
	return choose(g, dst, name, len(src)), src
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
