package nntest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/rng"
)

// CheckAggregator tests an aggregator on rows of the given width, over edges of the given number of
// relations (0 = without types): blocks of sources equal their union in rows and in gradients,
// derivatives, destinations without edges, inputs unwritten.
func CheckAggregator(t *testing.T, agg aggregate.Aggregator, width, relations int) {
	t.Helper()
	const n = 13
	g := RandomGraph(seed.Fold(3), n)
	if relations > 0 {
		g = RandomRelations(seed.Fold(3), n, relations)
	}
	_, out := agg.Dims()
	if out == 0 {
		out = width
	}
	g.Weight = make([]float32, len(g.Col))
	for k := range g.Weight {
		g.Weight[k] = 0.5 + float32(seed.Fold(4).Float64(uint64(k)))
	}
	edges := withEdgeColumns(g, agg.Properties().EdgeColumns)
	perturb(agg.Params())
	z := Random(seed.Fold(5), n, width)
	weight := Random(seed.Fold(6), n, out)
	key := rng.New(7)
	whole := []part{{g, z, nil}}
	h, dz := runParts(agg, whole, edges, z, weight, key)
	for i := range n {
		for c, v := range h.Row(i) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) || i == n-1 && v != 0 {
				t.Fatalf("destination %d, column %d is %v; the last one has no edges and is 0", i, c, v)
			}
		}
	}
	params := grads(agg.Params())

	f := func() float64 {
		h, _ := runParts(agg, whole, edges, z, weight, key)
		return dot(h, weight)
	}
	derivative(t, "z", z, dz, f)
	for k, p := range agg.Params() {
		derivative(t, p.Name, p.Value, params[k], f)
	}

	for blocks := 1; blocks <= 3; blocks++ {
		parts := split(g, z, blocks)
		hb, dzb := runParts(agg, parts, edges, z, weight, key)
		near(t, fmt.Sprintf("rows of %d blocks", blocks), hb, h, rounding)
		near(t, fmt.Sprintf("source gradients of %d blocks", blocks), dzb, dz, rounding)
		for k, p := range agg.Params() {
			near(t, fmt.Sprintf("%s's gradient of %d blocks", p.Name, blocks), p.Grad, params[k], rounding)
		}
	}
}

// withEdgeColumns gives the edges of g rows of the given number of columns (0 = it does nothing).
// Some rows belong to two edges, some to none.
func withEdgeColumns(g *graph.CSR, columns int) mat.Dense {
	if columns == 0 {
		return mat.Dense{}
	}
	n := len(g.Col)*2/3 + 1
	g.Edge = make([]int32, len(g.Col))
	for k := range g.Edge {
		g.Edge[k] = int32(seed.Fold(9).Uint64(uint64(k))%uint64(n+1)) - 1
	}
	return Random(seed.Fold(10), n, columns)
}

// part is a block of sources, with their places in the whole.
type part struct {
	g   *graph.CSR
	z   mat.Dense
	src []int32
}

// runParts returns the aggregate of the parts for the destinations z, and the gradient of Σ
// weight·h by z.
func runParts(agg aggregate.Aggregator, parts []part, edges, z, weight mat.Dense, key rng.Key) (h, dz mat.Dense) {
	zeroGrad(agg.Params())
	ids := func(src []int32) (out []int64) {
		for _, j := range src {
			out = append(out, int64(j))
		}
		return out
	}
	acc, dacc := &aggregate.Acc{Train: true, Key: key, EdgeX: edges}, &aggregate.Acc{}
	agg.Begin(acc, z)
	for _, p := range parts {
		acc.Src = ids(p.src)
		agg.Add(acc, p.g, p.z)
	}
	h = mat.New(weight.Rows, weight.Cols)
	agg.End(h, acc)
	dz = mat.New(z.Rows, z.Cols)
	agg.EndGrad(dacc, weight, acc)
	for k, p := range parts { // every other gradient takes its rows' place, if it can
		acc.Src = ids(p.src)
		read := p.z
		if !agg.Properties().NeedsSource {
			read = mat.Dense{}
		}
		d := mat.New(p.z.Rows, p.z.Cols)
		if inPlace := agg.Properties().WritesGrad && k%2 == 1; inPlace {
			d.CopyFrom(p.z)
			read = d
		}
		agg.AddGrad(d, p.g, read, acc, dacc)
		for k := range d.Rows {
			at := k
			if p.src != nil {
				at = int(p.src[k])
			}
			kernels.Add(d.Row(k), dz.Row(at))
		}
	}
	agg.BeginGrad(dz, z, acc, dacc)
	return h, dz
}

// split deals the sources of g into blocks at random.
func split(g *graph.CSR, z mat.Dense, blocks int) []part {
	parts, place := make([]part, blocks), make([][]int32, blocks)
	for b := range place {
		place[b] = slices.Repeat([]int32{-1}, g.NumSrc)
	}
	for j := range int32(g.NumSrc) {
		b := seed.Fold(8).Uint64(uint64(j)) % uint64(blocks)
		place[b][j] = int32(len(parts[b].src))
		parts[b].src = append(parts[b].src, j)
	}
	for b := range parts {
		p := &parts[b]
		p.z, p.g = z.Select(p.src), g.Relabel(mat.EveryRow(g.NumDst), place[b], len(p.src))
	}
	return parts
}
