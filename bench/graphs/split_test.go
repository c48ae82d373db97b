package graphs

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestResplit: another split has as many training nodes of each class and as many validation nodes, others than before,
// and the graph that was given keeps its own.
func TestResplit(t *testing.T) {
	g := rows(300, 3)
	g.Labels.Class[7] = -1
	for i := range g.Split {
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Test, graph.None}[i/16%4]
	}
	before := slices.Clone(g.Split)
	again := Resplit(g, 1)
	count := func(g *graph.Graph) []int {
		n := []int{len(g.InSplit(graph.Val)), 0, 0, 0}
		for _, i := range g.InSplit(graph.Train) {
			if c := g.Labels.Class[i]; c >= 0 {
				n[1+c]++
			}
		}
		return n
	}
	if want, got := count(g), count(again); !slices.Equal(got, want) {
		t.Errorf("validation nodes, and training nodes of each class, must be %v (got %v)", want, got)
	}
	if !slices.Equal(g.Split, before) || slices.Equal(again.Split, before) || again.Split[7] != graph.None {
		t.Error("the split must be another one, without nodes that have no class, and that before must stay")
	}
}
