package kernels

import (
	"sync/atomic"
	"testing"
)

type counter struct{ done []atomic.Int32 }

func (c *counter) Run(part int) { c.done[part].Add(1) }

// TestParallel: every part runs once, for any number of parts, and no call allocates.
func TestParallel(t *testing.T) {
	for _, parts := range []int{0, 1, 2, 3, 100} {
		c := &counter{make([]atomic.Int32, parts)}
		const calls = 10
		for range calls {
			Parallel(c, parts)
		}
		for i := range c.done {
			if n := c.done[i].Load(); n != calls {
				t.Errorf("part %d of %d was done %d times in %d calls", i, parts, n, calls)
			}
		}
	}
	if raceEnabled {
		return // the race detector empties pools at random
	}
	c := &counter{make([]atomic.Int32, 8)}
	if n := testing.AllocsPerRun(100, func() { Parallel(c, 8) }); n >= 1 {
		t.Errorf("%v allocations a call", n)
	}
}
