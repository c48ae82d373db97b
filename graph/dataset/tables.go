package dataset

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/mat"
)

// Reading has observations from reading tables.
type Reading struct {
	Tables         []table.TableFacts
	Unknown        []int    // [column of the encoding] number of cells with an unknown category
	Example        []string // [column of the encoding] one of these cells
	filled         []bool   // [column of the encoding] whether a cell has a value
	Spelled        []string // names of sites with several spellings, as table.Unite writes them
	NoneLabels     int      // cells of the label column with the text "none", which is not a class
	NewClasses     int      // cells of the label column with a class that the encoding lacks
	NewClass       string   // one of these classes
	Source, Target []int32  // the listed edges between the nodes
}

// read makes a graph of two tables. Without a split column, a labelled node is in split Test until the caller sets
// another split, and any other node is in None.
func (e *Encoding) read(nodes, edges []string, format table.Format) (*graph.Graph, *Reading, error) {
	g, index, r, err := e.scanNodes(nodes, format, nil)
	if err != nil {
		return nil, nil, err
	}
	ends := Ends{File: strings.Join(nodes, " or "), Index: index}
	if err := Rows(ends.File, g); err != nil {
		return nil, nil, err
	}
	l := e.NewEdges()
	for _, path := range edges {
		if path == "" {
			continue
		}
		if err := l.Read(path, ends, ends, format, r); err != nil {
			return nil, nil, err
		}
	}
	r.Source, r.Target = l.Source, l.Target
	if err := l.Graph(g, len(index)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", strings.Join(edges, ", "), err)
	}
	return g, r, nil
}

// Rows returns an error if a table has no node.
func Rows(path string, g *graph.Graph) error {
	if len(g.Split) == 0 {
		return fmt.Errorf("%s: the table must have at least one node (got no rows)", path)
	}
	return nil
}

// ReadNodes returns the nodes of a table, without edges, and the number of each by its name.
func (e *Encoding) ReadNodes(path string, format table.Format) (*graph.Graph, map[string]int32, *Reading, error) {
	return e.scanNodes([]string{path}, format, nil)
}

// scanNodes is ReadNodes over one table after another. If row is not nil, it passes each node's features to row, and
// keeps neither features nor names: the nodes must be numbered from 0 in the order of the table.
func (e *Encoding) scanNodes(paths []string, format table.Format, row func(x *mat.Sparse) error) (*graph.Graph,
	map[string]int32, *Reading, error) {
	format.Missing = slices.Concat(format.Missing, e.Missing)
	n := e.newNodeReader(row)
	for _, path := range paths {
		if err := n.read(path, format); err != nil {
			return nil, nil, nil, err
		}
	}
	g := n.g
	if n.site >= 0 {
		count := map[string]int{}
		for _, owner := range n.owners {
			count[owner]++
		}
		n.reading.Spelled = table.Unite(count)
		g.Sites = slices.Sorted(maps.Keys(count))
		spelled := table.NewSpellings(g.Sites)
		for _, owner := range n.owners {
			s, _ := slices.BinarySearch(g.Sites, spelled.Find(owner))
			g.Site = append(g.Site, int32(s))
		}
	}
	if x := n.x; x.Cols > 0 && row == nil {
		g.X.Sparse = x
		if fuller(int64(x.NNZ()), x.Rows, x.Cols) {
			g.X = graph.Features{Dense: x.Dense()}
		}
	}
	return g, n.index, &n.reading, nil
}

// nodeReader reads a table of nodes, row by row.
type nodeReader struct {
	e                      *Encoding
	t                      *table.Table
	row                    func(x *mat.Sparse) error
	id, label, split, site int              // columns (−1 = none)
	times                  *TimeSplit       // nil = no split by time
	at                     []cellPlace      // columns of the features
	class                  map[string]int32 // by name
	classes                table.Spellings

	g      *graph.Graph
	x      *mat.Sparse // features
	index  map[string]int32
	keys   map[string]int32 // nodes whose name is not its key, by that
	lines  []int            // line of each node
	before int              // number of nodes in earlier tables
	owners []string         // owner of each node

	again int // number of rows with a name that an earlier row has

	reading Reading
	strange []int // columns for which the current row has an unknown category
}

// newNodeReader returns a reader of tables whose nodes form one graph. row gets the features of each node, in order.
func (e *Encoding) newNodeReader(row func(x *mat.Sparse) error) *nodeReader {
	n := &nodeReader{e: e, row: row, class: map[string]int32{}, classes: table.NewSpellings(e.Classes),
		index: map[string]int32{}, keys: map[string]int32{}}
	n.g = &graph.Graph{Labels: e.NoLabels()}
	for c, name := range e.Classes {
		n.class[name] = int32(c)
	}
	n.x = &mat.Sparse{Cols: e.Width(), RowPtr: []int64{0}}
	n.reading.Unknown, n.reading.Example = make([]int, len(e.Columns)), make([]string, len(e.Columns))
	n.reading.filled = make([]bool, len(e.Columns))
	return n
}

// NoLabels returns labels of no nodes, of the kind and with the names that tables of e have.
func (e *Encoding) NoLabels() graph.Labels {
	switch {
	case e.Regression:
		return graph.Labels{Classes: 1, Names: []string{e.Label}, Values: []float32{}}
	case e.Multi:
		return graph.Labels{Classes: len(e.Classes), Names: e.Classes, Bits: []uint8{}}
	}
	return graph.Labels{Classes: len(e.Classes), Names: e.Classes}
}

// read reads a table.
func (n *nodeReader) read(path string, format table.Format) error {
	t, err := table.Open(path, format)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := n.open(t); err != nil {
		return err
	}
	err = t.Each(n.add)
	if again := n.distinct(path, format); again != nil {
		return again
	}
	if err != nil {
		return err
	}
	what, err := TableFacts(t, len(n.g.Split)-n.before, format)
	n.reading.Tables = append(n.reading.Tables, what)
	return err
}

// manyAgain is how many repeated names lead to a check of all names.
const manyAgain = 10

// distinct refuses a table if its repeated names, counted, show that it has more than one graph.
func (n *nodeReader) distinct(path string, format table.Format) error {
	if n.again < manyAgain {
		return nil
	}
	faults := format.Faults
	format.Faults, format.Watch = &table.Faults{Skip: true}, nil
	t, err := table.Open(path, format)
	if err != nil {
		return err
	}
	defer t.Close()
	t.Leave(func(k int) bool { return k == n.id })
	names, rows := map[string]bool{}, 0
	if err := t.Each(func(cells []string, _ int) error {
		names[strings.Clone(cells[n.id])] = true
		rows++
		return nil
	}); err != nil {
		return err
	}
	again := rows - len(names)
	if faults != nil && faults.Skip && 10*again < rows {
		return nil
	}
	if faults != nil {
		*faults = table.Faults{Skip: faults.Skip} // the error below reports more
	}
	return fmt.Errorf("%s: column %s: names of nodes must be unique (got %d of %d that occur again): if the "+
		"table has many graphs, put graph and name into one column, there and in the edges", path, n.e.ID, again, rows)
}

// open finds the columns of a table.
func (n *nodeReader) open(t *table.Table) (err error) {
	e := n.e
	n.t, n.before = t, len(n.g.Split)
	if n.id, err = t.Column(e.ID, "the nodes' names, option id-column"); err != nil {
		return err
	}
	if n.at, err = findPlaces(t, e.Columns, "features"); err != nil {
		return err
	}
	n.label, n.split, n.site = t.Find(e.Label), t.Find(e.Split), t.Find(e.Site)
	if n.times, err = parseTimeSplit(e.SplitTime); err != nil {
		return err
	}
	used := map[int]bool{n.id: true, n.label: true, n.split: true, n.site: true} // -1 for absent columns
	if n.times != nil && n.times.Open(t, e.Columns) {
		used[n.times.at] = true
	} else {
		n.times = nil
	}
	for i, c := range e.Columns {
		if c.Kind != table.Ignored {
			used[n.at[i].column] = true
		}
	}
	t.Leave(func(k int) bool { return used[k] })
	return nil
}

// add reads one node, or skips it if it is at fault.
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
		delete(n.keys, table.Key(name))
		n.g.IDs, n.lines = n.g.IDs[:len(n.g.IDs)-1], n.lines[:len(n.lines)-1]
		n.x.Rows, n.x.RowPtr, n.x.Col, n.x.Val = rows, n.x.RowPtr[:rows+1], n.x.Col[:values], n.x.Val[:values]
		n.g.Labels = labels
		return err
	}
	for k, c := range n.e.Columns {
		if !n.reading.filled[k] && c.Kind != table.Ignored {
			n.reading.filled[k] = !table.Missing(n.t.Cell(cells[n.at[k].column]))
		}
	}
	for _, k := range n.strange {
		if n.reading.Unknown[k]++; n.reading.Example[k] == "" {
			n.reading.Example[k] = strings.Clone(cells[n.at[k].column])
		}
	}
	return err
}

// addRest reads all of a node except its name.
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
		if owner = strings.TrimSpace(n.t.Cell(cells[n.site])); table.Missing(owner) {
			return n.t.Fault(line, n.site, "the node's owner must be given (got %q, which means none)", cells[n.site])
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

// addName checks that a node's name is given, exact and new, and numbers the node.
func (n *nodeReader) addName(name string, line int) error {
	if name == "" {
		return n.t.Fault(line, n.id, "the node's name must be given (got an empty cell)")
	}
	if rounded(name) {
		return n.t.Fault(line, n.id, "node must not be a rounded number: write names as texts (got %.40q)", name)
	}
	if len(n.g.Split) == math.MaxInt32 {
		return n.t.Fault(line, n.id, "nodes must be at most %d (got more)", math.MaxInt32)
	}
	if first, ok := n.index[name]; ok && int(first) < n.before {
		return n.t.Fault(line, n.id, "node %q occurs in a table before this one", name)
	} else if ok {
		n.again++
		return n.t.Fault(line, n.id, "node %q occurs on %s %d already", name, n.t.Unit, n.lines[first])
	}
	if n.row == nil {
		name = strings.Clone(name) // not the whole row's memory
		key := table.Key(name)
		first, ok := n.index[key]
		if !ok {
			first, ok = n.keys[key]
		}
		if ok {
			must := table.NewSpellings(n.g.IDs[first : first+1]).Must(name)
			place := fmt.Sprintf("on %s %d", n.t.Unit, n.lines[first])
			if int(first) < n.before {
				place = "in a table before this one"
			}
			return n.t.Fault(line, n.id, "node must be %s, as %s, or have another name (got %.40q)", must, place, name)
		}
		if key != name {
			n.keys[key] = int32(len(n.g.IDs))
		}
		n.index[name] = int32(len(n.g.IDs))
		n.g.IDs, n.lines = append(n.g.IDs, name), append(n.lines, line)
	} else if number := strconv.Itoa(len(n.g.Split)); name != number {
		return n.t.Fault(line, n.id,
			"nodes of a stored graph must be numbered from 0 in the order of the table: the name must be %s "+
				"(got %.40q)",
			number, name)
	}
	return nil
}

// addLabel reads a node's classes, and its split.
func (n *nodeReader) addLabel(cells []string, line int) error {
	mark := graph.None
	var found []string
	if n.label >= 0 {
		if found = n.e.split(n.t.Cell(cells[n.label])); len(found) == 0 &&
			strings.EqualFold(strings.TrimSpace(cells[n.label]), "none") {
			n.reading.NoneLabels++
		}
		if all := len(found); !n.e.Regression {
			for k, name := range found {
				found[k] = n.classes.Find(name)
			}
			found = slices.DeleteFunc(found, func(name string) bool {
				_, known := n.class[name]
				if !known && n.reading.NewClass == "" {
					n.reading.NewClass = strings.Clone(name)
				}
				return !known
			})
			if len(found) < all {
				n.reading.NewClasses++
			}
		}
	}
	if len(found) > 0 {
		mark = graph.Test
	}
	if err := n.addTarget(found); err != nil {
		return n.t.Fault(line, n.label, "%v", err)
	}
	if n.split >= 0 {
		s, ok := splitNames[strings.ToLower(strings.TrimSpace(cells[n.split]))]
		if !ok && !table.Missing(n.t.Cell(cells[n.split])) {
			return n.t.Fault(line, n.split, "split must be train, val, test or none (got %.40q)", cells[n.split])
		}
		if mark != graph.None {
			mark = s
		}
	}
	if n.times != nil && mark != graph.None {
		var err error
		if mark, err = n.times.Of(n.t, cells, line); err != nil {
			return err
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
		n.e.addLabels(l, n.class, found)
		return nil
	case len(found) == 0:
		l.Values = append(l.Values, float32(math.NaN()))
		return nil
	}
	v, ok := n.t.Number(found[0])
	switch {
	case n.t.TooLarge(found[0]), ok && math.Abs(v) > math.MaxFloat32:
		return fmt.Errorf("target must be a number of at most %.2g in size (got %.40q)", math.MaxFloat32, found[0])
	case !ok:
		return fmt.Errorf("target must be a number (got %.40q)%s", found[0], n.t.NumberHint(found[0]))
	}
	l.Values = append(l.Values, float32(v))
	return nil
}

// fuller reports whether more than a quarter of a matrix's cells have values; it is then kept dense.
func fuller(values int64, rows, cols int) bool { return values > int64(rows)*int64(cols)/4 }

var splitNames = map[string]graph.Split{
	"train": graph.Train, "val": graph.Val, "valid": graph.Val, "validation": graph.Val, "test": graph.Test,
	"none": graph.None, "": graph.None,
}

// addLabels appends one node's labels.
func (e *Encoding) addLabels(l *graph.Labels, class map[string]int32, found []string) {
	row := len(l.Bits)
	if e.Multi {
		l.Bits = append(l.Bits, make([]uint8, l.Classes)...)
	} else {
		l.Class = append(l.Class, -1)
	}
	for _, name := range found {
		if e.Multi {
			l.Bits[row+int(class[name])] = 1
		} else {
			l.Class[len(l.Class)-1] = class[name]
		}
	}
}

// shorten returns the first names as a list.
func shorten(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
