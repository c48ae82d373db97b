package heddle_test

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// From arrays to predictions: 60 nodes with 2 numbers each, in 2 rings of friends. The classes of 10 nodes are known.
func ExamplePredict() {
	const nodes = 60
	rows := mat.New(nodes, 2)
	var src, dst []int32
	class, split := make([]int32, nodes), make([]graph.Split, nodes)
	for i := range int32(nodes) {
		ring := i % 2
		rows.Set(int(i), int(ring), 1)
		src, dst = append(src, i, i), append(dst, (i+2)%nodes, (i+4)%nodes)
		class[i] = -1 // unknown
		if i < 10 {
			class[i], split[i] = ring, graph.Train
		}
	}
	edges, err := graph.FromEdges(nodes, src, dst, nil, graph.Build{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g := &graph.Graph{Name: "friends", Adj: edges, X: graph.Features{Dense: rows}, Split: split,
		Labels: graph.Labels{Classes: 2, Class: class, Names: []string{"red", "blue"}}}

	plan := heddle.Defaults("full-batch", "gcn")
	plan.Peers, plan.Transport = 1, "memory"
	result, err := heddle.Train(context.Background(), g, plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := heddle.Predict(result.Model, g)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, node := range []int{50, 51} {
		fmt.Println(node, g.Labels.Name(all.Classes(node)[0]))
	}
	// Output:
	// 50 red
	// 51 blue
}
