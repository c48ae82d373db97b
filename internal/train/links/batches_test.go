package links

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// TestBatches: each link that trains belongs to one step of an epoch, the same from both ends and over any number of
// peers. Steps have about equally many links, and another epoch deals them out anew.
func TestBatches(t *testing.T) {
	const steps = 6
	g := graphtest.Communities(200, 10, 12, 0.5, rng.New(1))
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(rng.New(2).Uint64(uint64(i)) % 3)
	}
	three, err := shard.Cut(g, owner, 3)
	if err != nil {
		t.Fatal(err)
	}
	stepOf := map[[2]int64]int{}
	moved, all := 0, 0
	for _, s := range append([]*shard.Shard{shard.Whole(g)}, three...) {
		task, err := New(train.LinkTask{HeldOut: [2]float64{0.1, 0.1}, Negatives: 1}, 4, s)
		if err != nil {
			t.Fatal(err)
		}
		b, next := task.Batches(1, steps), task.Batches(2, steps)
		count := make([]int, steps)
		for _, l := range task.cut.Links {
			u, v := s.Global[l.At], s.Global[l.Other]
			pair := [2]int64{min(u, v), max(u, v)}
			in := 0
			for k := range steps {
				if !b.Left(k).Edge(-1, l.At, l.Other) {
					continue
				}
				in++
				count[k]++
				if was, seen := stepOf[pair]; seen && was != k {
					t.Fatalf("link %v is of step %d, must be %d, as from its other end", pair, k, was)
				}
				stepOf[pair] = k
				if !b.Left(k).Of(l.At) || !b.Left(k).Edge(0, l.At, l.Other) {
					t.Fatalf("step %d does not know link %v by its node or relation", k, pair)
				}
				if all++; !next.Left(k).Edge(-1, l.At, l.Other) {
					moved++
				}
			}
			if trains := l.Split == graph.Train; trains != (in == 1) {
				t.Fatalf("link %v, which trains: %t, is of %d steps", pair, trains, in)
			}
		}
		if s.Parts == 1 {
			for k, n := range count {
				if mean := float64(all) / steps; float64(n) < mean/2 || float64(n) > 2*mean {
					t.Errorf("step %d has %d links, must be about %.0f", k, n, mean)
				}
			}
		}
	}
	if moved < all/2 {
		t.Errorf("%d of %d links are of another step in the next epoch, must be most", moved, all)
	}
}
