package vertexcut_test

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/vertexcut"
)

// A vertex cut of one's own: an edge lies with its source, unless the source has more than two edges.
func ExampleAssignEdges() {
	cut := vertexcut.EdgeRules{Owner: partition.ContiguousEdges(), Edge: func(src, dst int32, s *vertexcut.EdgeView) int32 {
		if s.OutDegree(src) > 2 {
			return s.Owner(dst)
		}
		return s.Owner(src)
	}}
	star, _ := graph.FromEdges(4, []int32{0, 0, 0}, []int32{1, 2, 3}, nil, graph.Build{})
	owner, holder, err := vertexcut.AssignEdges(&graph.Graph{Adj: star, Split: make([]graph.Split, 4)}, cut, 2, 0)
	fmt.Println(owner, holder, err)
	// Output: [0 1 1 1] [1 1 1 1 1 1] <nil>
}
