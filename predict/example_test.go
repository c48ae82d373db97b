package predict_test

import (
	"fmt"
	"log"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/predict"
	"github.com/heddle-gnn/heddle/rng"
)

// A predictor is made once. Then it predicts for single nodes, also for those that are added. A program would read its
// model by predict.Load from the model.safetensors of a run.
func Example() {
	adj, err := graph.FromEdges(3, []int32{0, 1}, []int32{1, 2}, nil, graph.Build{})
	if err != nil {
		log.Fatal(err)
	}
	features := mat.View(3, 2, []float32{1, 0, 0, 1, 1, 1})
	g := &graph.Graph{Name: "customers", Adj: adj, X: graph.Features{Dense: features}}
	spec, err := nn.Preset("gcn", "single", 2, 2, 4, 2)
	if err != nil {
		log.Fatal(err)
	}
	m, err := nn.New(spec, rng.New(1)) // not trained
	if err != nil {
		log.Fatal(err)
	}

	p, err := predict.New(m, modelfile.Card{}, g)
	if err != nil {
		log.Fatal(err)
	}
	node, err := p.AddNode([]float32{0, 2})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.AddEdge(predict.Edge{From: node, To: 2}); err != nil {
		log.Fatal(err)
	}
	all, err := p.Predict(node, 0)
	if err != nil {
		log.Fatal(err)
	}
	for k, one := range all {
		fmt.Printf("%d: class %d of %d\n", k, one.Classes[0], len(one.Probabilities))
	}
	fmt.Println(p.Nodes(), "nodes,", p.Reach(), "hops")
	// Output:
	// 0: class 0 of 2
	// 1: class 0 of 2
	// 4 nodes, 2 hops
}
