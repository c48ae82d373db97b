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

// A program follows the rounds of a run and stops it. The next call continues from the checkpoints in State.
func ExampleLocal_Train() {
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	plan := heddle.Defaults("full-batch", "gcn")
	plan.Transport, plan.Gradient().CheckpointEvery = "memory", 1
	parts, err := heddle.Split(dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 3}, rng.New(1)), plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	local := heddle.Local{Plan: plan, Shards: parts, State: state, OnEvent: func(e heddle.Event) {
		switch {
		case e.Kind == train.RoundEnd && e.Done == 5:
			stop()
		case e.Kind == train.Restored:
			fmt.Println("continues")
		}
	}}
	if _, err := local.Train(ctx); errors.Is(err, context.Canceled) {
		fmt.Println("stopped")
	}
	if _, err := local.Train(context.Background()); err == nil {
		fmt.Println("done")
	}
	// Output:
	// stopped
	// continues
	// done
}
