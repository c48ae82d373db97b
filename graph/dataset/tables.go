package dataset

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/column"
	"github.com/heddle-gnn/heddle/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/graph/dataset/facts"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/mat"
)

// Reading is what was noticed while tables were read.
type Reading struct {
	Tables         []facts.Table
	Unknown        []int    // of each column of the encoding: cells with a category that it has not
	Example        []string // of these, of each column
	Source, Target []int32  // the edges between the nodes as they are listed
}

// read makes a graph of two tables. If there is no split column, the split of a labelled node is
// Test until somebody draws another, and of others None.
func (e *Encoding) read(nodes, edges string, format table.Format) (*graph.Graph, *Reading, error) {
	g, index, r, err := e.ReadNodes(nodes, format)
	if err != nil {
		return nil, nil, err
	}
	l := &edgeList{}
	if edges != "" {
		if l, err = e.readEdges(edges, nodes, index, format, r); err != nil {
			return nil, nil, err
		}
	}
	r.Source, r.Target = l.src, l.dst
	l.src, l.dst, l.kind, l.weight = edgelist.Merge(e.Merge, l.src, l.dst, l.kind, l.weight)
	if g.Adj, err = graph.FromEdges(len(index), l.src, l.dst, l.weight, graph.Build{}); err != nil {
		return nil, nil, fmt.Errorf("dataset: %s: %w", edges, err)
	}
	kind, src, dst, weight := e.BothWays(l.kind, l.src, l.dst, l.weight)
	if g.Typed, err = e.Typed(len(index), len(index), kind, src, dst, weight); err != nil {
		return nil, nil, fmt.Errorf("dataset: %s: %w", edges, err)
	}
	return g, r, nil
}

// ReadNodes returns the nodes of a table, without edges, and the number of each by its name.
func (e *Encoding) ReadNodes(path string, format table.Format) (*graph.Graph, map[string]int32, *Reading, error) {
	return e.scanNodes(path, format, nil)
}

// scanNodes is ReadNodes that passes the features to row, if it is not nil, node after node, and
// keeps neither them nor names: the nodes must be numbered, from 0 in the order of the table.
func (e *Encoding) scanNodes(path string, format table.Format, row func(x *mat.Sparse) error) (*graph.Graph, map[string]int32,
	*Reading, error) {
	t, err := table.Open(path, format)
	if err != nil {
		return nil, nil, nil, err
	}
	defer t.Close()
	n, err := e.newNodeReader(t, row)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := t.Each(n.add); err != nil {
		return nil, nil, nil, err
	}
	g := n.g
	if len(g.Split) == 0 {
		return nil, nil, nil, fmt.Errorf("dataset: %s: the table must have at least one node (got no rows)", path)
	}
	if n.site >= 0 {
		g.Sites = slices.Compact(slices.Sorted(slices.Values(n.owners)))
		for _, owner := range n.owners {
			s, _ := slices.BinarySearch(g.Sites, owner)
			g.Site = append(g.Site, int32(s))
		}
	}
	if x := n.x; x.Cols > 0 && row == nil {
		g.X.Sparse = x
		if fuller(int64(x.NNZ()), x.Rows, x.Cols) {
			g.X = graph.Features{Dense: x.Dense()}
		}
	}
	n.reading.Tables = []facts.Table{TableFacts(t, len(g.Split), format)}
	return g, n.index, &n.reading, nil
}

// nodeReader reads a table of nodes, row by row.
type nodeReader struct {
	e                      *Encoding
	t                      *table.Table
	row                    func(x *mat.Sparse) error
	id, label, split, site int              // columns; −1: there is none
	at                     []int            // columns of the features
	class                  map[string]int32 // by name

	g      *graph.Graph
	x      *mat.Sparse // features
	index  map[string]int32
	lines  []int    // of the nodes
	owners []string // of the nodes

	reading Reading
	strange []int // columns of the present row with a category that they do not know
}

func (e *Encoding) newNodeReader(t *table.Table, row func(x *mat.Sparse) error) (*nodeReader, error) {
	n := &nodeReader{e: e, t: t, row: row, class: map[string]int32{}, index: map[string]int32{}}
	var err error
	if n.id, err = t.Column(e.ID, "the nodes' names"); err != nil {
		return nil, err
	}
	n.at = make([]int, len(e.Columns))
	for k, c := range e.Columns {
		if c.Kind == column.Ignored {
			continue
		}
		if n.at[k], err = t.Column(c.Name, string(c.Kind)+" features"); err != nil {
			return nil, err
		}
	}
	n.label, n.split, n.site = t.Find(e.Label), t.Find(e.Split), t.Find(e.Site)
	n.g = &graph.Graph{Labels: graph.Labels{Classes: len(e.Classes), Names: e.Classes}}
	if e.Regression {
		n.g.Labels = graph.Labels{Classes: 1, Names: []string{e.Label}, Values: []float32{}}
	}
	for c, name := range e.Classes {
		n.class[name] = int32(c)
	}
	n.x = &mat.Sparse{Cols: e.Width(), RowPtr: []int64{0}}
	n.reading.Unknown, n.reading.Example = make([]int, len(e.Columns)), make([]string, len(e.Columns))
	return n, nil
}

// add reads one node, or nothing of it where it is at fault.
func (n *nodeReader) add(cells []string, line int) error {
	name := cells[n.id]
	if err := n.addName(name, line); err != nil {
		return err
	}
	rows, values := n.x.Rows, len(n.x.Col)
	labels := n.g.Labels
	err := n.addRest(cells, line)
	if err != nil && n.row == nil {
		delete(n.index, name)
		n.g.IDs, n.lines = n.g.IDs[:len(n.g.IDs)-1], n.lines[:len(n.lines)-1]
		n.x.Rows, n.x.RowPtr, n.x.Col, n.x.Val = rows, n.x.RowPtr[:rows+1], n.x.Col[:values], n.x.Val[:values]
		n.g.Labels = labels
		return err
	}
	for _, k := range n.strange {
		if n.reading.Unknown[k]++; n.reading.Example[k] == "" {
			n.reading.Example[k] = strings.Clone(strings.TrimSpace(cells[n.at[k]]))
		}
	}
	return err
}

// addRest reads all of a node but its name.
func (n *nodeReader) addRest(cells []string, line int) error {
	if err := n.encode(cells, line); err != nil {
		return err
	}
	if n.row != nil {
		if err := n.row(n.x); err != nil {
			return err
		}
		n.x.Rows, n.x.RowPtr, n.x.Col, n.x.Val = 0, n.x.RowPtr[:1], n.x.Col[:0], n.x.Val[:0]
	}
	owner := ""
	if n.site >= 0 {
		if owner = strings.TrimSpace(cells[n.site]); owner == "" {
			return n.t.Fault(line, n.site, "the node's owner must be given (got an empty cell)")
		}
	}
	if err := n.addLabel(cells, line); err != nil {
		return err
	}
	if n.site >= 0 {
		n.owners = append(n.owners, strings.Clone(owner))
	}
	return nil
}

func (n *nodeReader) addName(name string, line int) error {
	if name == "" {
		return n.t.Fault(line, n.id, "the node's name must be given (got an empty cell)")
	}
	if len(n.g.Split) == math.MaxInt32 {
		return n.t.Fault(line, n.id, "nodes must be at most %d (got more)", math.MaxInt32)
	}
	if first, ok := n.index[name]; ok {
		return n.t.Fault(line, n.id, "node %q occurs on %s %d already", name, n.t.Unit, n.lines[first])
	}
	if n.row == nil {
		name = strings.Clone(name) // not the whole row's memory
		n.index[name] = int32(len(n.g.IDs))
		n.g.IDs, n.lines = append(n.g.IDs, name), append(n.lines, line)
	} else if number := strconv.Itoa(len(n.g.Split)); name != number {
		return n.t.Fault(line, n.id,
			"nodes of a stored graph must be numbered from 0 in the order of the table: the name must be %s (got %.40q)",
			number, name)
	}
	return nil
}

// addLabel reads a node's classes, and which split it belongs to.
func (n *nodeReader) addLabel(cells []string, line int) error {
	mark := graph.None
	var found []string
	if n.label >= 0 {
		if found = n.e.split(cells[n.label]); len(found) > 0 {
			mark = graph.Test
		}
	}
	if err := n.addTarget(found); err != nil {
		return n.t.Fault(line, n.label, "%v", err)
	}
	if n.split >= 0 {
		s, ok := splitNames[strings.ToLower(strings.TrimSpace(cells[n.split]))]
		if !ok {
			return n.t.Fault(line, n.split, "split must be train, val, test or none (got %.40q)", cells[n.split])
		}
		if mark != graph.None {
			mark = s
		}
	}
	n.g.Split = append(n.g.Split, mark)
	return nil
}

// addTarget appends one node's labels: classes, or a number.
func (n *nodeReader) addTarget(found []string) error {
	l := &n.g.Labels
	switch {
	case !n.e.Regression:
		return n.e.addLabels(l, n.class, found)
	case len(found) == 0:
		l.Values = append(l.Values, float32(math.NaN()))
		return nil
	}
	v, ok := n.t.Number(found[0])
	if !ok || math.Abs(v) > math.MaxFloat32 {
		return fmt.Errorf("target must be a number (got %.40q)", found[0])
	}
	l.Values = append(l.Values, float32(v))
	return nil
}

// fuller reports whether rows of so many values are fuller than a quarter, and so kept densely.
func fuller(values int64, rows, cols int) bool { return values > int64(rows)*int64(cols)/4 }

var splitNames = map[string]graph.Split{
	"train": graph.Train, "val": graph.Val, "valid": graph.Val, "validation": graph.Val, "test": graph.Test, "none": graph.None, "": graph.None,
}

// addLabels appends one node's labels.
func (e *Encoding) addLabels(l *graph.Labels, class map[string]int32, found []string) error {
	row := len(l.Bits)
	if e.Multi {
		l.Bits = append(l.Bits, make([]uint8, l.Classes)...)
	} else {
		l.Class = append(l.Class, -1)
	}
	for _, name := range found {
		c, ok := class[name]
		if !ok {
			return fmt.Errorf("class must be one of %s (got %.40q)", shorten(e.Classes), name)
		}
		if e.Multi {
			l.Bits[row+int(c)] = 1
		} else {
			l.Class[len(l.Class)-1] = c
		}
	}
	return nil
}

// shorten lists the first names.
func shorten(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// edgeList is a table of edges between nodes by their places in the table of nodes.
type edgeList struct {
	src, dst []int32
	kind     []int32   // relation of each; nil: edges have no types
	weight   []float32 // nil: all 1
}

func (e *Encoding) readEdges(path, nodes string, index map[string]int32, format table.Format, r *Reading) (*edgeList, error) {
	format.Edges = true
	c := edgelist.Config{Path: path, Source: e.Source, Target: e.Target, Weight: e.Weight, Cells: format}
	if c.Numbered() && !table.IsList(path) {
		if e.Relation != "" {
			return nil, fmt.Errorf("dataset: %s: relations need a table with a column %s (got a list of numbered edges)", path, e.Relation)
		}
		l, err := named(c, nodes, index)
		if err == nil {
			r.Tables = append(r.Tables, facts.Table{File: filepath.Base(path), Rows: len(l.src)})
		}
		return l, err
	}
	t, err := table.Open(path, format)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var at [4]int // source, target, weight, relation; −1: none
	for k, column := range []struct{ name, role string }{{e.Source, "the edges' sources"},
		{e.Target, "the edges' targets"},
		{e.Weight, "the edges' weights"}, {e.Relation, "the edges' relations"}} {
		if at[k] = -1; column.name == "" {
			continue
		}
		if at[k], err = t.Column(column.name, column.role); err != nil {
			return nil, err
		}
	}
	l := &edgeList{}
	if e.Weight != "" {
		l.weight = []float32{}
	}
	lost := format.Faults.Told(nodes) // then an unknown node may be one of those at fault
	err = t.Each(func(cells []string, line int) error {
		weight, kind := float32(1), int32(0)
		var err error
		if l.weight != nil {
			if weight, err = t.Weight(cells, line, at[2]); err != nil {
				return err
			}
		}
		if e.Relation != "" {
			if kind, err = e.RelationAt(t, cells, line, at[3]); err != nil {
				return err
			}
		}
		var ends [2]int32
		for k := range ends {
			i, ok := index[cells[at[k]]]
			switch {
			case !ok && lost:
				return nil
			case !ok:
				return t.Fault(line, at[k], "node must be a name in %s (got %.40q)", nodes, cells[at[k]])
			}
			ends[k] = i
		}
		l.src, l.dst = append(l.src, ends[0]), append(l.dst, ends[1])
		if l.weight != nil {
			l.weight = append(l.weight, weight)
		}
		if e.Relation != "" {
			l.kind = append(l.kind, kind)
		}
		return nil
	})
	r.Tables = append(r.Tables, TableFacts(t, len(l.src), format))
	return l, err
}

// named reads a list whose IDs are the names of nodes in a table.
func named(c edgelist.Config, nodes string, index map[string]int32) (l *edgeList, err error) {
	list, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	l = &edgeList{}
	if c.Weight != "" {
		l.weight = []float32{}
	}
	for edge, err := range list.All() {
		if err != nil {
			return nil, err
		}
		var ends [2]int32
		for k, id := range [2]int64{edge.Source, edge.Target} {
			i, ok := index[strconv.FormatInt(id, 10)]
			if !ok {
				return nil, list.Fault(edge, "node must be a name in %s (got %d)", nodes, id)
			}
			ends[k] = i
		}
		l.src, l.dst = append(l.src, ends[0]), append(l.dst, ends[1])
		if l.weight != nil {
			l.weight = append(l.weight, edge.Weight)
		}
	}
	return l, nil
}
