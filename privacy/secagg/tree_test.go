package secagg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/tree"
	"github.com/heddle-gnn/heddle/internal/long"
)

// TestOverTree: above tree.Above members masked sums go over a tree and have the bits that owners of chunks give them in the
// clear, sealed or not. No member sends more than the tree says.
func TestOverTree(t *testing.T) {
	for _, size := range []int{tree.Above + 1, 130, 200} {
		t.Run(fmt.Sprint(size, " members"), func(t *testing.T) {
			if size > 130 || size > tree.Above+1 && testing.Short() {
				long.Only(t)
			}
			one := func(rank int) *comm.Contribution {
				return &comm.Contribution{ID: comm.ReduceID{Kind: "test"}, Update: numbers(3, rank, 90, 2), Bits: 16, Counts: []int64{int64(rank), -7}}
			}
			flat := reduceAll(t, size, plain, one)
			{
				errs := together(t, size, nil, func(g *comm.Group) error {
					r, err := New(context.Background(), Terms{Least: 2}, g)
					if err != nil {
						return err
					}
					messages, c := g.Messages(), one(g.Rank())
					if _, err := r.Reduce(context.Background(), c); err != nil {
						return err
					}
					if sent := g.Messages() - messages; sent > 2*(tree.FanOut+1) { // a grid, and numbers
						return fmt.Errorf("it sends %d messages, must be at most %d", sent, 2*(tree.FanOut+1))
					}
					if want := flat[g.Rank()]; !sameBits(c.Update, want.update) || !slices.Equal(c.Counts, want.counts) {
						return errors.New("the sums over a tree differ from those of owners")
					}
					return nil
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
