package shard

import (
	"bytes"
	"testing"

	"github.com/heddle-gnn/heddle/graph/graphtest"
	"pgregory.net/rapid"
)

// TestMergedPartsAreOnePart: several parts of one worker are, byte for byte, the part that it would
// have had of a partition into as many parts as there are workers.
func TestMergedPartsAreOnePart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, owner, shards := drawCut(t)
		workers := rapid.IntRange(1, len(shards)).Draw(t, "workers")
		by := make([]int32, len(owner))
		for i, p := range owner {
			by[i] = int32(groupOf(len(shards), workers, int(p)))
		}
		want, err := Cut(g, by, workers)
		if err != nil {
			t.Fatal(err)
		}
		for w := range workers {
			lo, hi := Group(len(shards), workers, w)
			if lo >= hi {
				t.Fatalf("worker %d of %d has no part of %d", w, workers, len(shards))
			}
			got, err := Merge(shards[lo:hi], workers)
			if err != nil {
				t.Fatal(err)
			}
			if got.Fingerprint == want[w].Fingerprint || got.Fingerprint == shards[0].Fingerprint {
				t.Fatal("parts that were merged have the fingerprint of others")
			}
			got.Fingerprint = want[w].Fingerprint
			if !bytes.Equal(encode(t, got.sections()), encode(t, want[w].sections())) {
				t.Fatalf("worker %d of %d: merged from parts %d to %d of %d it is\n%+v\nwant\n%+v", w, workers, lo, hi-1, len(shards), got, want[w])
			}
		}
	})
}

// TestMergeRefuses: parts that do not belong together, or not to one worker.
func TestMergeRefuses(t *testing.T) {
	shards, err := Cut(graphtest.Path(12), []int32{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, 4)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Cut(graphtest.Path(12), []int32{0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, parts := range map[string][]*Shard{
		"none": nil, "one of two": shards[:1], "of two workers": shards[1:3], "three": shards[:3], "in another order": {shards[1], shards[0]},
		"of two partitions": {shards[0], other[1]}, "twice the same": {shards[0], shards[0]},
	} {
		if _, err := Merge(parts, 2); err == nil {
			t.Errorf("%s: merged", name)
		}
	}
	for _, workers := range []int{0, 5} {
		if _, err := Merge(shards[:1], workers); err == nil {
			t.Errorf("merged for %d workers", workers)
		}
	}
}
