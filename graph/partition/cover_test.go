package partition

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"pgregory.net/rapid"
)

// leastCover tries all sets of sources: the destinations that any other source has an edge to are needed.
func leastCover(adj *graph.CSR) int {
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
		adj := &graph.CSR{NumDst: rapid.IntRange(0, 9).Draw(t, "destinations"), NumSrc: rapid.IntRange(1, 8).Draw(t, "sources"), RowPtr: []int64{0}}
		for range adj.NumDst {
			for j := range int32(adj.NumSrc) {
				if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
					adj.Col = append(adj.Col, j)
				}
			}
			adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col)))
		}
		rows, sums := MinCover(adj)
		if !slices.IsSorted(rows) || !slices.IsSorted(sums) {
			t.Fatalf("rows %v and sums %v do not ascend", rows, sums)
		}
		if !covers(adj, rows, sums) {
			t.Fatalf("an edge of %v has an end neither in rows %v nor in sums %v", adj, rows, sums)
		}
		want := leastCover(adj)
		if got := len(rows) + len(sums); got != want {
			t.Fatalf("%d messages, %d will do", got, want)
		}
		if rows, sums = minCover(adj, -1); !covers(adj, rows, sums) || len(rows)+len(sums) > 2*want {
			t.Fatalf("in one pass rows %v and sums %v, %d will do", rows, sums, want)
		}
	})
}

// A path of augmentation as long as the graph: source k goes to destinations k and k+1, the last only to its own.
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
	if rows, sums := MinCover(adj); len(rows)+len(sums) != n-1 {
		t.Errorf("%d messages, want %d", len(rows)+len(sums), n-1)
	}
}

func TestCoverByHand(t *testing.T) {
	// Node 0 of part 0 has edges to 2, 3, 4 of part 1, node 1 only to 2, and 5 of part 1 to nobody.
	adj, err := graph.FromEdges(6, []int32{0, 0, 0, 1, 5}, []int32{2, 3, 4, 2, 4}, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	shards, err := Cut(&graph.Graph{Adj: adj, Split: make([]graph.Split, 6), Labels: graph.Labels{Classes: 1, Class: make([]int32, 6)}}, []int32{0, 0, 1, 1, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	// 0 → 1 takes row 0, and row 1 or the sum for 2. 1 → 0 takes the sum for 0 in place of rows 2, 3, 4, and row 2 or
	// the sum for 1. Without sums that would be 2 and 3 rows.
	plan, r := Plans(shards), Describe(shards, Meta{}).Report()
	if got := plan.Rows[0][1] + plan.Sums[0][1]; got != 2 || r.Rows[0][1] != 2 {
		t.Errorf("0 → 1: %d messages of %d rows, want 2 of 2", got, r.Rows[0][1])
	}
	if got := plan.Rows[1][0] + plan.Sums[1][0]; got != 2 || r.Rows[1][0] != 3 {
		t.Errorf("1 → 0: %d messages of %d rows, want 2 of 3", got, r.Rows[1][0])
	}
	if plan.Total != 4 || r.Halo != 5 {
		t.Errorf("%d messages of %d rows, want 4 of 5", plan.Total, r.Halo)
	}
}

func TestCoverIsNoMoreThanRows(t *testing.T) {
	g := communities(1000, 8, 6, 0.8, rng.New(11))
	for _, name := range []string{"random", "restream:5", "multilevel"} {
		shards, err := Partition(g, policy(t, name), 6, 1)
		if err != nil {
			t.Fatal(err)
		}
		plan, r := Plans(shards), Describe(shards, Meta{}).Report()
		sum := int64(0)
		for p := range shards {
			for q := range shards {
				n := plan.Rows[p][q] + plan.Sums[p][q]
				if sum += n; n > r.Rows[p][q] || n > r.Rows[q][p] { // undirected: the destinations are the rows the other way
					t.Errorf("%s: %d messages from %d to %d, of %d rows and %d the other way", name, n, p, q, r.Rows[p][q], r.Rows[q][p])
				}
			}
		}
		if sum != plan.Total || sum == 0 || sum >= r.Halo {
			t.Errorf("%s: %d messages, in all %d, of %d rows", name, plan.Total, sum, r.Halo)
		}
	}
}
