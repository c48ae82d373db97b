package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// elsewhere is the reducer of a group that is not the group: it may not be called while rows travel.
type elsewhere struct{ *comm.Group }

// TestSumsWhileRowsTravel trains with the gradients summed layer by layer during the backward pass, all at once behind
// it, and through a reducer that is not the group: the bits are the same.
func TestSumsWhileRowsTravel(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	for _, model := range []string{"gat", "gat of scores, encoder mlp"} {
		c := Defaults(models(9)[model])
		c.Rounds, c.Order, c.EvalEvery = 6, "fixed", 100
		shards := cut(t, g, "uneven", 4)
		want := trained(t, c, shards)[0].Params.Value
		for _, k := range []struct {
			bucket int
			apart  bool
			trips  int64 // of the second group, in all epochs: two a sum, but for the last one of an epoch
		}{{1, false, int64(2 * c.Rounds * 2)}, {100, false, -1}, {1 << 30, false, 0}, {1, true, -1}} {
			if model != "gat" && k.bucket == 1 && !k.apart {
				k.trips = int64(2 * c.Rounds * 3)
			}
			all := workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
				tr.bucket = k.bucket
				var r comm.Reducer = g
				if k.apart {
					r = elsewhere{g}
				}
				if err := tr.Run(context.Background(), g, r); err != nil {
					return err
				}
				if trips, _ := g.Dup().Waits(); k.trips >= 0 && trips != k.trips {
					return fmt.Errorf("trips for sums of at least %d are %d, must be %d", k.bucket, trips, k.trips)
				}
				return nil
			})
			for r, tr := range all {
				if !slices.Equal(tr.Params.Value, want) {
					t.Errorf("%s: worker %d has other bits where at least %d are summed at once", model, r, k.bucket)
				}
			}
		}
	}
}

// TestNoiseLeavesDigestsAlone trains every kind of model through a reducer that adds noise to updates, with an
// interruption. No reduction has the name of another, the workers' digests agree all the same, and they end with the
// same bits.
func TestNoiseLeavesDigestsAlone(t *testing.T) {
	g := toy(rng.New(2), 120, 9)
	smoothed := func(c *Config) {
		c.Spec.CorrectSmooth = &nn.CorrectSmooth{Steps: 3, Correct: 0.9, Smooth: 0.8}
	}
	for _, k := range []struct {
		model string
		g     *graph.Graph
		set   func(c *Config)
	}{
		{"gcn", g, nil},
		{"gcn of 3 hops", traintest.Sparsed(g), nil},
		{"sage, batch norm", g, nil},
		{"gat of scores, encoder mlp", g, func(c *Config) { c.Balanced = true }},
		{"gin", g, func(c *Config) { c.Inductive = true }},
		{"rgcn", traintest.Typed(g), nil},
		{"appnp", g, smoothed},
		{"sign", traintest.Sparsed(g), func(c *Config) { c.Inductive = true }},
		{"sage", g, labelsGiven},
	} {
		t.Run(k.model, func(t *testing.T) {
			t.Parallel()
			c := Defaults(models(9)[k.model])
			c.Rounds, c.EvalEvery, c.Order, c.Checkpoint = 6, 2, "fixed", 2
			if k.set != nil {
				k.set(&c)
			}
			shards, dir := cut(t, k.g, "uneven", 3), t.TempDir()
			var noise [3]commtest.Noise
			for r := range noise {
				noise[r].T, noise[r].Amount = t, 1e-3
			}
			run := func(ctx context.Context, tr *Trainer, g *comm.Group) error {
				tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, tr.shard.Rank)}
				return tr.Run(ctx, g, noise[tr.shard.Rank].Over(g))
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
				tr.OnEvent = func(e train.Event) {
					if tr.shard.Rank == 1 && e.Kind == train.RoundEnd && e.Round == 3 {
						cancel()
					}
				}
				if err := run(ctx, tr, g); err == nil {
					return errors.New("it was not interrupted")
				}
				return nil
			})
			all := workers(t, c, shards,
				func(tr *Trainer, g *comm.Group) error { return run(context.Background(), tr, g) })
			for r, tr := range all {
				if !slices.Equal(tr.Params.Value, all[0].Params.Value) {
					t.Errorf("worker %d has other bits than worker 0", r)
				}
			}
			if n := noise[0].Reductions()[ofGradient]; n < c.Rounds {
				t.Errorf("reductions %v, want at least one of gradients each epoch", noise[0].Reductions())
			}
		})
	}
}

// TestOtherParametersAreNoticed: a worker whose parameters are not those of the others is named, whatever the sums.
func TestOtherParametersAreNoticed(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	c := Defaults(models(9)["gcn"])
	c.Rounds, c.EvalEvery = 10, 100
	workers(t, c, cut(t, g, "uneven", 2), func(tr *Trainer, g *comm.Group) error {
		tr.OnEvent = func(e train.Event) {
			if e.Kind == train.RoundEnd && e.Round == 3 && tr.shard.Rank == 1 {
				v := tr.Params.Value
				v[0] = math.Nextafter32(v[0], 2)
			}
		}
		err := tr.Run(context.Background(), g, g)
		var at *comm.PeerError
		if !errors.As(err, &at) || at.Rank == tr.shard.Rank || !strings.Contains(err.Error(), "parameters differ") ||
			tr.At.Round != 4 {
			return fmt.Errorf("error %v at epoch %d, want one at epoch 4 that names the other worker", err, tr.At.Round)
		}
		return nil
	})
}
