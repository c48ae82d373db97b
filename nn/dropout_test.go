package nn

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
)

// TestKeepAt holds the dropout of single columns, for sparse rows, to that of whole rows.
func TestKeepAt(t *testing.T) {
	mask := make([]float32, 1000)
	for k, p := range []float32{0, 0.1, 0.5, 0.75, math.Nextafter32(1, 0)} {
		key := rng.New(3).Fold(uint64(k))
		kernels.DropoutMask(uint64(key), p, mask)
		for c, want := range mask {
			if got := keepAt(key, p, int32(c)); got != want {
				t.Fatalf("p %v, column %d: %v alone, %v in its row", p, c, got, want)
			}
		}
	}
}
