// Command predicts predicts one node and links as little as possible: predicts MODEL GRAPH.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/predict"
)

func main() {
	g, err := graph.Read(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	p, err := predict.Load(os.Args[1], g)
	if err != nil {
		log.Fatal(err)
	}
	all, err := p.Predict(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(all[0].Classes)
}
