package graph

import (
	"fmt"

	"github.com/heddle-gnn/heddle/mat"
)

// An edge's columns are a row of one table, which the adjacencies index (CSR.Edge). The two directions of an undirected
// edge share the row, as do the edge in the whole adjacency and in its relation's. So a block or a shard copies 4 bytes
// an edge, not the row.

// CompactEdges returns the rows of x that edges of adj and the relations use, and their indices in x, ascending. It
// renumbers the edges' rows in both, in place.
func (t *Relations) CompactEdges(adj *CSR, x mat.Dense) (used mat.Dense, rows []int32) {
	list := [2]*CSR{adj, &t.Adj}
	to := make([]int32, x.Rows)
	for _, g := range list {
		for _, e := range g.Edge {
			if e >= 0 {
				to[e] = 1
			}
		}
	}
	rows = []int32{}
	for e, seen := range to {
		if seen == 1 {
			to[e] = int32(len(rows))
			rows = append(rows, int32(e))
		}
	}
	for _, g := range list {
		for k, e := range g.Edge {
			if e >= 0 {
				g.Edge[k] = to[e]
			}
		}
	}
	return x.Select(rows), rows
}

// ValidEdges returns an error unless all edges of adj and the relations index rows of x, or, if x has no columns,
// nothing.
func (t *Relations) ValidEdges(adj *CSR, x mat.Dense) error {
	if err := (Features{Dense: x}).Valid(); err != nil {
		return fmt.Errorf("edge columns: %w", err)
	}
	list := []*CSR{adj}
	if t.Count() > 0 {
		list = append(list, &t.Adj)
	}
	for _, g := range list {
		if (g.Edge != nil) != (x.Cols > 0) {
			return fmt.Errorf("edges must have rows of columns if there are such (got %d rows, %d columns)",
				len(g.Edge), x.Cols)
		}
		for k, e := range g.Edge {
			if e < -1 || int(e) >= x.Rows {
				return fmt.Errorf("row of edge %d must be -1 (none) or one of %d (got %d)", k, x.Rows, e)
			}
		}
	}
	return nil
}
