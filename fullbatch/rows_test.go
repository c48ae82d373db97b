package fullbatch

import (
	"context"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// TestCountsAreExact: sums of counts beyond 2²⁴, which a float32 does not hold.
func TestCountsAreExact(t *testing.T) {
	c := Defaults(models(9)["gcn"])
	workers(t, c, cut(t, toy(rng.New(1), 30, 9), "uneven", 3), func(tr *Trainer, g *comm.Group) error {
		n := []int64{1<<24 + 1, 0, 1<<40 + int64(tr.shard.Rank), 4095}
		if err := sumCounts(context.Background(), g, n); err != nil {
			return err
		}
		if want := []int64{3<<24 + 3, 0, 3<<40 + 3, 3 * 4095}; !slices.Equal(n, want) {
			t.Errorf("sums %d, want %d", n, want)
		}
		return nil
	})
}
