package sample

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// uniformSquared returns a graph with uniform targets and squared sources.
func uniformSquared(n, edges int) *graph.CSR {
	key := rng.New(1)
	src, dst := make([]int32, edges), make([]int32, edges)
	for i := range src {
		u := key.Float64(uint64(2 * i))
		src[i], dst[i] = int32(u*u*float64(n)), int32(below(key.Fold(1), uint64(i), n))
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		panic(err)
	}
	return &g
}
