package heddle_test

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// comparison is a graph that four sites hold, and a plan by which they train.
func comparison() (*graph.Graph, []*shard.Shard, heddle.Plan, error) {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 2000}, rng.New(1))
	plan := heddle.Defaults("class-means", "")
	plan.Policy, plan.Transport = "by-column", "memory"
	shards, err := heddle.Split(g, plan)
	return g, shards, plan, err
}

func ExampleCompare() {
	g, shards, plan, err := comparison()
	if err != nil {
		fmt.Println(err)
		return
	}
	pooled := heddle.Defaults("full-batch", "")
	pooled.Gradient().Rounds, pooled.Peers = 50, 1
	outcomes, err := heddle.Compare(context.Background(), g, shards,
		heddle.Trial{Name: "each site alone", Plan: pooled, Alone: true},
		heddle.Trial{Name: "together", Plan: plan},
		heddle.Trial{Name: "pooled data", Plan: pooled})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range outcomes {
		better := o.Test > outcomes[0].Test
		fmt.Printf("%-15s  models: %d  better than alone: %-5t  sends: %t\n", o.Name, len(o.Runs), better,
			o.Sent.Halo > 0)
	}
	// Output:
	// each site alone  models: 4  better than alone: false  sends: false
	// together         models: 1  better than alone: true   sends: true
	// pooled data      models: 1  better than alone: true   sends: false
}
