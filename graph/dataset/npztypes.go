package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
	"github.com/heddle-gnn/heddle/mat"
)

// Typed reports whether the file at path has arrays of several types of nodes, which Read joins. It is false for a file
// that cannot be opened: the next reader reports the error.
func Typed(path string) bool {
	a, err := npy.Open(path)
	if err != nil {
		return false
	}
	defer a.Close()
	return arrays{a}.typed()
}

// typed reports whether the arrays have several types of nodes: nodes/K/ has the arrays of type K, edges/K/ has the
// arrays of relation K. meta.json has the names.
func (a arrays) typed() bool { return a.Has("nodes/0/y") }

// joined makes one graph of all types, since a model has one matrix of features and one adjacency for each relation. It
// puts the types one after the other. Each has its own columns, and node i of type T is T/i.
func (a arrays) joined(m meta, split int, as As) (*graph.Graph, error) {
	g := &graph.Graph{Name: m.Name}
	own, at, first, err := a.nodes(g, m, split, as)
	if err != nil {
		return nil, err
	}
	n := len(g.IDs)
	// If a node may have several classes, no class at all is a label, too, so only masks separate the types.
	if own.Labels.Multi() && !slices.ContainsFunc(own.Split, func(s graph.Split) bool { return s != graph.None }) {
		return nil, fmt.Errorf("masks must mark the nodes that have labels, if a node has several (got none)")
	}
	g.Labels = own.Labels.Within(n, first[at])
	g.Split = make([]graph.Split, n)
	copy(g.Split[first[at]:], own.Split)
	if m.Draw != nil {
		if err := m.Draw.of(g); err != nil {
			return nil, err
		}
	}
	return g, a.between(g, m, first)
}

// nodes gives g the features and names of all nodes. It returns labels and splits of the labelled type, the type's
// index, and the first node of each type, followed by the number of all nodes.
func (a arrays) nodes(g *graph.Graph, m meta, split int, as As) (own *graph.Graph, at int, first []int, err error) {
	var x []graph.Features
	var labelled []string
	for k, name := range m.Types {
		if slices.Contains(m.Types[:k], name) {
			return nil, 0, nil, fmt.Errorf("types of nodes must have different names (got %s twice)", name)
		}
		p := arrays{a.Part(fmt.Sprintf("nodes/%d/", k), name)}
		if err := p.extents(meta{}); err != nil {
			return nil, 0, nil, err
		}
		// Rules for labels, such as the meaning of -1, apply to the nodes of this type only.
		one := &graph.Graph{}
		n, err := p.targets(one, meta{}, split, as)
		if err != nil {
			return nil, 0, nil, err
		}
		if one.Labels.Labelled() > 0 {
			own, at, labelled = one, k, append(labelled, name)
		}
		f, err := p.features(n)
		if err != nil {
			return nil, 0, nil, err
		}
		if f.Cols() == 0 { // the model learns a row for the type
			f = graph.Features{Dense: mat.View(n, 1, slices.Repeat([]float32{1}, n))}
		}
		first = append(first, len(g.IDs))
		x = append(x, f)
		if len(g.IDs)+n > math.MaxInt32 {
			return nil, 0, nil, fmt.Errorf("nodes must be at most %d (got more)", math.MaxInt32)
		}
		for i := range n {
			g.IDs = append(g.IDs, name+"/"+strconv.Itoa(i))
		}
	}
	// Classes of two types would be two tasks, and a model has one.
	if len(labelled) != 1 {
		got := strings.Join(labelled, " and ")
		if got == "" {
			got = "none"
		}
		return nil, 0, nil, fmt.Errorf("one type of nodes must have labels (got %s)", got)
	}
	g.X.Sparse = graph.Diagonal(x)
	return own, at, append(first, len(g.IDs)), nil
}

// between gives g the edges of all relations between types whose nodes begin at first.
func (a arrays) between(g *graph.Graph, m meta, first []int) error {
	if err := relationLimit(len(m.Relations), len(g.IDs)); err != nil {
		return err
	}
	var src, dst, kind, rows []int32
	var weight []float32 // 1 for the edges of a relation without weights
	var columns []graph.Features
	weighted, table := false, int32(0) // table counts the rows of columns
	for k, name := range m.Relations {
		p := arrays{a.Part(fmt.Sprintf("edges/%d/", k), name)}
		ends, _, err := npy.Read[int32](p.Archive, "types", 2)
		if err != nil {
			return err
		}
		// The types bound the node numbers of the edges.
		for e, t := range ends {
			if t < 0 || int(t) >= len(m.Types) {
				return p.Fault("types", fmt.Errorf("entry %d must be a type, 0 to %d (got %d)", e, len(m.Types)-1, t))
			}
		}
		source, target := ends[0], ends[1]
		from, to, w, err := p.pairs(first[source+1]-first[source], first[target+1]-first[target])
		if err != nil {
			return err
		}
		x, row, err := p.edgeColumns(len(from))
		if err != nil {
			return err
		}
		weighted = weighted || w != nil
		for e := range from {
			src, dst = append(src, from[e]+int32(first[source])), append(dst, to[e]+int32(first[target]))
			kind = append(kind, int32(k))
			if w == nil {
				weight = append(weight, 1)
			} else {
				weight = append(weight, w[e])
			}
			if row == nil || row[e] < 0 { // zeros
				rows = append(rows, -1)
			} else {
				rows = append(rows, table+row[e])
			}
		}
		if row != nil {
			columns, table = append(columns, graph.Features{Dense: x}), table+int32(x.Rows)
		}
	}
	if !weighted { // an array of ones would make the graph weighted
		weight = nil
	}
	var x mat.Dense
	if columns == nil {
		rows = nil
	} else {
		x = graph.Diagonal(columns).Dense() // each relation has its own columns
	}
	return SetEdges(g, len(g.IDs), src, dst, weight, kind, m.Relations, x, graph.Build{Edge: rows})
}
