package partition

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"pgregory.net/rapid"
)

// skewed returns a graph of n nodes, some of them hubs, in which a share of the edges stays in groups:
// heavy nodes are what caps break on.
func skewed(n, groups, edges int, inside float64, key rng.Key) *graph.Graph {
	g := communities(n, groups, edges, inside, key.FoldString("rest"))
	var src, dst []int32
	for v := range int32(n) {
		col, _ := g.Adj.Row(int(v))
		for _, u := range col {
			src, dst = append(src, u), append(dst, v)
		}
		x := key.Float64(uint64(v))
		src, dst = append(src, v), append(dst, int32(x*x*x*float64(n)))
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g.Adj = adj
	return g
}

// related gives every edge of g one of two relations.
func related(g *graph.Graph) graph.Relations {
	var list []*graph.CSR
	for r := range int32(2) {
		var src, dst []int32
		for v := range int32(g.N()) {
			col, _ := g.Adj.Row(int(v))
			for _, u := range col {
				if (u+v)%3/2 == r {
					src, dst = append(src, u), append(dst, v)
				}
			}
		}
		one, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{Directed: true})
		if err != nil {
			panic(err)
		}
		list = append(list, &one)
	}
	return graph.Relations{Names: []string{"often", "seldom"}, Adj: graph.Stack(list)}
}

// A part never holds more than max(⌈share⌉, ⌊bound·share⌋) of anything, whatever the graph, the bounds, the capacities and the
// policy: here the weights are added up anew, and not by what policies plan with. Graphs are large enough for clusters
// and levels.
func TestNoPartHoldsMoreThanItMay(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(40, 700).Draw(t, "nodes")
		key := rng.New(rapid.Uint64().Draw(t, "seed"))
		g := skewed(n, rapid.IntRange(1, 8).Draw(t, "groups"), rapid.IntRange(1, 6).Draw(t, "edges"), rapid.Float64Range(0, 1).Draw(t, "inside"), key)
		k := rapid.IntRange(1, 12).Draw(t, "parts")
		goal := Goal{Objective: Objective(rapid.IntRange(0, 1).Draw(t, "objective"))}
		bounds := []*float64{&goal.Vertices, &goal.Edges, &goal.Train, &goal.Bytes, &goal.Relations}
		g.Typed = related(g)
		for _, bound := range bounds {
			if rapid.Bool().Draw(t, "bounded") {
				*bound = rapid.SampledFrom([]float64{1, 1.001, 1.03, 1.2, 3}).Draw(t, "bound")
			}
		}
		share, sum := make([]float64, k), 0.0
		for p := range share {
			share[p] = 1
		}
		if rapid.Bool().Draw(t, "unlike") {
			share = rapid.SliceOfN(rapid.Float64Range(0.1, 4), k, k).Draw(t, "capacity")
			goal.Capacity = share
		}
		for _, c := range share {
			sum += c
		}
		name := rapid.SampledFrom(append([]string{"hash", "random", "contiguous", "contiguous-edges"}, balancing...)).Draw(t, "policy")
		owner, err := Bounded(policy(t, name), goal).Assign(g, k, key)
		if err != nil {
			return // refused; what can be kept is TestCapsThatFitAreKept's
		}
		kept++
		bounds = append(bounds, &goal.Relations) // of the second relation
		in := func(relation, v int) float64 {
			row := relation*g.N() + v
			return float64(g.Typed.Adj.RowPtr[row+1] - g.Typed.Adj.RowPtr[row])
		}
		total, held := make([]float64, len(bounds)), make([]float64, k*len(bounds))
		for v, p := range owner {
			train := 0.0
			if g.Split[v] == graph.Train {
				train = 1
			}
			values := g.X.Sparse.RowPtr[v+1] - g.X.Sparse.RowPtr[v]
			for d, x := range []float64{1, float64(g.Adj.RowPtr[v+1] - g.Adj.RowPtr[v]), train, float64(8 * values), in(0, v), in(1, v)} {
				total[d] += x
				held[int(p)*len(bounds)+d] += x
			}
		}
		for at, x := range held {
			d := at % len(bounds)
			if fair := total[d] * share[at/len(bounds)] / sum; *bounds[d] > 0 && x > math.Max(math.Ceil(fair-1e-6), math.Floor(fair**bounds[d]+1e-6)) {
				t.Fatalf("%s: part %d of %d holds %v of weight %d, of a fair share of %v with bound %v", name, at/len(bounds), k, x, d, fair, *bounds[d])
			}
		}
	})
	if kept == 0 {
		t.Error("every goal was refused")
	}
}
