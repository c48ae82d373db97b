package graphs

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// Resplit returns g, whose nodes have one class each, with as many training nodes of each class and as many validation
// nodes, sampled anew by seed. All other nodes with a class are test nodes.
func Resplit(g *graph.Graph, seed uint64) *graph.Graph {
	left, val := make([]int, g.Labels.Classes), len(g.InSplit(graph.Val))
	for _, i := range g.InSplit(graph.Train) {
		if c := g.Labels.Class[i]; c >= 0 {
			left[c]++
		}
	}
	next := *g
	next.Split = slices.Repeat([]graph.Split{graph.None}, g.N())
	for _, i := range rng.New(seed).FoldString("split").Perm(g.N()) {
		switch c := g.Labels.Class[i]; {
		case c < 0:
		case left[c] > 0:
			left[c]--
			next.Split[i] = graph.Train
		case val > 0:
			val--
			next.Split[i] = graph.Val
		default:
			next.Split[i] = graph.Test
		}
	}
	return &next
}
