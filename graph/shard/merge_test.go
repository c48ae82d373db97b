package shard

import (
	"bytes"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
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
				t.Fatalf("worker %d of %d: merged from parts %d to %d of %d it is\n%+v\nwant\n%+v", w, workers, lo,
					hi-1, len(shards), got, want[w])
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
		"none": nil, "one of two": shards[:1], "of two workers": shards[1:3], "three": shards[:3],
		"in another order": {shards[1], shards[0]}, "of two partitions": {shards[0], other[1]},
		"twice the same": {shards[0], shards[0]},
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

// TestTypedPartsMergeToTheGraph: a graph with types of nodes, relations and columns of edges is, cut into
// any number of parts and merged, what it was, also when the parts' files are closed.
func TestTypedPartsMergeToTheGraph(t *testing.T) {
	g := graphtest.Typed(t)
	n := g.N()
	g.Types = graph.Types{Names: []string{"a", "b", "c"}, Of: make([]uint8, n)}
	g.X.Dense = mat.New(n, 2)
	for i := range n {
		g.Types.Of[i] = uint8(i % 3)
		g.X.Dense.Set(i, i%2, float32(i))
	}
	graphtest.Apart(g)
	x := mat.New(g.Adj.NumEdges()+g.Typed.Adj.NumEdges(), 3)
	for k := range x.Data {
		x.Data[k] = float32(k)
	}
	for k := range g.Adj.NumEdges() {
		g.Adj.Edge = append(g.Adj.Edge, int32(k*7%x.Rows))
	}
	for k := range g.Typed.Adj.NumEdges() {
		g.Typed.Adj.Edge = append(g.Typed.Adj.Edge, int32(k*11%x.Rows))
	}
	g.EdgeX, _ = g.Typed.CompactEdges(&g.Adj, x)
	want := Whole(g)
	for _, parts := range []int{1, 2, 3, 7} {
		owner := make([]int32, n)
		for i := range owner {
			owner[i] = int32(i * 5 % n % parts)
		}
		shards, err := Cut(g, owner, parts)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if _, err := WriteDir(dir, shards, Meta{}); err != nil {
			t.Fatal(err)
		}
		shards, files, err := ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Merge(shards, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := files.Close(); err != nil {
			t.Fatal(err)
		}
		got.Fingerprint = want.Fingerprint
		if !bytes.Equal(encode(t, got.sections()), encode(t, want.sections())) {
			t.Errorf("%d parts merge to\n%+v\nmust be\n%+v", parts, got, want)
		}
	}
}
