package heddle_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// A plan comes from a file; settings given by name override it. All faults are reported at once.
func ExampleReadPlan() {
	text := []byte("method: full-batch\nfull_batch:\n  model: sage\n  rounds: 50\n")
	plan, err := heddle.ReadPlan(text, map[string]string{"rounds": "20"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Method, plan.Gradient().Model, plan.Gradient().Rounds)
	_, err = heddle.ReadPlan([]byte("seeds: 3\n"), nil, nil)
	_, input := errors.AsType[*heddle.InputError](err)
	fmt.Println("a fault of the plan:", input)
	// Output:
	// full-batch sage 20
	// a fault of the plan: true
}

// A part has the edges that end at its nodes, and copies of the neighbors that other parts own.
func ExampleSplit() {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 90, Sites: 3}, rng.New(1))
	parts, err := heddle.Split(g, heddle.Defaults("", "")) // a part for each site of g
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, part := range parts {
		fmt.Println(part.Rank, "owns", part.Owned, "of", part.Nodes, "nodes, copies:", len(part.Global) > part.Owned)
	}
	// Output:
	// 0 owns 39 of 90 nodes, copies: true
	// 1 owns 28 of 90 nodes, copies: true
	// 2 owns 23 of 90 nodes, copies: true
}

// The hidden rows of nodes, for another model or a search for similar nodes.
func ExampleEmbed() {
	g := dataset.Sites(dataset.SitesConfig{Nodes: 90, Sites: 3}, rng.New(1))
	plan := heddle.Defaults("full-batch", "gcn")
	plan.Transport, plan.Gradient().Rounds, plan.Gradient().Hidden = "memory", 5, 8
	result, err := heddle.Train(context.Background(), g, plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := heddle.Embed(result.Model, g)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rows.Rows, "nodes,", rows.Cols, "numbers each")
	// Output: 90 nodes, 8 numbers each
}

// A program reads the events of a run as they come, stops it, and continues it from its checkpoints.
func ExampleEvents() {
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	plan := heddle.Defaults("full-batch", "gcn")
	plan.Transport, plan.Gradient().Rounds, plan.Gradient().CheckpointEvery = "memory", 100_000, 1
	parts, err := heddle.Split(dataset.Sites(dataset.SitesConfig{Nodes: 90, Sites: 3}, rng.New(1)), plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, until := range []train.EventKind{train.Saved, train.Restored} {
		ctx, stop := context.WithCancel(context.Background())
		events, wait := heddle.Events(func(onEvent func(heddle.Event)) (*heddle.Result, error) {
			return heddle.Local{Plan: plan, Shards: parts, State: state, OnEvent: onEvent}.Train(ctx)
		})
		for e := range events {
			if e.Kind == until {
				stop()
				break
			}
		}
		_, err := wait() // which a loop that has ended does not hold up
		fmt.Println(until, errors.Is(err, context.Canceled))
		stop()
	}
	// Output:
	// saved true
	// restored true
}
