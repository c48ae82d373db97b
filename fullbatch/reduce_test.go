package fullbatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// elsewhere is the reducer of a group that is not the group: it may not be called while rows travel.
type elsewhere struct{ *comm.Group }

// TestSumsWhileRowsTravel trains with the gradients summed layer by layer during the backward pass, all at once behind
// it, and through a reducer that is not the group: the bits are the same.
func TestSumsWhileRowsTravel(t *testing.T) {
	g := toy(rng.New(6), 120, 9)
	for _, model := range []string{"gat", "gat of scores, encoder mlp"} {
		c := Defaults(models(9)[model])
		c.Epochs, c.Order, c.EvalEvery = 6, "fixed", 100
		shards := cut(t, g, "uneven", 4)
		want := trained(t, c, shards)[0].slab.Value
		for _, k := range []struct {
			bucket int
			apart  bool
			trips  int64 // of the group beside, in all epochs: two a sum
		}{{1, false, int64(2 * c.Epochs * 3)}, {100, false, 0}, {1 << 30, false, int64(2 * c.Epochs)}, {1, true, 0}} {
			if model != "gat" && k.bucket == 1 && !k.apart {
				k.trips = int64(2 * c.Epochs * 4)
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
				if trips, _ := g.Beside().Waits(); k.trips > 0 && trips != k.trips {
					return fmt.Errorf("%d waits for sums of at least %d, want %d", trips, k.bucket, k.trips)
				}
				return nil
			})
			for r, tr := range all {
				if !slices.Equal(tr.slab.Value, want) {
					t.Errorf("%s: worker %d has other bits where at least %d are summed at once", model, r, k.bucket)
				}
			}
		}
	}
}
