package graph

import (
	"fmt"
	"slices"
)

// Transpose returns the NumSrc×NumDst adjacency of the reversed edges, with their weights. Where
// perm is not nil it must have length NumEdges, and perm[k] becomes the place in g of the
// transpose's k-th edge, so that any values that belong to edges can follow them.
func (g *CSR) Transpose(perm []int64) *CSR {
	if perm != nil && len(perm) != len(g.Col) {
		panic(fmt.Sprintf("graph: permutation of length %d for %d edges", len(perm), len(g.Col)))
	}
	t := &CSR{NumDst: g.NumSrc, NumSrc: g.NumDst, RowPtr: make([]int64, g.NumSrc+1), Col: make([]int32, len(g.Col))}
	if g.Weight != nil {
		t.Weight = make([]float32, len(g.Col))
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
			if perm != nil {
				perm[at] = k
			}
		}
	}
	return t
}

// Relabel returns the rows dst of g with source j renamed to[j], sorted again: destination k of the
// result is destination dst[k] of g. Edges from sources with to[j] < 0 are left out; all others
// have distinct names in [0, numSrc).
func (g *CSR) Relabel(dst []int32, to []int32, numSrc int) *CSR {
	out := &CSR{NumDst: len(dst), NumSrc: numSrc, RowPtr: make([]int64, len(dst)+1)}
	for k, i := range dst {
		col, _ := g.Row(int(i))
		out.RowPtr[k+1] = out.RowPtr[k]
		for _, j := range col {
			if to[j] >= 0 {
				out.RowPtr[k+1]++
			}
		}
	}
	out.Col = make([]int32, 0, out.RowPtr[len(dst)])
	if g.Weight != nil {
		out.Weight = make([]float32, 0, out.RowPtr[len(dst)])
	}
	var key []uint64 // new name, then place in the row: sorting keys sorts the weights with them
	for _, i := range dst {
		col, weight := g.Row(int(i))
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
			out.Col = append(out.Col, int32(x>>32))
			if weight != nil {
				out.Weight = append(out.Weight, weight[uint32(x)])
			}
		}
	}
	return out
}

// Block returns the message-flow block of the destinations dst, which are distinct: all their
// in-edges, in a CSR whose source k is node sources[k] of g. The destinations are its first
// sources, in dst's order; the others follow, ascending. Destination i of g must be source i.
func Block(g *CSR, dst []int32) (b *CSR, sources []int32) {
	to := make([]int32, g.NumSrc)
	for j := range to {
		to[j] = -1
	}
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

// First returns the edges into the first n destinations; it shares g's columns and weights.
func (g *CSR) First(n int) *CSR {
	end := g.RowPtr[n]
	one := &CSR{NumDst: n, NumSrc: g.NumSrc, RowPtr: slices.Clip(g.RowPtr[:n+1]), Col: slices.Clip(g.Col[:end])}
	if g.Weight != nil {
		one.Weight = slices.Clip(g.Weight[:end])
	}
	return one
}

// Within returns g without its sources from n on, and with as many sources as that.
func (g *CSR) Within(n int) *CSR {
	out := &CSR{NumDst: g.NumDst, NumSrc: n, RowPtr: make([]int64, g.NumDst+1)}
	if g.Weight != nil {
		out.Weight = []float32{}
	}
	for i := range g.NumDst {
		col, weight := g.Row(i)
		end, _ := slices.BinarySearch(col, int32(n))
		out.Col = append(out.Col, col[:end]...)
		if weight != nil {
			out.Weight = append(out.Weight, weight[:end]...)
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	return out
}

// Without returns g, in the same shape, without the edges into or out of nodes whose split is one
// of gone: with Val and Test the graph of inductive training. split has an entry for every source;
// destination i must be source i. Degrees change with it.
func (g *CSR) Without(split []Split, gone ...Split) *CSR {
	out := &CSR{NumDst: g.NumDst, NumSrc: g.NumSrc, RowPtr: make([]int64, g.NumDst+1)}
	for i := range g.NumDst {
		if !slices.Contains(gone, split[i]) {
			col, weight := g.Row(i)
			for k, j := range col {
				if slices.Contains(gone, split[j]) {
					continue
				}
				out.Col = append(out.Col, j)
				if weight != nil {
					out.Weight = append(out.Weight, weight[k])
				}
			}
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	if g.Weight != nil && out.Weight == nil {
		out.Weight = []float32{} // no edge is left, but the graph stays a weighted one
	}
	return out
}
