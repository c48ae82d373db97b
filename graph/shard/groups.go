package shard

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// NewGroups returns sums alone, each over at least so many sources, of which none is in two sums: whatever is computed
// of such sums has that many sources in it, or all of them cancel. Other edges of adj are left out. Destinations with
// few edges come first, and take the sources that the fewest others could have; sources that are left go to the
// smallest sum that reads them.
func NewGroups(adj *graph.CSR, least int) *Cover {
	adj = weighing(adj)
	readers := make([]int32, adj.NumSrc)
	for _, j := range adj.Col {
		readers[j]++
	}
	edges := func(i int32) int64 { return adj.RowPtr[i+1] - adj.RowPtr[i] }
	var order []int32
	for i := range int32(adj.NumDst) {
		if edges(i) >= int64(least) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(edges(a), edges(b)) })
	const nobody = -1
	of, size := slices.Repeat([]int32{nobody}, adj.NumSrc), make([]int, adj.NumDst)
	var free []int32
	for _, i := range order {
		free = free[:0]
		col, _ := adj.Row(int(i))
		for _, j := range col {
			if of[j] == nobody {
				free = append(free, j)
			}
		}
		if len(free) < least {
			continue
		}
		slices.SortStableFunc(free, func(a, b int32) int { return cmp.Compare(readers[a], readers[b]) })
		for _, j := range free[:least] {
			of[j] = i
		}
		size[i] = least
	}
	best := make([]int32, adj.NumSrc) // of the sums that read a source that is left, the smallest
	for j := range best {
		best[j] = nobody
	}
	for _, i := range order {
		col, _ := adj.Row(int(i))
		for _, j := range col {
			if of[j] == nobody && size[i] > 0 && (best[j] == nobody || size[i] < size[best[j]]) {
				best[j] = i
			}
		}
	}
	for j, i := range best {
		if i != nobody {
			of[j] = i
		}
	}
	c := &Cover{Sums: graph.CSR{NumSrc: adj.NumSrc, RowPtr: []int64{0}}}
	if adj.Weight != nil {
		c.Sums.Weight = []float32{}
	}
	for i := range int32(adj.NumDst) {
		if size[i] == 0 {
			continue
		}
		col, weight := adj.Row(int(i))
		for k, j := range col {
			if of[j] != i {
				continue
			}
			if c.Sums.Col = append(c.Sums.Col, j); weight != nil {
				c.Sums.Weight = append(c.Sums.Weight, weight[k])
			}
		}
		c.Dst = append(c.Dst, i)
		c.Sums.NumDst++
		c.Sums.RowPtr = append(c.Sums.RowPtr, int64(len(c.Sums.Col)))
	}
	return c
}

// weighing returns the edges of adj that weigh more than 0: a term of weight 0 hides no other.
func weighing(adj *graph.CSR) *graph.CSR {
	if !slices.Contains(adj.Weight, 0) {
		return adj
	}
	out := &graph.CSR{NumDst: adj.NumDst, NumSrc: adj.NumSrc, RowPtr: []int64{0}}
	for i := range adj.NumDst {
		col, weight := adj.Row(i)
		for k, j := range col {
			if weight[k] > 0 {
				out.Col, out.Weight = append(out.Col, j), append(out.Weight, weight[k])
			}
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
	}
	if out.Weight == nil {
		out.Weight = []float32{}
	}
	return out
}

// Grouped returns an error unless c is such that NewGroups may have returned it: a peer's request need not be.
func (c *Cover) Grouped(least int) error {
	if len(c.Rows) > 0 {
		return fmt.Errorf("sums must stand for all rows (got %d rows)", len(c.Rows))
	}
	in := make([]bool, c.Sums.NumSrc)
	for i := range c.Sums.NumDst {
		col, weight := c.Sums.Row(i)
		n := len(col)
		for _, w := range weight {
			if w == 0 {
				n--
			}
		}
		if n < least {
			return fmt.Errorf("a sum must be over at least %d rows (got %d)", least, n)
		}
		for _, j := range col {
			if in[j] {
				return fmt.Errorf("row %d must be in one sum", j)
			}
			in[j] = true
		}
	}
	return nil
}

// Without returns c less the sums that are refused.
func (c *Cover) Without(refused []bool) *Cover {
	out := &Cover{Rows: c.Rows, Sums: graph.CSR{NumSrc: c.Sums.NumSrc, RowPtr: []int64{0}}}
	if c.Sums.Weight != nil {
		out.Sums.Weight = []float32{}
	}
	for i := range c.Sums.NumDst {
		if refused[i] {
			continue
		}
		if c.Dst != nil {
			out.Dst = append(out.Dst, c.Dst[i])
		}
		col, weight := c.Sums.Row(i)
		out.Sums.Col, out.Sums.Weight = append(out.Sums.Col, col...), append(out.Sums.Weight, weight...)
		out.Sums.NumDst++
		out.Sums.RowPtr = append(out.Sums.RowPtr, int64(len(out.Sums.Col)))
	}
	return out
}
