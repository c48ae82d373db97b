package sample

import (
	"cmp"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// Edges are the in-edges that a sampler draws from. Those of a row are in the order of their sources' IDs, which no
// partition changes.
type Edges struct {
	RowPtr []int64   // [N+1]
	Col    []int32   // [E] sources
	Weight []float32 // [E] what a layer multiplies the source's row by; nil: 1
	ID     []int64   // [sources] global IDs; nil: their index

	// Loops: each vertex has an edge from itself, which is in every sample and none of the others. Loop [N] are the
	// weights of these edges; nil: 1.
	Loops bool
	Loop  []float32

	// Scaled: a layer sums over the edges, and a sample's weights are such that the sum over it is an unbiased estimate of
	// that over all edges. Else a sample has no weights.
	Scaled bool
}

// NewEdges returns the edges of g, weighted as a layer reads them. With loops those from a destination to itself are
// the Loops. id are the global IDs of g's sources; nil: their index. Memory is shared with g where its rows are in order
// already.
func NewEdges(g *graph.CSR, id []int64, loops, scaled bool) *Edges {
	e := &Edges{RowPtr: g.RowPtr, Col: g.Col, Weight: g.Weight, ID: id, Loops: loops, Scaled: scaled}
	if loops {
		e.takeLoops(g)
	}
	if id != nil && !slices.IsSorted(id) {
		e.order(g)
	}
	return e
}

// takeLoops moves the edges from a vertex to itself out of the rows.
func (e *Edges) takeLoops(g *graph.CSR) {
	e.RowPtr, e.Col = make([]int64, g.NumDst+1), make([]int32, 0, len(g.Col))
	if g.Weight != nil {
		e.Weight, e.Loop = make([]float32, 0, len(g.Col)), make([]float32, g.NumDst)
	}
	for i := range g.NumDst {
		col, weight := g.Row(i)
		for k, j := range col {
			switch {
			case int(j) != i:
				e.Col = append(e.Col, j)
				if weight != nil {
					e.Weight = append(e.Weight, weight[k])
				}
			case weight != nil:
				e.Loop[i] = weight[k]
			}
		}
		e.RowPtr[i+1] = int64(len(e.Col))
	}
}

// order sorts each row by the sources' IDs.
func (e *Edges) order(g *graph.CSR) {
	type edge struct {
		id     int64
		col    int32
		weight float32
	}
	col, weight := make([]int32, len(e.Col)), e.Weight
	if weight != nil {
		weight = make([]float32, len(e.Col))
	}
	var row []edge
	for i := range g.NumDst {
		lo, hi := e.RowPtr[i], e.RowPtr[i+1]
		row = row[:0]
		for k := lo; k < hi; k++ {
			one := edge{id: e.ID[e.Col[k]], col: e.Col[k]}
			if weight != nil {
				one.weight = e.Weight[k]
			}
			row = append(row, one)
		}
		slices.SortFunc(row, func(a, b edge) int { return cmp.Compare(a.id, b.id) })
		for k, one := range row {
			col[lo+int64(k)] = one.col
			if weight != nil {
				weight[lo+int64(k)] = one.weight
			}
		}
	}
	e.Col, e.Weight = col, weight
}

// id returns the ID of a source.
func (e *Edges) id(j int32) uint64 {
	if e.ID == nil {
		return uint64(j)
	}
	return uint64(e.ID[j])
}
