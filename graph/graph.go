package graph

import (
	"math"
	"slices"
	"strconv"

	"github.com/heddle-gnn/heddle/mat"
)

// Split is what a node's label may be used for.
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
	Sparse *mat.Sparse // if not nil, the rows; Dense is then unused
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

// Matrix returns the rows with all their zeros; dense ones share f's memory.
func (f Features) Matrix() mat.Dense {
	if f.Sparse != nil {
		return f.Sparse.Dense()
	}
	return f.Dense
}

// Select returns a copy whose row k is row rows[k] of f, sparse if f is.
func (f Features) Select(rows []int32) Features {
	if f.Sparse != nil {
		return Features{Sparse: f.Sparse.Select(rows)}
	}
	return Features{Dense: f.Dense.Select(rows)}
}

// Labels are the targets of N nodes: one class a node (Class), any number of C classes (Bits), or C real numbers
// (Values).
type Labels struct {
	Classes int       // C: classes, or numbers a node
	Class   []int32   // [N] class (−1 = no label); nil unless each node has one class
	Bits    []uint8   // [N×C] 0 or 1, row by row; nil unless a node may have several classes
	Values  []float32 // [N×C] numbers, row by row (NaN in the first = no label); nil for classes
	Units   []Unit    // [C] of standardised Values (nil = Values are as given)
	Names   []string  // [C], or nil
	// classes are ordered: the median of the probabilities is predicted; set by a plan, not by a file
	Ordered bool
	First   bool // class 0 is the positive class of two; else class 1 is
}

// Positive returns the positive class of two, or −1 unless each node has one of two classes.
func (l Labels) Positive() int {
	switch {
	case l.Kind() != Single || l.Classes != 2:
		return -1
	case l.First:
		return 0
	}
	return 1
}

// Name returns the name of class k, or its number.
func (l Labels) Name(k int) string {
	if k < len(l.Names) {
		return l.Names[k]
	}
	return strconv.Itoa(k)
}

// None returns labels of that kind, with as many classes as l, for n nodes without a label.
func (l Labels) None(k TargetKind, n int) Labels {
	none := Labels{Classes: l.Classes, Ordered: l.Ordered, First: l.First}
	switch k {
	case Several:
		none.Bits = make([]uint8, n*l.Classes)
	case Numbers:
		none.Values = slices.Repeat([]float32{float32(math.NaN())}, n*l.Classes)
	default:
		none.Class = slices.Repeat([]int32{-1}, n)
	}
	return none
}

// Within returns the labels of n nodes: l from node first on, and no labels for the others. With several types of
// nodes, only one has labels; its nodes may begin anywhere. With several classes no bit is set for the others.
func (l Labels) Within(n, first int) Labels {
	all := l.None(l.Kind(), n)
	all.Names = l.Names
	if l.Kind() == Single {
		copy(all.Class[first:], l.Class)
		return all
	}
	copy(all.Values[min(first*l.Classes, len(all.Values)):], l.Values)
	copy(all.Bits[min(first*l.Classes, len(all.Bits)):], l.Bits)
	return all
}

// Multi reports whether a node may have several classes.
func (l Labels) Multi() bool { return l.Kind() == Several }

// Kind returns what the labels are.
func (l Labels) Kind() TargetKind {
	switch {
	case l.Values != nil:
		return Numbers
	case l.Bits != nil:
		return Several
	}
	return Single
}

// Has reports whether node i has a label.
func (l Labels) Has(i int) bool {
	switch l.Kind() {
	case Numbers:
		return l.Values[i*l.Classes] == l.Values[i*l.Classes]
	case Several:
		return true
	}
	return l.Class != nil && l.Class[i] >= 0
}

// nodes returns N.
func (l Labels) nodes() int {
	switch l.Kind() {
	case Numbers:
		return len(l.Values) / max(l.Classes, 1)
	case Several:
		return len(l.Bits) / max(l.Classes, 1)
	}
	return len(l.Class)
}

// Select returns the labels of the given nodes.
func (l Labels) Select(nodes []int32) Labels {
	out := l
	out.Class = selectRows(l.Class, 1, nodes)
	out.Bits, out.Values = selectRows(l.Bits, l.Classes, nodes), selectRows(l.Values, l.Classes, nodes)
	return out
}

// selectRows returns the given rows of a matrix with that many columns, or nil for nil.
func selectRows[T any](all []T, columns int, rows []int32) []T {
	if all == nil {
		return nil
	}
	out := make([]T, 0, len(rows)*columns)
	for _, i := range rows {
		out = append(out, all[int(i)*columns:(int(i)+1)*columns]...)
	}
	return out
}

// Rows returns the labels of the given nodes as rows of numbers, or of zeros and ones, N×C. Other rows, and rows of
// nodes without a label, are zero.
func (l Labels) Rows(nodes []int32) mat.Dense {
	y := mat.New(l.nodes(), l.Classes)
	for _, i := range nodes {
		if !l.Has(int(i)) {
			continue
		}
		switch row := y.Row(int(i)); l.Kind() {
		case Numbers:
			copy(row, l.Values[int(i)*l.Classes:])
		case Several:
			for c, b := range l.Bits[int(i)*l.Classes : (int(i)+1)*l.Classes] {
				row[c] = float32(b)
			}
		default:
			row[l.Class[i]] = 1
		}
	}
	return y
}

// Count returns how many nodes have each class, or a number in each column, [C].
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
	for i, v := range l.Values {
		if v == v {
			n[i%l.Classes]++
		}
	}
	return n
}

// Standardised returns labels that are numbers in the given units, one a column. For classes, or without units, it
// returns l.
func (l Labels) Standardised(units []Unit) Labels {
	if l.Values == nil || units == nil {
		return l
	}
	out := l
	out.Units, out.Values = units, make([]float32, len(l.Values))
	for i, v := range l.Values {
		u := units[i%l.Classes]
		out.Values[i] = float32((float64(v) - u.Mean) / u.Deviation)
	}
	return out
}

// Labelled returns how many nodes have a label.
func (l Labels) Labelled() (n int) {
	for i := range l.nodes() {
		if l.Has(i) {
			n++
		}
	}
	return n
}

// Graph is a graph in memory, with the targets of its nodes.
type Graph struct {
	Name  string
	Adj   CSR       // N×N, both directions of every edge, no self-loops
	Typed Relations // the same edges by relation, in their directions; none if edges have no types
	X     Features
	Types Types // types of the nodes; none if all nodes have the same type
	// rows of the edges' columns, which Adj.Edge and Typed.Adj.Edge index; no columns if edges have none
	EdgeX    mat.Dense
	Labels   Labels
	Split    []Split  // [N]
	Site     []int32  // [N] index of the natural owner, or nil
	Sites    []string // names of the natural owners
	IDs      []string // [N] the user's names for the nodes, or nil
	Encoding []byte   // how a table's columns became X (JSON of graph/dataset.Encoding), or nil
}

// SelectNodes returns features, types, labels, splits and names of the given nodes, without edges.
func (g *Graph) SelectNodes(nodes []int32) *Graph {
	out := &Graph{Types: g.Types.Select(nodes), Labels: g.Labels.Select(nodes), Split: selectRows(g.Split, 1, nodes),
		IDs: selectRows(g.IDs, 1, nodes)}
	if g.X.Cols() > 0 {
		out.X = g.X.Select(nodes)
	}
	return out
}

// N returns the number of nodes.
func (g *Graph) N() int { return g.Adj.NumDst }

// InSplit returns the labelled nodes of that split, ascending: its metrics are over these nodes.
func (g *Graph) InSplit(split Split) []int32 {
	nodes := []int32{}
	for i, s := range g.Split {
		if s == split && g.Labels.Has(i) {
			nodes = append(nodes, int32(i))
		}
	}
	return nodes
}
