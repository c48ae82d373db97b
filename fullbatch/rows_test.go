package fullbatch

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// FuzzSparseRows: what is taken for rows encodes to the same bytes; nothing else is taken, and nothing panics.
func FuzzSparseRows(f *testing.F) {
	g := sparsed(toy(rng.New(1), 20, 9))
	f.Add(encodeSparse(g.X.Sparse.Select(identity(3))), 3)
	f.Add(encodeSparse(g.X.Sparse.Select(nil)), 0)
	f.Add([]byte{1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0xc0, 0x7f}, 1) // not a number
	f.Add([]byte{2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, rows int) {
		if rows < 0 || rows > 100 {
			return
		}
		x := &mat.Sparse{Cols: 9, RowPtr: []int64{0}}
		if appendSparse(x, b, rows) != nil {
			return
		}
		x.Rows = rows
		if err := x.Valid(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encodeSparse(x), b) {
			t.Fatalf("%d bytes are read, and written as others", len(b))
		}
	})
}

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
