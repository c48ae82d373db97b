package shard

import (
	"reflect"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
	"pgregory.net/rapid"
)

// TestReorderIsTheSamePartition draws any shards: reordered they are valid, fit together, and are
// the same graph with the same owners.
func TestReorderIsTheSamePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, shards := drawCut(t)
		key := rng.New(rapid.Uint64().Draw(t, "key"))
		by := func(inner *graph.CSR) (order []int32) {
			for _, i := range key.Perm(inner.NumDst) {
				order = append(order, int32(i))
			}
			return order
		}
		before := slices.Clone(shards[0].Global)
		out := Reorder(shards, by)
		if err := Consistent(out); err != nil {
			t.Fatal(err)
		}
		for p, s := range out {
			if err := s.Valid(); err != nil {
				t.Fatal(err)
			}
			own := slices.Sorted(slices.Values(s.Global[:s.Owned]))
			if !slices.Equal(own, shards[p].Global[:s.Owned]) || !slices.Equal(s.HaloPtr, shards[p].HaloPtr) {
				t.Fatalf("part %d owns %v, must be %v", p, own, shards[p].Global[:s.Owned])
			}
			if again, err := decode(encode(t, s.sections())); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("part %d reads back as %+v, must be %+v (%v)", p, again, s, err)
			}
		}
		if got := together(t, out); !reflect.DeepEqual(got, together(t, shards)) || got.N() != g.N() {
			t.Fatalf("together %+v, must be %+v", got, g)
		}
		if out[0].Fingerprint == shards[0].Fingerprint || !slices.Equal(before, shards[0].Global) {
			t.Fatalf("fingerprint %x as before, or the shards changed", out[0].Fingerprint)
		}
	})
}
