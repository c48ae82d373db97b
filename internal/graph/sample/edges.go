package sample

import (
	"cmp"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// InEdges are the in-edges that a sampler draws from. A row's are in the order of their sources' IDs, which no
// partition changes.
type InEdges struct {
	RowPtr []int64   // [R·N+1] for R relations, relation by relation (graph.Relations)
	Col    []int32   // [E] sources
	Weight []float32 // [E] what a layer multiplies the source's row by (nil = 1)
	ID     []int64   // [sources] global IDs (nil = their index)

	// Loops: each vertex has an edge from itself, which is in every sample and none of the others. Loop [N] are the
	// weights of these edges (nil = 1).
	Loops bool
	Loop  []float32

	// Relations is R, 0 of edges without types: fan-outs are each relation's.
	Relations int

	// Reached: a layer reads which relations reach a vertex, which a sample without edges of one does not show.
	Reached bool

	Edge  []int32   // [E] row of EdgeX (−1 = zeros; nil = edges have no columns)
	EdgeX mat.Dense // columns of edges, which a sample has with it

	// Scaled: a layer sums over the edges, and a sample's weights are such that the sum over it is an unbiased estimate
	// of that over all edges. Else a sample has no weights.
	Scaled bool
}

// NewEdges returns the edges of g, weighted as a layer reads them. With loops those from a destination to itself are
// the Loops. id are the global IDs of g's sources (nil = their index). Memory is shared with g where its rows are in
// order already.
func NewEdges(g *graph.CSR, id []int64, loops, scaled bool) *InEdges {
	e := &InEdges{RowPtr: g.RowPtr, Col: g.Col, Weight: g.Weight, Edge: g.Edge, ID: id, Loops: loops, Scaled: scaled}
	if loops {
		e.takeLoops(g)
	}
	if id != nil && !slices.IsSorted(id) {
		e.order(g)
	}
	return e
}

// takeLoops moves the edges from a vertex to itself out of the rows.
func (e *InEdges) takeLoops(g *graph.CSR) {
	keep := make([]bool, len(g.Col))
	if g.Weight != nil {
		e.Loop = make([]float32, g.NumDst)
	}
	for i := range g.NumDst {
		for k := g.RowPtr[i]; k < g.RowPtr[i+1]; k++ {
			if keep[k] = int(g.Col[k]) != i; !keep[k] && g.Weight != nil {
				e.Loop[i] = g.Weight[k]
			}
		}
	}
	rest := g.Keep(keep)
	e.RowPtr, e.Col, e.Weight, e.Edge = rest.RowPtr, rest.Col, rest.Weight, rest.Edge
}

// order sorts each row by the sources' IDs.
func (e *InEdges) order(g *graph.CSR) {
	col, weight, edge := e.Col, e.Weight, e.Edge
	e.Col = make([]int32, len(col))
	if weight != nil {
		e.Weight = make([]float32, len(col))
	}
	if edge != nil {
		e.Edge = make([]int32, len(col))
	}
	var at []int64 // places of the row's edges before sorting
	for i := range g.NumDst {
		at = at[:0]
		for k := e.RowPtr[i]; k < e.RowPtr[i+1]; k++ {
			at = append(at, k)
		}
		slices.SortFunc(at, func(a, b int64) int { return cmp.Compare(e.ID[col[a]], e.ID[col[b]]) })
		for k, from := range at {
			to := e.RowPtr[i] + int64(k)
			e.Col[to] = col[from]
			if weight != nil {
				e.Weight[to] = weight[from]
			}
			if edge != nil {
				e.Edge[to] = edge[from]
			}
		}
	}
}

// relations returns R, 1 of edges without types.
func (e *InEdges) relations() int { return max(1, e.Relations) }

// id returns the ID of a source.
func (e *InEdges) id(j int32) uint64 {
	if e.ID == nil {
		return uint64(j)
	}
	return uint64(e.ID[j])
}
