package secagg

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
)

// TestTimeOnLines: what masks add to a sum of 50 sites on lines of 100 Mbit/s and 20 ms, where computing takes no time:
// the trip that finds the grid. It is less than half.
func TestTimeOnLines(t *testing.T) {
	links, err := netsim.ParseTable("latency=20ms,rate=100Mbit")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{200_000, 1_000_000} {
		t.Run(fmt.Sprint(n, " numbers"), func(t *testing.T) {
			if n > 200_000 {
				testenv.OnlyLong(t)
			}
			floats, with := timeOnLines(t, links, n, plain), timeOnLines(t, links, n, masked)
			t.Logf("floats %v, masked %v", floats, with)
			if with < floats || 2*with > 3*floats {
				t.Errorf("masked sums must take the time of floats to 1.5 times as long (got %v and %v)", floats, with)
			}
		})
	}
}

// timeOnLines is how long 50 sites take for one sum of n numbers.
func timeOnLines(t *testing.T, links netsim.Table, n, how int) (took time.Duration) {
	t.Helper()
	const size = 50
	synctest.Test(t, func(t *testing.T) {
		start := make([]time.Time, size)
		errs := over(t, netsim.New(size, netsim.Config{Links: links}), size, nil, func(g *comm.Group) error {
			var r comm.Reducer = g
			if how == masked {
				s, err := New(context.Background(), KeyTerms{Least: 3}, g)
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
