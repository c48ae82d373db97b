// Command trains trains over the parts of a graph in one process: trains GRAPH MODEL.
package main

import (
	"context"
	"log"
	"os"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
)

func main() {
	g, err := graph.Read(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	result, err := heddle.Train(context.Background(), g, heddle.Defaults("", ""))
	if err != nil {
		log.Fatal(err)
	}
	if err := result.Save(os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
