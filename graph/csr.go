// Package graph has the adjacency type of all packages, and the node tables that belong to it.
package graph

import "fmt"

// CSR is a bipartite adjacency in compressed rows. It represents the whole graph, a shard, a sampled block (MFG) and a
// sub-block between two peers. Destinations are the first sources: wherever a layer needs a destination's own row,
// source i is destination i for i < NumDst.
type CSR struct {
	NumDst, NumSrc int
	RowPtr         []int64   // len NumDst+1; in-edges of destination i are [RowPtr[i], RowPtr[i+1])
	Col            []int32   // source index, strictly ascending within a row
	Weight         []float32 // nil = every weight is 1
	// row of each edge in the table of edge columns (Graph.EdgeX), −1 = zeros; nil if edges have no columns
	Edge []int32
}

// NumEdges returns the number of stored edges.
func (g *CSR) NumEdges() int { return len(g.Col) }

// Row returns the sources of destination i and, if there are any, the weights; both share g's
// memory.
func (g *CSR) Row(i int) (col []int32, weight []float32) {
	lo, hi := g.RowPtr[i], g.RowPtr[i+1]
	if g.Weight != nil {
		weight = g.Weight[lo:hi:hi]
	}
	return g.Col[lo:hi:hi], weight
}

// EdgeRows returns the rows of columns of the edges into destination i, in Row's order, or nil if edges have no
// columns. It shares g's memory.
func (g *CSR) EdgeRows(i int) []int32 {
	if g.Edge == nil {
		return nil
	}
	lo, hi := g.RowPtr[i], g.RowPtr[i+1]
	return g.Edge[lo:hi:hi]
}

// like returns an adjacency of that shape without edges but with space for `edges`. It has weights and rows of edge
// columns if g has them.
func (g *CSR) like(dst, src int, edges int64) *CSR { return roomFor(dst, src, edges, g) }

// roomFor is like for several adjacencies: the result has what any of them has.
func roomFor(dst, src int, edges int64, of ...*CSR) *CSR {
	out := &CSR{NumDst: dst, NumSrc: src, RowPtr: make([]int64, dst+1), Col: make([]int32, 0, edges)}
	for _, g := range of {
		if g.Weight != nil && out.Weight == nil {
			out.Weight = make([]float32, 0, edges)
		}
		if g.Edge != nil && out.Edge == nil {
			out.Edge = make([]int32, 0, edges)
		}
	}
	return out
}

// take appends edge k of from, with source j. If from has no weights, the weight is 1; if it has no rows, the row is
// −1.
func (g *CSR) take(from *CSR, k int64, j int32) {
	g.Col = append(g.Col, j)
	if g.Weight != nil {
		w := float32(1)
		if from.Weight != nil {
			w = from.Weight[k]
		}
		g.Weight = append(g.Weight, w)
	}
	if g.Edge != nil {
		e := int32(-1)
		if from.Edge != nil {
			e = from.Edge[k]
		}
		g.Edge = append(g.Edge, e)
	}
}

// Valid returns an error that names the first broken invariant, or nil.
func (g *CSR) Valid() error {
	if g.NumDst < 0 || g.NumSrc < 0 {
		return fmt.Errorf("%d destinations, %d sources", g.NumDst, g.NumSrc)
	}
	if len(g.RowPtr) != g.NumDst+1 || g.RowPtr[0] != 0 {
		return fmt.Errorf("there must be %d row pointers for %d destinations, starting at 0 (got %d)",
			g.NumDst+1, g.NumDst, len(g.RowPtr))
	}
	for i := range g.NumDst {
		if g.RowPtr[i+1] < g.RowPtr[i] || g.RowPtr[i+1] > int64(len(g.Col)) {
			return fmt.Errorf("destination %d ends at edge %d, before its start %d or past the %d edges", i,
				g.RowPtr[i+1], g.RowPtr[i], len(g.Col))
		}
	}
	if g.RowPtr[g.NumDst] != int64(len(g.Col)) {
		return fmt.Errorf("row pointers end at %d, with %d edges", g.RowPtr[g.NumDst], len(g.Col))
	}
	if g.Weight != nil && len(g.Weight) != len(g.Col) {
		return fmt.Errorf("%d weights for %d edges", len(g.Weight), len(g.Col))
	}
	if g.Edge != nil && len(g.Edge) != len(g.Col) {
		return fmt.Errorf("%d rows of edge columns for %d edges", len(g.Edge), len(g.Col))
	}
	for i := range g.NumDst {
		col, _ := g.Row(i)
		for k, j := range col {
			if j < 0 || int(j) >= g.NumSrc {
				return fmt.Errorf("destination %d has source %d, out of [0, %d)", i, j, g.NumSrc)
			}
			if k > 0 && col[k-1] >= j {
				return fmt.Errorf("sources of destination %d are not strictly ascending at %d", i, j)
			}
		}
	}
	return nil
}

// Keep returns the edges whose element in keep is true, or g itself if it keeps all.
func (g *CSR) Keep(keep []bool) *CSR {
	n := int64(0)
	for _, is := range keep {
		if is {
			n++
		}
	}
	if n == int64(g.NumEdges()) {
		return g
	}
	out := g.like(g.NumDst, g.NumSrc, n)
	for i := range g.NumDst {
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			if keep[k] {
				out.take(g, k, g.Col[k])
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}
