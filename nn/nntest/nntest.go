// Package nntest has the laws that every operator, aggregator and layer obeys, as tests for any of
// them.
package nntest

import (
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

var seed = rng.New(2302_13053)

// Random returns a rows×cols matrix of standard normal values.
func Random(key rng.Key, rows, cols int) mat.Dense {
	m := mat.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(key.Normal(uint64(i)))
	}
	return m
}

// RandomGraph returns a symmetric graph of n nodes without self-loops in which the last node is
// isolated.
func RandomGraph(key rng.Key, n int) *graph.CSR {
	return edgesOf(n, func(i, j int) bool {
		a, b := min(i, j), max(i, j)
		return i != j && b != n-1 && key.Float64(uint64(a*n+b)) < 0.3
	})
}

// edgesOf returns the graph of n nodes with an edge from j to i if has(i, j).
func edgesOf(n int, has func(i, j int) bool) *graph.CSR {
	g := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	for i := range n {
		for j := range n {
			if has(i, j) {
				g.Col = append(g.Col, int32(j))
			}
		}
		g.RowPtr[i+1] = int64(len(g.Col))
	}
	return g
}

// RandomRelations returns that many stacked relations of a directed graph of n nodes, the last one
// isolated; one relation has no edge.
func RandomRelations(key rng.Key, n, relations int) *graph.CSR {
	list := make([]*graph.CSR, relations)
	for r := range list {
		list[r] = edgesOf(n, func(i, j int) bool {
			return max(i, j) < n-1 && r != 1 && key.Fold(uint64(r)).Float64(uint64(i*n+j)) < 0.15
		})
	}
	g := graph.Stack(list)
	return &g
}

// near fails unless got equals want up to tol times the largest absolute value of want (at least
// 1).
func near(t testing.TB, what string, got, want mat.Dense, tol float64) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		t.Fatalf("%s is %d×%d, want %d×%d", what, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	scale := 1.0
	for i := range want.Rows {
		for _, v := range want.Row(i) {
			scale = max(scale, math.Abs(float64(v)))
		}
	}
	for i := range want.Rows {
		for c, w := range want.Row(i) {
			if d := math.Abs(float64(got.At(i, c)) - float64(w)); !(d <= tol*scale) {
				t.Fatalf("%s (%d, %d) is %v, want %v", what, i, c, got.At(i, c), w)
			}
		}
	}
}

// sameBits fails unless got and want are the same values.
func sameBits(t testing.TB, what string, got, want mat.Dense) {
	t.Helper()
	near(t, what, got, want, 0)
}

// dot returns Σ a·b.
func dot(a, b mat.Dense) float64 {
	s := 0.0
	for i := range a.Rows {
		for c, v := range a.Row(i) {
			s += float64(v) * float64(b.At(i, c))
		}
	}
	return s
}

// rounding bounds what reordering float32 sums changes in the small problems here: about a hundred
// terms of size 1, each rounded to 6e-8, and a factor for what later operators make of it.
const rounding = 5e-6

// derivative fails unless the derivative of f by value agrees with grad, along random directions
// and for single elements. f is computed in float32, so each central difference has a rounding
// error that grows as the step shrinks, and a truncation error that shrinks with it. If a step
// happens to pass the kink of a ReLU or the tie of a maximum, it has a hundred times the rest. So
// the best of five steps counts, and it must come within 0.5 % of the gradient's length: a
// hundredth of what dropping any one term of a backward pass changes.
func derivative(t testing.TB, what string, value, grad mat.Dense, f func() float64) {
	t.Helper()
	length := math.Sqrt(dot(grad, grad))
	n := grad.Rows * grad.Cols
	key := seed.FoldString(what)
	try := func(name string, dir mat.Dense, tol float64) {
		t.Helper()
		want, best := dot(grad, dir), math.Inf(1)
		var got float64
		save := value.Clone()
		for step := 0x1p-6; step >= 0x1p-14; step /= 4 {
			ends := [2]float64{}
			for k, sign := range [2]float64{step, -step} {
				for i := range value.Rows {
					for c := range value.Cols {
						value.Set(i, c, float32(float64(save.At(i, c))+sign*float64(dir.At(i, c))))
					}
				}
				ends[k] = f()
			}
			value.CopyFrom(save)
			d := (ends[0] - ends[1]) / (2 * step)
			if math.Abs(d-want) < best {
				got, best = d, math.Abs(d-want)
			}
		}
		if !(best <= tol) {
			t.Errorf("derivative of %s along %s: backward pass gives %.6g, differences %.6g (tolerance %.2g)",
				what, name, want, got, tol)
		}
	}
	const floor = 2e-3 // rounding of f over the largest step
	for k := range 3 {
		dir := mat.New(grad.Rows, grad.Cols)
		for i := range dir.Data {
			dir.Data[i] = 1
			if key.Fold(uint64(k)).Float64(uint64(i)) < 0.5 {
				dir.Data[i] = -1
			}
		}
		try(fmt.Sprintf("direction %d", k), dir, 5e-3*length+floor)
	}
	for k := range min(n, 6) {
		at := int(key.Uint64(uint64(1000+k)) % uint64(n))
		dir := mat.New(grad.Rows, grad.Cols)
		dir.Data[at] = 1
		try(fmt.Sprintf("element %d", at), dir, 5e-3*length/math.Sqrt(float64(n))+5e-3*math.Abs(dot(grad, dir))+floor)
	}
}

func zeroGrad(params []*tape.Param) {
	for _, p := range params {
		p.Grad.Zero()
	}
}

func grads(params []*tape.Param) []mat.Dense {
	var all []mat.Dense
	for _, p := range params {
		all = append(all, p.Grad.Clone())
	}
	return all
}

// perturb moves parameters off their initial values, so that no bias is 0 and no gain 1.
func perturb(params []*tape.Param) {
	for _, p := range params {
		noise := Random(seed.FoldString(p.Name), p.Value.Rows, p.Value.Cols)
		for i := range p.Value.Rows {
			for c := range p.Value.Cols {
				p.Value.Set(i, c, p.Value.At(i, c)+0.3*noise.At(i, c))
			}
		}
	}
}

// CheckRows tests an operator on rows of width in, which only an operator of any width takes:
// shapes, inputs unwritten, derivatives, gradients added and not overwritten, and dx left out if it
// is not wanted.
func CheckRows(t *testing.T, op tape.Operator, in int) {
	t.Helper()
	if w, _ := op.Dims(); w != 0 {
		in = w
	}
	_, out := op.Dims()
	if out == 0 {
		out = in
	}
	const rows = 11
	perturb(op.Params())
	x := Random(seed.Fold(1), rows, in)
	weight := Random(seed.Fold(2), rows, out)
	tape := tape.New()
	run := func() mat.Dense {
		tape.Reset()
		y := mat.New(rows, out)
		op.Forward(y, x, tape)
		return y
	}
	before := x.Clone()
	run()
	zeroGrad(op.Params())
	dx := mat.New(rows, in)
	dy := weight.Clone()
	op.Backward(dx, dy, tape)
	sameBits(t, "x after the passes", x, before)
	sameBits(t, "dy after Backward", dy, weight)
	f := func() float64 { return dot(run(), weight) }
	derivative(t, "x", x, dx, f)
	for _, p := range op.Params() {
		derivative(t, p.Name, p.Value, p.Grad, f)
	}
	first := grads(op.Params())
	run()
	dx2 := dx.Clone()
	op.Backward(dx2, dy, tape)
	for i := range dx.Data {
		dx.Data[i] *= 2
	}
	near(t, "dx of a second Backward", dx2, dx, rounding)
	run()
	op.Backward(mat.Dense{}, dy, tape)
	for k, p := range op.Params() {
		for i := range first[k].Data {
			first[k].Data[i] *= 3
		}
		near(t, p.Name+"'s gradient of three Backwards", p.Grad, first[k], rounding)
	}
}
