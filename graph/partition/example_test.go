package partition_test

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/rng"
)

// byName is a policy: nodes with equal names belong together, all others go to a random part.
type byName struct{}

func (byName) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	first := map[string]int32{}
	owner := make([]int32, g.N())
	for i, name := range g.IDs {
		if _, known := first[name]; !known {
			first[name] = int32(key.Uint64(uint64(i)) % uint64(parts))
		}
		owner[i] = first[name]
	}
	return owner, nil
}

// A policy of your own: heddle.Local trains over its parts.
func ExamplePolicy() {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 400}, rng.New(1))
	g.IDs = make([]string, g.N())
	for i := range g.IDs {
		g.IDs[i] = fmt.Sprint("household ", i/4)
	}
	shards, err := partition.Partition(g, byName{}, 3, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	together := true
	for _, s := range shards {
		together = together && s.Owned%4 == 0
	}
	fmt.Println(len(shards), "parts, households together:", together)
	// Output: 3 parts, households together: true
}
