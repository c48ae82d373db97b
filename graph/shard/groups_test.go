package shard

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
)

// TestGroups: sums are over at least so many sources, none is in two, every term is an edge with its weight; what is left
// out could not have made one more sum by itself, and a refused sum is gone with its terms.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		adj, least := bipartite(t), rapid.IntRange(2, 4).Draw(t, "least")
		c := NewGroups(adj, least)
		if err := c.Grouped(least); err != nil {
			t.Fatal(err)
		}
		in := make([]bool, adj.NumSrc)
		for k, i := range c.Dst {
			col, weight := c.Sums.Row(k)
			all, weights := adj.Row(int(i))
			for n, j := range col {
				at, ok := slices.BinarySearch(all, j)
				if in[j] = true; !ok || weights != nil && (weight[n] != weights[at] || weight[n] == 0) {
					t.Fatalf("the sum of destination %d has source %d, which is no edge of this weight", i, j)
				}
			}
		}
		for i := range adj.NumDst {
			col, weight := adj.Row(i)
			free := 0
			for n, j := range col {
				if !in[j] && (weight == nil || weight[n] > 0) {
					free++
				}
			}
			if has := slices.Contains(c.Dst, int32(i)); free >= least || has && free > 0 {
				t.Fatalf("destination %d (%t) could have had %d sources more", i, has, free)
			}
		}
		if len(c.Dst) == 0 {
			return
		}
		refused := make([]bool, len(c.Dst))
		refused[0] = true
		left := c.Without(refused)
		if left.Len() != c.Len()-1 || slices.Contains(left.Dst, c.Dst[0]) || left.Sums.NumEdges() != c.Sums.NumEdges()-int(c.Sums.RowPtr[1]) {
			t.Fatalf("%+v without its first sum: %+v", c, left)
		}
	})
}

// TestGroupedRefuses: what a peer asks for is no row, no sum over fewer, and no row in two sums.
func TestGroupedRefuses(t *testing.T) {
	sums := func(weight []float32, rows ...[]int32) *Cover {
		c := &Cover{Sums: graph.CSR{NumSrc: 4, RowPtr: []int64{0}, Weight: weight}}
		for _, col := range rows {
			c.Sums.NumDst++
			c.Sums.Col = append(c.Sums.Col, col...)
			c.Sums.RowPtr = append(c.Sums.RowPtr, int64(len(c.Sums.Col)))
		}
		return c
	}
	for want, c := range map[string]*Cover{
		"got 1 rows":                              {Rows: []int32{2}, Sums: graph.CSR{NumSrc: 4, RowPtr: []int64{0}}},
		"must be over at least 2 rows (got 1)":    sums(nil, []int32{0, 1}, []int32{3}),
		"row 1 must be in one sum":                sums(nil, []int32{0, 1}, []int32{1, 3}),
		"a sum must be over at least 2 rows (got": sums([]float32{1, 0}, []int32{0, 1}),
	} {
		if err := c.Grouped(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, must be %q", err, want)
		}
	}
	if err := sums([]float32{1, 2, 1, 1}, []int32{0, 1}, []int32{2, 3}).Grouped(2); err != nil {
		t.Error(err)
	}
}
