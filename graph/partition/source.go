package partition

import "github.com/heddle-gnn/heddle/graph"

// Source is a graph that is read in runs of nodes, in the order of their IDs, as often as needed, from memory or from a
// file.
type Source interface {
	Size() Load
	Typing() (relations, types []string) // names of relations and types of nodes (nil = none)
	// Runs calls f for all nodes, run after run. A run's arrays are valid until f returns. If edges is false, Col is
	// nil. Runs stops at the first error.
	Runs(edges bool, f func(r *Run) error) error
}

// Load is the size of a part.
type Load struct{ Vertices, Edges int64 }

// Run is consecutive nodes and their data.
type Run struct {
	First int32         // first node
	Ptr   []int64       // [n+1] in-edges of node First+i are [Ptr[i], Ptr[i+1]) of the whole graph
	Col   []int32       // sources of the edges, from edge Ptr[0] on
	Split []graph.Split // [n]
	XPtr  []int64       // [n+1] pointers, like Ptr, to the values of sparse features, or nil
	XCols int           // columns of dense features
	typed []int64       // [R×N+1] likewise the typed edges of all nodes, relation by relation; nil if there are none
	nodes int           // N
	kind  []uint8       // [n] type of each node (nil = they have none)
}

// N returns the number of nodes.
func (r *Run) N() int { return len(r.Split) }

// Sources returns the sources of the run's node i.
func (r *Run) Sources(i int) []int32 {
	lo, hi := r.Ptr[i]-r.Ptr[0], r.Ptr[i+1]-r.Ptr[0]
	return r.Col[lo:hi:hi]
}

// Edges returns the number of edges into the run's node i.
func (r *Run) Edges(i int) int64 { return r.Ptr[i+1] - r.Ptr[i] }

// related returns the number of edges of relation k into the run's node i.
func (r *Run) related(k, i int) int64 {
	row := k*r.nodes + int(r.First) + i
	return r.typed[row+1] - r.typed[row]
}

// Bytes returns the stored size of node i's features: 4 bytes a value, and 4 for each column index of sparse rows.
func (r *Run) Bytes(i int) int64 {
	if r.XPtr != nil {
		return 8 * (r.XPtr[i+1] - r.XPtr[i])
	}
	return 4 * int64(r.XCols)
}

// InMemory is a graph in memory as a Source: one run.
type InMemory struct{ *graph.Graph }

// Size implements Source.
func (m InMemory) Size() Load { return Load{int64(m.N()), int64(m.Adj.NumEdges())} }

// Typing implements Source.
func (m InMemory) Typing() (relations, types []string) { return m.Typed.Names, m.Types.Names }

// Runs implements Source.
func (m InMemory) Runs(_ bool, f func(*Run) error) error {
	r := &Run{Ptr: m.Adj.RowPtr, Col: m.Adj.Col, Split: m.Split, typed: m.Typed.Adj.RowPtr, nodes: m.N(),
		kind: m.Types.Of}
	if len(m.Split) != m.N() { // a graph without splits can be partitioned, but not trained on
		r.Split = make([]graph.Split, m.N())
	}
	if s := m.X.Sparse; s != nil {
		r.XPtr = s.RowPtr
	} else {
		r.XCols = m.X.Dense.Cols
	}
	return f(r)
}
