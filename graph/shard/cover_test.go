package shard

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"pgregory.net/rapid"
)

// exhaustiveCover tries all sets of sources: the destinations that any other source has an edge to
// are needed.
func exhaustiveCover(adj *graph.CSR) int {
	least := adj.NumSrc + adj.NumDst
	for rows := range 1 << adj.NumSrc {
		size := 0
		for j := range adj.NumSrc {
			size += rows >> j & 1
		}
		for i := range adj.NumDst {
			col, _ := adj.Row(i)
			if slices.ContainsFunc(col, func(j int32) bool { return rows>>j&1 == 0 }) {
				size++
			}
		}
		least = min(least, size)
	}
	return least
}

func covers(adj *graph.CSR, rows, sums []int32) bool {
	for i := range adj.NumDst {
		col, _ := adj.Row(i)
		for _, j := range col {
			if !slices.Contains(rows, j) && !slices.Contains(sums, int32(i)) {
				return false
			}
		}
	}
	return true
}

func TestMinCoverIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		adj := &graph.CSR{NumDst: rapid.IntRange(0, 9).Draw(t, "destinations"),
			NumSrc: rapid.IntRange(1, 8).Draw(t, "sources"), RowPtr: []int64{0}}
		for range adj.NumDst {
			for j := range int32(adj.NumSrc) {
				if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
					adj.Col = append(adj.Col, j)
				}
			}
			adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col)))
		}
		rows, sums := leastCover(adj)
		if !slices.IsSorted(rows) || !slices.IsSorted(sums) {
			t.Fatalf("rows %v and sums %v do not ascend", rows, sums)
		}
		if !covers(adj, rows, sums) {
			t.Fatalf("an edge of %v has an end neither in rows %v nor in sums %v", adj, rows, sums)
		}
		want := exhaustiveCover(adj)
		if got := len(rows) + len(sums); got != want {
			t.Fatalf("%d messages, %d will do", got, want)
		}
		if rows, sums = cover(adj, -1); !covers(adj, rows, sums) || len(rows)+len(sums) > 2*want {
			t.Fatalf("in one pass rows %v and sums %v, %d will do", rows, sums, want)
		}
	})
}

// A path of augmentation as long as the graph: source k goes to destinations k and k+1, the last
// only to its own.
func TestMinCoverOfLongPath(t *testing.T) {
	const n = 200_000
	adj := &graph.CSR{NumDst: n, NumSrc: n, RowPtr: []int64{0}}
	for i := range int32(n) {
		if i > 0 {
			adj.Col = append(adj.Col, i-1)
		}
		if i > 0 && i < n-1 {
			adj.Col = append(adj.Col, i)
		}
		adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col)))
	}
	if rows, sums := leastCover(adj); len(rows)+len(sums) != n-1 {
		t.Errorf("%d messages, must be %d", len(rows)+len(sums), n-1)
	}
}
