package partition_test

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// A policy of one's own: a node joins the part that owns most of its neighbours, for each node that it holds a
// hundredth of a neighbour less.
func ExampleRules() {
	greedy := partition.Rules{
		State: partition.Masters,
		Goal:  partition.Goal{Vertices: 1.1},
		Vertex: func(v int32, s *partition.View) int32 {
			near := s.Near(v)
			return s.Best(v, func(p int32) float64 { return float64(near[p]) - 0.01*float64(s.Load(p).Vertices) })
		},
	}
	adj, _ := graph.FromEdges(6, []int32{0, 2, 4, 1, 3, 5}, []int32{2, 4, 0, 3, 5, 1}, nil, graph.Build{}) // two triangles
	owner, err := greedy.Assign(&graph.Graph{Adj: adj, Split: make([]graph.Split, 6)}, 2, 0)
	fmt.Println(owner, err)
	// Output: [0 1 0 1 0 1] <nil>
}
