package graph

import (
	"github.com/heddle-gnn/heddle/mat"
)

// Split says what a node's label may be used for.
type Split uint8

// The splits. A node of split None takes part in message passing only.
const (
	None Split = iota
	Train
	Val
	Test
)

// Features are the input rows of nodes, dense or sparse. The zero value means that the graph has
// none.
type Features struct {
	Dense  mat.Dense
	Sparse *mat.Sparse // not nil: the rows, and Dense is unused
}

// Rows returns the number of rows.
func (f Features) Rows() int {
	if f.Sparse != nil {
		return f.Sparse.Rows
	}
	return f.Dense.Rows
}

// Cols returns the number of columns, F.
func (f Features) Cols() int {
	if f.Sparse != nil {
		return f.Sparse.Cols
	}
	return f.Dense.Cols
}

// Select returns a copy whose row k is row rows[k] of f, sparse where f is.
func (f Features) Select(rows []int32) Features {
	if f.Sparse != nil {
		return Features{Sparse: f.Sparse.Select(rows)}
	}
	return Features{Dense: f.Dense.Select(rows)}
}

// Labels are the targets of N nodes: one class a node (Class), or any number of C classes (Bits).
type Labels struct {
	Classes int      // C
	Class   []int32  // [N] class, or −1: no label; nil for a multi-label task
	Bits    []uint8  // [N×C] 0 or 1, row by row; nil for a single-label task
	Names   []string // [C], or nil
}

// Multi reports whether a node may have several classes.
func (l Labels) Multi() bool { return l.Bits != nil }

// Select returns the labels of the given nodes.
func (l Labels) Select(nodes []int32) Labels {
	out := Labels{Classes: l.Classes, Names: l.Names}
	if l.Class != nil {
		out.Class = make([]int32, len(nodes))
		for k, i := range nodes {
			out.Class[k] = l.Class[i]
		}
	}
	if l.Bits != nil {
		out.Bits = make([]uint8, 0, len(nodes)*l.Classes)
		for _, i := range nodes {
			out.Bits = append(out.Bits, l.Bits[int(i)*l.Classes:(int(i)+1)*l.Classes]...)
		}
	}
	return out
}

// Rows returns the labels of the given nodes as rows of zeros and ones, N×C; all other rows, and those
// of nodes without a label, are zero.
func (l Labels) Rows(nodes []int32) mat.Dense {
	n := len(l.Class)
	if l.Multi() {
		n = len(l.Bits) / l.Classes
	}
	y := mat.New(n, l.Classes)
	for _, i := range nodes {
		if l.Multi() {
			for c, b := range l.Bits[int(i)*l.Classes : (int(i)+1)*l.Classes] {
				y.Set(int(i), c, float32(b))
			}
		} else if c := l.Class[i]; c >= 0 {
			y.Set(int(i), int(c), 1)
		}
	}
	return y
}

// Count returns how many nodes have each class, [C].
func (l Labels) Count() []float64 {
	n := make([]float64, l.Classes)
	for _, k := range l.Class {
		if k >= 0 {
			n[k]++
		}
	}
	for i, b := range l.Bits {
		if b == 1 {
			n[i%l.Classes]++
		}
	}
	return n
}

// Labelled returns how many nodes have a label.
func (l Labels) Labelled() int {
	if l.Multi() {
		return len(l.Bits) / max(l.Classes, 1)
	}
	n := 0
	for _, k := range l.Class {
		if k >= 0 {
			n++
		}
	}
	return n
}

// Graph is a node classification task in memory.
type Graph struct {
	Name     string
	Adj      CSR       // N×N, both directions of every edge, no self-loops
	Typed    Relations // the same edges by relation, in their directions; none where edges have no types
	X        Features
	Types    Types     // of the nodes; none where all are of one type
	EdgeX    mat.Dense // rows of the edges' columns, which Adj.Edge and Typed.Adj.Edge number; no columns where edges have none
	Labels   Labels
	Split    []Split  // [N]
	Site     []int32  // [N] natural owner, or nil
	Sites    []string // names of the natural owners
	IDs      []string // [N] the user's names of the nodes, or nil
	Encoding []byte   // how a table's columns became X (JSON of graph/dataset), or nil
}

// N returns the number of nodes.
func (g *Graph) N() int { return g.Adj.NumDst }

// InSplit returns the nodes of that split which have a label, ascending: those that its metrics are
// over.
func (g *Graph) InSplit(split Split) []int32 {
	nodes := []int32{}
	for i, s := range g.Split {
		if s == split && (g.Labels.Multi() || g.Labels.Class[i] >= 0) {
			nodes = append(nodes, int32(i))
		}
	}
	return nodes
}
