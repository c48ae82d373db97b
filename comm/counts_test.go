package comm_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/rng"
)

// TestNarrowCounts: counts in 16 and 32 bits have the same sums as counts in 64, including wide ones, which may be
// negative, for vectors of one owner and of several. What is sent is as small as it can be.
func TestNarrowCounts(t *testing.T) {
	wide := func(i int) bool { return i%5 == 0 }
	for _, size := range []int{1, 2, 3, 4, 5, 9} {
		for _, n := range []int{1, 12, 9001} {
			for _, bits := range []int{16, 32} {
				parts, want := make([][]int64, size), make([]int64, n)
				for r := range parts {
					key := rng.New(7).Fold(uint64(r))
					for i := range n {
						v := int64(key.Uint64(uint64(i)))
						if !wide(i) {
							v = int64(uint64(v) % (1 << bits / uint64(size)))
						} else if i%3 == 0 {
							v = []int64{math.MinInt64, -1, 1 << 50, math.MaxInt64}[(i+r)%4]
						}
						parts[r], want[i] = append(parts[r], v), want[i]+v
					}
				}
				_, gs := groups(size, netsim.Config{})
				must(t, each(gs, func(g *comm.Group) error {
					c := &comm.Contribution{Counts: slices.Clone(parts[g.Rank()]), CountBits: bits, Wide: wide}
					if _, err := g.Reduce(t.Context(), c); err != nil {
						return err
					}
					if !slices.Equal(c.Counts, want) {
						return fmt.Errorf("%d members, %d counts of %d bits: member %d has other sums", size, n, bits,
							g.Rank())
					}
					return g.Barrier(t.Context())
				}))
				// of a wide number, of 16 − ⌈log₂ size⌉ bits each
				digits := map[int]int{1: 4, 2: 5, 3: 5, 4: 5, 5: 5, 9: 6}[size]
				if bits == 32 {
					digits = map[bool]int{true: 2, false: 3}[size == 1]
				}
				numbers := (n + 4) / 5
				sent := int64(0)
				for _, g := range gs {
					sent += g.Bytes().Reduce
				}
				if want := int64(2*(size-1)) * int64((n-numbers+digits*numbers)*bits/8); sent != want {
					t.Errorf("%d members, %d counts of %d bits: %d bytes, must be %d", size, n, bits, sent, want)
				}
			}
		}
	}
}

// TestCountBits: the number of nodes chooses the ring.
func TestCountBits(t *testing.T) {
	for most, want := range map[int64]int{1: 16, 1<<16 - 1: 16, 1 << 16: 32, 1<<32 - 1: 32, 1 << 32: 0} {
		if got := comm.CountBits(most); got != want {
			t.Errorf("numbers up to %d: %d bits, must be %d", most, got, want)
		}
	}
}
