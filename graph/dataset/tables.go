package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// read makes a graph of two tables. Where there is no split column, the split of a labelled node is Test until
// somebody draws another, and of others None.
func (e *Encoding) read(nodes, edges string) (*graph.Graph, error) {
	g, index, err := e.readNodes(nodes)
	if err != nil {
		return nil, err
	}
	l := &edgeList{}
	if edges != "" {
		if l, err = e.readEdges(edges, nodes, index); err != nil {
			return nil, err
		}
	}
	if g.Adj, err = graph.FromEdges(len(index), l.src, l.dst, l.weight, graph.Build{}); err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", edges, err)
	}
	kind, src, dst, weight := e.BothWays(l.kind, l.src, l.dst, l.weight)
	if g.Typed, err = e.Typed(len(index), len(index), kind, src, dst, weight); err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", edges, err)
	}
	return g, nil
}

func (e *Encoding) readNodes(path string) (g *graph.Graph, index map[string]int32, err error) {
	return e.scanNodes(path, nil)
}

// scanNodes is readNodes that hands the features to row, where that is not nil, node after node, and keeps neither them
// nor names: the nodes have to be numbered, from 0 in the order of the table.
func (e *Encoding) scanNodes(path string, row func(x *mat.Sparse) error) (g *graph.Graph, index map[string]int32, err error) {
	t, err := openTable(path)
	if err != nil {
		return nil, nil, err
	}
	defer t.close()
	id, err := t.column(e.ID, "the nodes' names")
	if err != nil {
		return nil, nil, err
	}
	at := make([]int, len(e.Columns))
	for k, c := range e.Columns {
		if c.Kind == Ignored {
			continue
		}
		if at[k], err = t.column(c.Name, string(c.Kind)+" features"); err != nil {
			return nil, nil, err
		}
	}
	label, split, site := t.find(e.Label), t.find(e.Split), t.find(e.Site)
	g = &graph.Graph{Labels: graph.Labels{Classes: len(e.Classes), Names: e.Classes}}
	class := map[string]int32{}
	for c, name := range e.Classes {
		class[name] = int32(c)
	}
	x := &mat.Sparse{Cols: e.Width(), RowPtr: []int64{0}}
	index = map[string]int32{}
	var lines []int
	var owners []string
	err = t.each(func(cells []string, line int) error {
		name := cells[id]
		if name == "" {
			return t.fault(line, id, "empty, want the node's name")
		}
		if len(g.Split) == math.MaxInt32 {
			return t.fault(line, id, "more than %d nodes", math.MaxInt32)
		}
		if first, ok := index[name]; ok {
			return t.fault(line, id, "node %q occurs on %s %d already", name, t.unit, lines[first])
		}
		if row == nil {
			name = strings.Clone(name) // not the whole row's memory
			index[name] = int32(len(g.IDs))
			g.IDs, lines = append(g.IDs, name), append(lines, line)
		} else if want := strconv.Itoa(len(g.Split)); name != want {
			return t.fault(line, id, "%.40q, want %s: the nodes of a stored graph are numbered, from 0 in the order of the table", name, want)
		}
		if err := e.encode(x, t, cells, line, at); err != nil {
			return err
		}
		if row != nil {
			if err := row(x); err != nil {
				return err
			}
			x.Rows, x.RowPtr, x.Col, x.Val = 0, x.RowPtr[:1], x.Col[:0], x.Val[:0]
		}
		mark := graph.None
		var found []string
		if label >= 0 {
			if found = e.split(cells[label]); len(found) > 0 {
				mark = graph.Test
			}
		}
		if err := e.addLabels(&g.Labels, class, found); err != nil {
			return t.fault(line, label, "%v", err)
		}
		if split >= 0 {
			s, ok := splitNames[strings.ToLower(strings.TrimSpace(cells[split]))]
			if !ok {
				return t.fault(line, split, "%.40q, want train, val, test or none", cells[split])
			}
			if mark != graph.None {
				mark = s
			}
		}
		g.Split = append(g.Split, mark)
		if site >= 0 {
			owner := strings.TrimSpace(cells[site])
			if owner == "" {
				return t.fault(line, site, "empty, want the node's owner")
			}
			owners = append(owners, strings.Clone(owner))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(g.Split) == 0 {
		return nil, nil, fmt.Errorf("dataset: %s: no rows, want at least one node", path)
	}
	if site >= 0 {
		g.Sites = slices.Compact(slices.Sorted(slices.Values(owners)))
		for _, owner := range owners {
			s, _ := slices.BinarySearch(g.Sites, owner)
			g.Site = append(g.Site, int32(s))
		}
	}
	if x.Cols > 0 && row == nil {
		g.X.Sparse = x
		if fuller(int64(x.NNZ()), x.Rows, x.Cols) {
			g.X = graph.Features{Dense: x.Dense()}
		}
	}
	return g, index, nil
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
			return fmt.Errorf("unknown class %.40q, want one of %s", name, shorten(e.Classes))
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

func (e *Encoding) readEdges(path, nodes string, index map[string]int32) (*edgeList, error) {
	c := EdgeConfig{Path: path, Source: e.Source, Target: e.Target, Weight: e.Weight}
	if format, err := c.format(); err == nil && !isTable(format) {
		if e.Relation != "" {
			return nil, fmt.Errorf("dataset: %s: a list of numbered edges has no relations, want a table with a column %s", path, e.Relation)
		}
		return c.named(nodes, index)
	}
	t, err := openTable(path)
	if err != nil {
		return nil, err
	}
	defer t.close()
	var at [4]int // source, target, weight, relation; −1: none
	for k, column := range []struct{ name, role string }{{e.Source, "the edges' sources"}, {e.Target, "the edges' targets"},
		{e.Weight, "the edges' weights"}, {e.Relation, "the edges' relations"}} {
		if at[k] = -1; column.name == "" {
			continue
		}
		if at[k], err = t.column(column.name, column.role); err != nil {
			return nil, err
		}
	}
	l := &edgeList{}
	if e.Weight != "" {
		l.weight = []float32{}
	}
	return l, t.each(func(cells []string, line int) error {
		var ends [2]int32
		for k := range ends {
			i, ok := index[cells[at[k]]]
			if !ok {
				return t.fault(line, at[k], "unknown node %.40q, want a name in %s", cells[at[k]], nodes)
			}
			ends[k] = i
		}
		l.src, l.dst = append(l.src, ends[0]), append(l.dst, ends[1])
		if l.weight != nil {
			w, err := t.weight(cells, line, at[2])
			if err != nil {
				return err
			}
			l.weight = append(l.weight, w)
		}
		if e.Relation != "" {
			r, err := e.relation(t, cells, line, at[3])
			if err != nil {
				return err
			}
			l.kind = append(l.kind, r)
		}
		return nil
	})
}

// weight reads the weight of an edge.
func (t *table) weight(cells []string, line, at int) (float32, error) {
	v, ok := number(cells[at])
	if w := float32(v); ok && w > 0 && finite(w) {
		return w, nil
	}
	return 0, t.fault(line, at, "%.40q, want a number above 0", cells[at])
}

// named reads a list whose IDs are the names of nodes in a table.
func (c EdgeConfig) named(nodes string, index map[string]int32) (l *edgeList, err error) {
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
				return nil, list.fault(edge, "unknown node %d, want a name in %s", id, nodes)
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
