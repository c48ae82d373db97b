package kernels

import (
	"fmt"
	"slices"
	"testing"
)

// TestStrips checks that a product by copied columns, if it is used, has the bits of the same columns read from X one
// by one, and finds the same faults.
func TestStrips(t *testing.T) {
	each(t, func(t *testing.T) {
		const rows = 1500
		rowPtr, col := make([]int64, rows+1), make([]int32, 160*rows)
		for i := range rowPtr {
			rowPtr[i] = int64(160 * i)
		}
		val := noise(2, make([]float32, len(col)))
		for k, c := range []struct {
			n, tall int
			copied  bool
		}{
			{127, 9001, false}, {128, 9001, true}, {150, 9001, true}, {191, 9001, true}, {256, 9001, true},
			{256, 10001, false}, {128, 8000, false}, {7, 900, false}, {8, 900, false}, {9, 900, true},
			{47, 15000, true}, {47, 15001, false}, {48, 900, false}, {63, 900, true}, {65, 900, false},
		} {
			n, ld := c.n, c.n+k%4
			for e := range col {
				col[e] = int32(uint64(e) * 2654435761 % uint64(c.tall))
			}
			x := make([]float32, (c.tall-1)*ld+n)
			var s spmm
			s.init("SpMM", rowPtr, col, n, len(x), ld)
			if got, want := s.stripWidth() > 0, c.copied && active.tiles.lay != nil; got != want {
				t.Errorf("n %d of %d rows: copied %v, must be %v", n, c.tall, got, want)
			}
			if active.tiles.lay == nil {
				continue
			}
			val := val
			if k%3 == 0 {
				val = nil
			}
			noise(3, x)
			y, check := fenced(t, k, (rows-1)*ld+n)
			noise(4, y)
			want := slices.Clone(y)
			SpMM(rowPtr, col, val, n, x, ld, y, ld, k%2 == 0)
			check()
			for j := 0; j < n; j += 8 {
				SpMM(rowPtr, col, val, min(8, n-j), x[j:], ld, want[j:], ld, k%2 == 0)
			}
			same(t, fmt.Sprintf("n %d of %d rows", n, c.tall), y, want)
			if c.copied {
				col[150000] = int32(c.tall)
				panics(t, fmt.Sprintf("column %d of edge 150000", c.tall),
					func() { SpMM(rowPtr, col, nil, n, x, ld, y, ld, false) })
			}
		}
	})
}

// TestNoRowsToCopy: if X has no rows, as for a peer that has none of another's, nothing is copied or added.
func TestNoRowsToCopy(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, n := range []int{1, 9, 63, 128} {
			y := noise(1, make([]float32, 3*n))
			want := slices.Clone(y)
			SpMM([]int64{0, 0, 0, 0}, nil, nil, n, nil, n, y, n, true)
			same(t, fmt.Sprintf("n %d", n), y, want)
		}
	})
}
