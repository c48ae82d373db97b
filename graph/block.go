package graph

import (
	"fmt"
	"slices"
)

// Transpose returns the NumSrc×NumDst adjacency of the reversed edges, with their weights and rows. If perm is not nil,
// it must have length NumEdges; perm[k] becomes the index in g of the transpose's k-th edge, so that other values of
// edges can be permuted alike.
func (g *CSR) Transpose(perm []int64) *CSR {
	if perm != nil && len(perm) != len(g.Col) {
		panic(fmt.Sprintf("graph: permutation of length %d for %d edges", len(perm), len(g.Col)))
	}
	t := &CSR{NumDst: g.NumSrc, NumSrc: g.NumDst, RowPtr: make([]int64, g.NumSrc+1), Col: make([]int32, len(g.Col))}
	if g.Weight != nil {
		t.Weight = make([]float32, len(g.Col))
	}
	if g.Edge != nil {
		t.Edge = make([]int32, len(g.Col))
	}
	for _, j := range g.Col {
		t.RowPtr[j+1]++
	}
	for j := range g.NumSrc {
		t.RowPtr[j+1] += t.RowPtr[j]
	}
	next := slices.Clone(t.RowPtr[:g.NumSrc])
	for i := range g.NumDst {
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			at := next[g.Col[k]]
			next[g.Col[k]]++
			t.Col[at] = int32(i)
			if g.Weight != nil {
				t.Weight[at] = g.Weight[k]
			}
			if g.Edge != nil {
				t.Edge[at] = g.Edge[k]
			}
			if perm != nil {
				perm[at] = k
			}
		}
	}
	return t
}

// Relabel returns the rows dst of g with source j renamed to[j], sorted again: destination k of the result is
// destination dst[k] of g. Edges from sources with to[j] < 0 are left out; all other to[j] are distinct and in [0,
// numSrc).
func (g *CSR) Relabel(dst []int32, to []int32, numSrc int) *CSR {
	edges, ptr := int64(0), make([]int64, 1, len(dst)+1)
	for _, i := range dst {
		col, _ := g.Row(int(i))
		for _, j := range col {
			if to[j] >= 0 {
				edges++
			}
		}
		ptr = append(ptr, edges)
	}
	out := g.like(0, numSrc, edges)
	out.NumDst, out.RowPtr = len(dst), ptr
	var key []uint64 // new name, then index in the row: sorted together, they give the order of the edges' values
	for _, i := range dst {
		col, _ := g.Row(int(i))
		key = key[:0]
		for k, j := range col {
			if to[j] >= 0 {
				key = append(key, uint64(to[j])<<32|uint64(k))
			}
		}
		if !slices.IsSorted(key) {
			slices.Sort(key)
		}
		for _, x := range key {
			out.take(g, g.RowPtr[i]+int64(uint32(x)), int32(x>>32))
		}
	}
	return out
}

// Block returns the message-flow block of the destinations dst, which are distinct: all their
// in-edges, in a CSR whose source k is node sources[k] of g. The destinations are its first
// sources, in dst's order; the others follow, ascending. Destination i of g must be source i.
func Block(g *CSR, dst []int32) (b *CSR, sources []int32) {
	to := slices.Repeat([]int32{-1}, g.NumSrc)
	for k, i := range dst {
		if to[i] >= 0 {
			panic(fmt.Sprintf("graph: destination %d occurs twice in a block", i))
		}
		to[i] = int32(k)
	}
	sources = slices.Clone(dst)
	for _, i := range dst {
		col, _ := g.Row(int(i))
		for _, j := range col {
			if to[j] < 0 {
				to[j] = 0
				sources = append(sources, j)
			}
		}
	}
	slices.Sort(sources[len(dst):])
	for k, j := range sources {
		to[j] = int32(k)
	}
	return g.Relabel(dst, to, len(sources)), sources
}

// First returns the edges into the first n destinations; it shares g's columns, weights and rows.
func (g *CSR) First(n int) *CSR {
	end := g.RowPtr[n]
	one := &CSR{NumDst: n, NumSrc: g.NumSrc, RowPtr: slices.Clip(g.RowPtr[:n+1]), Col: slices.Clip(g.Col[:end])}
	if g.Weight != nil {
		one.Weight = slices.Clip(g.Weight[:end])
	}
	if g.Edge != nil {
		one.Edge = slices.Clip(g.Edge[:end])
	}
	return one
}

// Within returns g with only the first n sources.
func (g *CSR) Within(n int) *CSR {
	out := g.like(g.NumDst, n, 0)
	for i := range g.NumDst {
		col, _ := g.Row(i)
		end, _ := slices.BinarySearch(col, int32(n))
		for k, j := range col[:end] {
			out.take(g, g.RowPtr[i]+int64(k), j)
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}

// Without returns g, in the same shape, without the edges into or out of nodes whose split is one
// of gone: with Val and Test the graph of inductive training. split has an entry for every source;
// destination i must be source i. Degrees change with it.
func (g *CSR) Without(split []Split, gone ...Split) *CSR {
	out := g.like(g.NumDst, g.NumSrc, 0)
	for i := range g.NumDst {
		if !slices.Contains(gone, split[i]) {
			col, _ := g.Row(i)
			for k, j := range col {
				if !slices.Contains(gone, split[j]) {
					out.take(g, g.RowPtr[i]+int64(k), j)
				}
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}

// Symmetric reports whether every edge has its reverse, with the same weight and columns. Rows ascend, so the reverses
// of edges into node 0, 1, … occur in the order of their rows.
func (g *CSR) Symmetric() bool {
	if g.NumDst != g.NumSrc {
		return false
	}
	next := slices.Clone(g.RowPtr)
	for i := range int32(g.NumDst) {
		for here := g.RowPtr[i]; here < g.RowPtr[i+1]; here++ {
			j := g.Col[here]
			there := next[j]
			next[j]++
			if there == g.RowPtr[j+1] || g.Col[there] != i ||
				g.Weight != nil && g.Weight[here] != g.Weight[there] || g.Edge != nil && g.Edge[here] != g.Edge[there] {
				return false
			}
		}
	}
	return true
}

// Loops reports whether a node has an edge to itself.
func (g *CSR) Loops() bool {
	for i := range g.NumDst {
		col, _ := g.Row(i)
		if _, found := slices.BinarySearch(col, int32(i)); found {
			return true
		}
	}
	return false
}
