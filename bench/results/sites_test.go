package results

import (
	"testing"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
)

// rows is a graph of n nodes without edges; classes take turns, and all nodes train.
func rows(n, classes int) *graph.Graph {
	adj, err := graph.FromEdges(n, nil, nil, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "rows", Adj: adj, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: classes, Class: make([]int32, n)}}
	for v := range n {
		g.Split[v], g.Labels.Class[v] = graph.Train, int32(v%classes)
	}
	return g
}

// Each site keeps the given number of training nodes of each class.
func TestFewLabels(t *testing.T) {
	g := rows(600, 3)
	shards, err := heddle.Split(g, heddle.Plan{Policy: "random", Peers: 4, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	few := fewLabels(g, shards, 5, 1)
	for rank, s := range shards {
		count := make([]int, 3)
		for _, v := range s.Global[:s.Owned] {
			if few.Split[v] == graph.Train {
				count[g.Labels.Class[v]]++
			}
		}
		for c, n := range count {
			if n != 5 {
				t.Errorf("site %d must keep 5 nodes of class %d (got %d)", rank, c, n)
			}
		}
	}
	if g.Split[0] != graph.Train || g.Split[599] != graph.Train {
		t.Error("the graph given must keep its split")
	}
}
