package shard

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestEdges: the digest of edges has nothing of the name, and another edge is another digest.
func TestEdges(t *testing.T) {
	part := func(name string, src, dst []int32) *Shard {
		adj, err := graph.FromEdges(4, src, dst, nil, graph.Build{})
		if err != nil {
			t.Fatal(err)
		}
		return Whole(&graph.Graph{Name: name, Adj: adj})
	}
	a, b := part("a", []int32{0, 1}, []int32{1, 2}), part("b", []int32{1, 0}, []int32{2, 1})
	if Edges(a) != Edges(b) || Edges(a) == Edges(part("a", []int32{0, 1}, []int32{1, 3})) {
		t.Errorf("%s, of another name %s", Edges(a), Edges(b))
	}
}
