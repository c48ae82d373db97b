package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

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

// TestCompare checks each outcome against the run by itself.
func TestCompare(t *testing.T) {
	g, shards, plan, err := comparison()
	if err != nil {
		t.Fatal(err)
	}
	rounds := make(map[string]int)
	trial := func(name string, p heddle.Plan, alone bool) heddle.Trial {
		return heddle.Trial{Name: name, Plan: p, Alone: alone, OnEvent: func(heddle.Event) { rounds[name]++ }}
	}
	all, err := heddle.Compare(context.Background(), g, shards, trial("alone", plan, true),
		trial("together", plan, false))
	if err != nil {
		t.Fatal(err)
	}
	want, err := heddle.Train(context.Background(), g, plan)
	if err != nil {
		t.Fatal(err)
	}
	if got := all[1]; got.Test != want.Test || got.Sent != want.Total() || got.Seconds <= 0 {
		t.Errorf("together: accuracy %v, sent %+v in %v s; the run by itself: %v, %+v", got.Test, got.Sent, got.Seconds,
			want.Test, want.Total())
	}
	right, nodes := 0.0, 0
	for r, one := range all[0].Runs {
		site := shards[r].Alone()
		n := len(site.InSplit(graph.Test))
		right, nodes = right+one.Test*float64(n), nodes+n
	}
	mean := right / float64(nodes)
	if math.Abs(mean-all[0].Test) > 1e-9 || nodes != len(g.InSplit(graph.Test)) {
		t.Errorf("each site alone: accuracy %v over all test nodes, must be %v over %d", all[0].Test, mean, nodes)
	}
	if rounds["alone"] == 0 || rounds["together"] == 0 {
		t.Errorf("events by trial: %v", rounds)
	}
}

func TestCompareNamesTheTrial(t *testing.T) {
	g, shards, plan, err := comparison()
	if err != nil {
		t.Fatal(err)
	}
	plan.ClassMeans.Hops = -1
	_, err = heddle.Compare(context.Background(), g, shards, heddle.Trial{Name: "no hops", Plan: plan})
	var fault *heddle.InputError
	if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "no hops: ") {
		t.Errorf("got %v", err)
	}
}
