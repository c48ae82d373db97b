package secagg

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
)

// TestTimeOnLines: what masks add to a sum of 50 sites on lines of 100 Mbit/s and 20 ms, where computing takes no time:
// the trip that finds the grid, and those of seeds where sums are sealed. Without seeds it is less than half.
func TestTimeOnLines(t *testing.T) {
	links, err := netsim.ParseTable("latency=20ms,rate=100Mbit")
	if err != nil {
		t.Fatal(err)
	}
	const size = 50
	lengths := []int{200_000, 1_000_000}
	if testing.Short() {
		lengths = lengths[:1]
	}
	for _, n := range lengths {
		line := func(how int, ledger bool) (took time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				start := make([]time.Time, size)
				errs := over(t, netsim.New(size, netsim.Config{Links: links}), size, nil, func(g *comm.Group) error {
					var r comm.Reducer = g
					if how == masked {
						terms := Terms{Least: 3}
						if ledger {
							terms.Ledger = new(Ledger)
						}
						s, err := New(context.Background(), terms, g)
						if err != nil {
							return err
						}
						r = s
					}
					if err := g.Barrier(context.Background()); err != nil {
						return err
					}
					start[g.Rank()] = time.Now()
					_, err := r.Reduce(context.Background(), &comm.Contribution{Update: make([]float32, n), Parts: []int{n}})
					return err
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				took = time.Since(start[0])
			})
			return took
		}
		floats, with, sealed := line(plain, false), line(masked, false), line(masked, true)
		t.Logf("%d numbers: floats %v, masked %v, sealed %v", n, floats, with, sealed)
		if with < floats || 2*with > 3*floats {
			t.Errorf("%d numbers: masked sums must take the time of floats to 1.5 times as long (got %v and %v)", n, floats, with)
		}
	}
}
