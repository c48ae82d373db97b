package graph

import (
	"fmt"
	"math"
	"slices"
)

// Build sets how a list of edges becomes a CSR. The zero value is the default for training: both directions of every
// edge, no self-loops.
type Build struct {
	Directed  bool // keep each edge as given, from src to dst; otherwise its reverse is added
	KeepLoops bool // keep edges from a node to itself
	// Edge is each listed edge's row in a table of edge columns; both directions of an undirected edge have the same
	// row. Of repeated edges the lowest row stays: to merge their rows, do so before (graph/dataset/edgelist). Nil if
	// edges have no columns.
	Edge []int32
}

// FromEdges returns the N×N adjacency of n nodes with an edge from src[k] to dst[k] of weight weight[k] (nil = all 1).
// Repeated edges become one with their largest weight. So the result does not depend on the order of the list, and
// listing both directions of an undirected edge changes nothing. It refuses lists of unequal length, endpoints outside
// [0, n) and weights that are negative or not finite, naming the index in the list.
func FromEdges(n int, src, dst []int32, weight []float32, b Build) (CSR, error) {
	if n < 0 || n > math.MaxInt32 {
		return CSR{}, fmt.Errorf("number of nodes must be 0 to %d (got %d)", math.MaxInt32, n)
	}
	if len(src) != len(dst) || weight != nil && len(weight) != len(src) {
		return CSR{}, fmt.Errorf("edges must have as many sources, destinations and weights (got %d, %d and %d)",
			len(src), len(dst), len(weight))
	}
	if b.Edge != nil && len(b.Edge) != len(src) {
		return CSR{}, fmt.Errorf("%d rows of edge columns for %d edges", len(b.Edge), len(src))
	}
	for k := range src {
		if uint32(src[k]) >= uint32(n) || uint32(dst[k]) >= uint32(n) {
			return CSR{}, fmt.Errorf("edge %d goes from node %d to node %d, out of [0, %d)", k, src[k], dst[k],
				n)
		}
	}
	for k, w := range weight {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return CSR{}, fmt.Errorf("weight of edge %d must be a finite number, 0 or more (got %v)", k, w)
		}
	}
	// Rows by source in the order of the list, then transposed: a counting sort by (destination,
	// source).
	t := CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}
	each := func(f func(i, j int32, k int)) {
		for k := range src {
			if src[k] == dst[k] {
				if b.KeepLoops {
					f(src[k], dst[k], k)
				}
				continue
			}
			f(src[k], dst[k], k)
			if !b.Directed {
				f(dst[k], src[k], k)
			}
		}
	}
	each(func(i, _ int32, _ int) { t.RowPtr[i+1]++ })
	for i := range n {
		t.RowPtr[i+1] += t.RowPtr[i]
	}
	t.Col = make([]int32, t.RowPtr[n])
	if weight != nil {
		t.Weight = make([]float32, len(t.Col))
	}
	if b.Edge != nil {
		t.Edge = make([]int32, len(t.Col))
	}
	next := slices.Clone(t.RowPtr[:n])
	each(func(i, j int32, k int) {
		t.Col[next[i]] = j
		if weight != nil {
			t.Weight[next[i]] = weight[k]
		}
		if b.Edge != nil {
			t.Edge[next[i]] = b.Edge[k]
		}
		next[i]++
	})
	g := t.Transpose(nil)
	g.dedup()
	return *g, nil
}

// dedup merges equal neighbours in rows that are sorted, keeping the largest weight and lowest row.
func (g *CSR) dedup() {
	end, lo := int64(0), int64(0)
	for i := range g.NumDst {
		hi := g.RowPtr[i+1]
		first := end
		for k := lo; k < hi; k++ {
			if end > first && g.Col[end-1] == g.Col[k] {
				if g.Weight != nil {
					g.Weight[end-1] = max(g.Weight[end-1], g.Weight[k])
				}
				if g.Edge != nil {
					g.Edge[end-1] = min(g.Edge[end-1], g.Edge[k])
				}
				continue
			}
			g.Col[end] = g.Col[k]
			if g.Weight != nil {
				g.Weight[end] = g.Weight[k]
			}
			if g.Edge != nil {
				g.Edge[end] = g.Edge[k]
			}
			end++
		}
		lo, g.RowPtr[i+1] = hi, end
	}
	g.Col = slices.Clip(g.Col[:end])
	if g.Weight != nil {
		g.Weight = slices.Clip(g.Weight[:end])
	}
	if g.Edge != nil {
		g.Edge = slices.Clip(g.Edge[:end])
	}
}
