package partition

import (
	"github.com/heddle-gnn/heddle/graph"
)

// source is a graph that is read in runs of nodes, in the order of their IDs, as often as it takes: memory or a *File.
type source interface {
	size() Load
	relations() []string // of typed edges
	// runs calls f for all nodes, run after run. A run's arrays are its only until f returns. Without edges its Col is
	// nil. It stops at the first error.
	runs(edges bool, f func(r *run) error) error
}

// run is consecutive nodes and what is known of them.
type run struct {
	first int32   // node
	ptr   []int64 // [n+1] in-edges of node first+i are [ptr[i], ptr[i+1]) of the whole graph
	col   []int32 // their sources, from edge ptr[0] on
	split []graph.Split
	xptr  []int64 // [n+1] likewise the values of sparse features, or nil
	xcols int     // columns of dense features
	typed []int64 // [R×N+1] likewise the typed edges of all nodes, relation by relation; nil where there are none
	nodes int     // N
}

func (r *run) n() int { return len(r.split) }

// sources returns the sources of the run's node i.
func (r *run) sources(i int) []int32 {
	lo, hi := r.ptr[i]-r.ptr[0], r.ptr[i+1]-r.ptr[0]
	return r.col[lo:hi:hi]
}

func (r *run) edges(i int) int64 { return r.ptr[i+1] - r.ptr[i] }

// related returns the number of edges of relation k into the run's node i.
func (r *run) related(k, i int) int64 {
	row := k*r.nodes + int(r.first) + i
	return r.typed[row+1] - r.typed[row]
}

// bytes returns the size of node i's features as they are stored: 4 bytes a value, and 4 a column index of sparse rows.
func (r *run) bytes(i int) int64 {
	if r.xptr != nil {
		return 8 * (r.xptr[i+1] - r.xptr[i])
	}
	return 4 * int64(r.xcols)
}

// memory is a graph in memory: one run.
type memory struct{ *graph.Graph }

func (m memory) size() Load { return Load{int64(m.N()), int64(m.Adj.NumEdges())} }

func (m memory) relations() []string { return m.Typed.Names }

func (m memory) runs(_ bool, f func(*run) error) error {
	r := &run{ptr: m.Adj.RowPtr, col: m.Adj.Col, split: m.Split, typed: m.Typed.Adj.RowPtr, nodes: m.N()}
	if len(m.Split) != m.N() { // a graph without splits may be partitioned, though not trained on
		r.split = make([]graph.Split, m.N())
	}
	if s := m.X.Sparse; s != nil {
		r.xptr = s.RowPtr
	} else {
		r.xcols = m.X.Dense.Cols
	}
	return f(r)
}
