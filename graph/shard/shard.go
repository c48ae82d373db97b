// Package shard has the parts of a partitioned graph, one a peer: cutting a graph into them,
// their files, and what they send each other.
package shard

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// Shard is one peer's part. Sources are numbered: first owned nodes, then the halo by owner, so that the rows from peer
// q are contiguous. Owned nodes have ascending global IDs, unless Reorder changed their order; each peer's halo has the
// peer's order.
type Shard struct {
	Rank, Parts int
	Owned       int             // destinations are sources [0, Owned)
	Adj         graph.CSR       // Owned × (Owned + halo): every in-edge of every owned node
	Typed       graph.Relations // the same edges by relation, between the same nodes; none where edges have no types
	Global      []int64         // [Owned+halo] global node ID of each source
	HaloPtr     []int           // [Parts+1] peer q's rows are sources [HaloPtr[q], HaloPtr[q+1]); HaloPtr[0] = Owned
	Boundary    [][]int32       // Boundary[q]: owned nodes in q's halo, in q's order
	X           graph.Features
	Types       graph.Types // types of the owned nodes
	EdgeX       mat.Dense   // rows of the columns of the edges in Adj and Typed, as they number them
	EdgeGlobal  []int64     // row of each of these in the whole graph's table, ascending (nil = edges have no columns)
	Labels      graph.Labels
	Split       []graph.Split // [Owned]
	IDs         []string      // [Owned] the user's names of the owned nodes, or nil
	Nodes       int64         // N of the whole graph
	Name        string        // the data set's
	Encoding    []byte        // graph.Graph.Encoding
	Import      []byte        // what the tables of this site became (table.Facts as JSON), nil if not known
	Fingerprint [32]byte      // fingerprint of the shard's partition: equal on all its shards

	file *section.Arrays // file whose memory the arrays share (nil = none)
}

// Forget gives the memory of the shard's file back to the system, which reads again what is used again.
func (s *Shard) Forget() {
	if s.file != nil {
		s.file.Forget()
	}
}

// NodesIn returns the owned nodes of a split, ascending.
func (s *Shard) NodesIn(split graph.Split) (nodes []int32) {
	for i, of := range s.Split {
		if of == split {
			nodes = append(nodes, int32(i))
		}
	}
	return nodes
}

// Halo returns the number of halo rows.
func (s *Shard) Halo() int { return len(s.Global) - s.Owned }

// Connected reports whether there is an edge to or from a node of another part.
func (s *Shard) Connected() bool {
	return s.Halo() > 0 || slices.ContainsFunc(s.Boundary, func(rows []int32) bool { return len(rows) > 0 })
}
