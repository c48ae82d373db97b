package minibatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestInterrupted: a run that is cut off in the midst of an epoch and goes on, one peer without its checkpoints, ends
// with the same bits as one that was not.
func TestInterrupted(t *testing.T) {
	for _, kind := range []string{"neighbour", "links"} {
		t.Run(kind, func(t *testing.T) { interrupted(t, kind) })
	}
}

func interrupted(t *testing.T, kind string) {
	g := toy(160)
	c := of(t, "sage", g)
	if kind == "links" {
		g = both(t, 70)
		c = linked(t, "sage", "mlp", g, "")
	}
	c.Rounds, c.Checkpoint, c.EvalEvery = 8, 2, 1
	shards := cut(t, g, 3)
	whole := trained(t, c, shards)[0]
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	peers(t, c, shards, func(tr *Trainer, group *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		steps := 0
		err := tr.Run(ctx, group, reducer(func(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
			if c.ID.Kind == ofGradient && c.ID.Round == 4 && c.ID.Step == 2 && tr.shard.Rank == 1 {
				if steps++; steps == 1 {
					cancel()
				}
			}
			return group.Reduce(ctx, c)
		}))
		if err == nil {
			return errors.New("it was not interrupted")
		}
		return nil
	})
	again := peers(t, c, shards, func(tr *Trainer, group *comm.Group) error {
		tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
		if tr.shard.Rank == 2 {
			tr.Checkpoints = &checkpoint.Store{Dir: dir + "/new"}
		}
		restored := -1
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.Restored {
				restored = e.Round
			}
		}
		if err := tr.Run(context.Background(), group, group); err != nil {
			return err
		}
		if restored != 4 {
			return fmt.Errorf("went on from epoch %d, must be 4", restored)
		}
		return nil
	})
	for r, tr := range again {
		if got, want := tr.Result().Final(), whole.Result().Final(); !slices.Equal(tr.Params.Value,
			whole.Params.Value) || got.Test != want.Test || len(got.Curve) != len(want.Curve) {
			t.Errorf("peer %d has another model or result: %+v, must be %+v", r, got, want)
		}
	}
	m, err := c.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	alone, err := New(c, shards[0], m)
	if err != nil {
		t.Fatal(err)
	}
	alone.Checkpoints = &checkpoint.Store{Dir: dir + "/0"}
	if done, err := alone.Resume(alone); err != nil || !done || !alone.Done() ||
		alone.Logits().Rows != shards[0].Owned {
		t.Errorf("a final model is not taken up: %t, %v", done, err)
	}
}

// TestRoundsOfSteps: rounds that end within epochs train the same batches by the same learning rates to the same bits,
// for groups of any size, and a run that is cut off goes on from within an epoch.
func TestRoundsOfSteps(t *testing.T) {
	g := toy(160)
	for i, s := range g.Split {
		if s == graph.Val {
			g.Split[i] = graph.None // the last state is the model
		}
	}
	c := of(t, "gcn", g)
	c.Schedule, c.Rounds, c.EvalEvery = optim.Schedule{Kind: "cosine"}, 3, 1000
	shards := cut(t, g, 3)
	whole := trained(t, c, shards)[0]
	total := c.Rounds * whole.steps
	c.Rounds, c.Checkpoint = total, 1
	for c.RoundSteps = 1; c.RoundSteps < total; c.RoundSteps++ {
		if c.Rounds = total / c.RoundSteps; c.Rounds*c.RoundSteps != total || c.Rounds == 1 {
			continue
		}
		for _, c.Group = range []int{1, 5} {
			dir := t.TempDir()
			run := func(ctx context.Context, at int, stop func()) []*Trainer {
				return peers(t, c, shards, func(tr *Trainer, group *comm.Group) error {
					tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
					err := tr.Run(ctx, group,
						reducer(func(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
							if c.ID.Kind == ofGradient && c.ID.Round == at {
								stop()
							}
							return group.Reduce(ctx, c)
						}))
					if (err == nil) != (at < 0) {
						return fmt.Errorf("%v, must be an error where it is stopped in round %d", err, at)
					}
					return nil
				})
			}
			ctx, cancel := context.WithCancel(context.Background())
			run(ctx, c.Rounds/2, cancel)
			if tr := run(context.Background(), -1, nil)[0]; !slices.Equal(tr.Params.Value, whole.Params.Value) {
				t.Errorf("%d rounds of %d steps in groups of %d: another model than of %d epochs", c.Rounds,
					c.RoundSteps, c.Group, 3)
			}
		}
	}
	if total%2 != 0 && total%3 != 0 {
		t.Fatalf("%d steps cannot be divided", total)
	}
}
