package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/mat"
)

// Direction is the direction of messages along the edges of a table, relative to source and target.
type Direction string

// The directions. The reverse of each relation is another relation, except with Into and OutOf, whose messages have one
// direction.
const (
	Undirected Direction = ""     // both directions alike
	Into       Direction = "in"   // a node reads the sources of the edges that end at it
	OutOf      Direction = "out"  // a node reads the targets of the edges that begin at it
	BothWays   Direction = "both" // both, as two relations
)

// Valid returns an error unless d is a direction.
func (d Direction) Valid() error {
	if !slices.Contains([]Direction{Undirected, Into, OutOf, BothWays}, d) {
		return fmt.Errorf("direction must be in, out or both (got %q)", string(d))
	}
	return nil
}

// plain is the name of the one relation of a table without relations, if its two directions are separate.
const plain = "edge"

// Ends are the nodes, by name, that an end of an edge may be.
type Ends struct {
	File    string // table of the nodes
	Index   map[string]int32
	First   int32           // is added to the numbers of Index
	spelled table.Spellings // spellings of the names, made when a name is not found
}

// Find returns the number of the node of that name; a whole number may have .0 after it. If there is none and the cause
// is known, must is a clause that gives what a name must be.
func (e *Ends) Find(name string) (i int32, must string, ok bool) {
	whole := table.Whole(name)
	for _, also := range [3]string{name, whole, whole + ".0"} {
		if i, ok = e.Index[also]; ok {
			return e.First + i, "", true
		}
	}
	if e.spelled == nil {
		e.spelled = table.NewSpellings(slices.Collect(maps.Keys(e.Index)))
	}
	switch must = e.spelled.Must(name); {
	case rounded(name):
		must = ", not a rounded number: write names as texts"
	case must != "":
		must = ", " + must
	case name == "":
		must = ", not empty"
	}
	return 0, must, false
}

// rounded reports whether a name is a number above those that floats represent exactly, written like a float.
func rounded(name string) bool {
	v, ok := table.Number(name)
	return ok && math.Abs(v) >= 1<<53 && strings.Contains(strings.ToLower(name), "e+")
}

// TableEdges are the edges of one or more tables between nodes by their numbers.
type TableEdges struct {
	Source, Target []int32
	e              *Encoding
	kind           []int32   // relation of each edge (nil = edges have no types)
	weight         []float32 // nil = all 1
	x              []float32 // rows of columns
}

// NewEdges returns no edges yet, for tables that are read by e.
func (e *Encoding) NewEdges() *TableEdges {
	l := &TableEdges{e: e}
	if e.Weight != "" {
		l.weight = []float32{}
	}
	return l
}

// Read adds the edges of a table or list, and its observations to r.
func (l *TableEdges) Read(path string, source, target Ends, format table.Format, r *Reading) error {
	format.Edges = true
	e := l.e
	format.Missing = slices.Concat(format.Missing, e.Missing)
	c := edgelist.Config{Path: path, Source: e.Source, Target: e.Target, Weight: e.Weight, Cells: format}
	if c.Numbered() && !table.IsList(path) {
		if e.Relation != "" {
			return fmt.Errorf("%s: relations need a table with a column %s (got a list of numbered edges)",
				path, e.Relation)
		}
		if len(e.EdgeColumns) > 0 {
			return fmt.Errorf("%s: edge columns need a table that has them (got a list of numbered edges)",
				path)
		}
		before := len(l.Source)
		if err := l.named(c, source, target); err != nil {
			return err
		}
		r.Tables = append(r.Tables, table.TableFacts{File: filepath.Base(path), Rows: len(l.Source) - before})
		return nil
	}
	t, err := table.Open(path, format)
	if err != nil {
		return err
	}
	defer t.Close()
	before := len(l.Source)
	err = l.read(t, source, target, format)
	what, lost := TableFacts(t, len(l.Source)-before, format)
	r.Tables = append(r.Tables, what)
	return cmp.Or(err, lost)
}

// read adds the rows of a table.
func (l *TableEdges) read(t *table.Table, source, target Ends, format table.Format) error {
	// An unknown node may be one of the rows at fault.
	lost := [2]bool{format.Faults.Told(source.File), format.Faults.Told(target.File)}
	return l.e.EachEdge(t, func(row *EdgeRow) error {
		var ends [2]int32
		for k, of := range [2]*Ends{&source, &target} {
			name := row.Cells[row.Ends[k]]
			i, must, ok := of.Find(name)
			switch {
			case !ok && lost[k]:
				return nil
			case !ok:
				if row.Line == 1 {
					must += "; if the first line names columns, take it out"
				}
				return t.Fault(row.Line, row.Ends[k], "node must be a name in %s%s (got %.40q)", of.File, must, name)
			}
			ends[k] = i
		}
		l.x = append(l.x, row.X...)
		l.add(ends, row.Kind, row.Weight)
		return nil
	})
}

// EdgeRow is a row of a table of edges, until the next is read.
type EdgeRow struct {
	Cells  []string
	Line   int
	Ends   [2]int    // columns of source and target
	Weight float32   // 1 if there is no column of weights
	Kind   int32     // number of the relation (0 without a column of relations)
	X      []float32 // edge columns as features
}

// EachEdge calls f with each row of a table of edges.
func (e *Encoding) EachEdge(t *table.Table, f func(row *EdgeRow) error) (err error) {
	var at [4]int // source, target, weight, relation; −1: none
	for k, column := range []struct{ name, role string }{{e.Source, "the edges' sources, option source-column"},
		{e.Target, "the edges' targets, option target-column"},
		{e.Weight, "the edges' weights, option weight-column"},
		{e.Relation, "the edges' relations, option relation-column"}} {
		if at[k] = -1; column.name == "" {
			continue
		}
		if at[k], err = t.Column(column.name, column.role); err != nil {
			return err
		}
	}
	places, err := findPlaces(t, e.EdgeColumns, "edge columns")
	if err != nil {
		return err
	}
	row := EdgeRow{Ends: [2]int(at[:2]), X: make([]float32, e.EdgeWidth())}
	return t.Each(func(cells []string, line int) (err error) {
		row.Cells, row.Line, row.Weight = cells, line, 1
		if at[2] >= 0 {
			if row.Weight, err = t.Weight(cells, line, at[2]); err != nil {
				return err
			}
		}
		if at[3] >= 0 {
			if row.Kind, err = e.relationAt(t, cells, line, at[3]); err != nil {
				return err
			}
		}
		clear(row.X)
		if err := encodeCells(t, e.EdgeColumns, places, cells, line, func(j int, v float32) { row.X[j] = v },
			func(int) {}); err != nil {
			return err
		}
		return f(&row)
	})
}

func (l *TableEdges) add(ends [2]int32, kind int32, weight float32) {
	l.Source, l.Target = append(l.Source, ends[0]), append(l.Target, ends[1])
	if l.weight != nil {
		l.weight = append(l.weight, weight)
	}
	if len(l.e.Relations) > 0 {
		l.kind = append(l.kind, kind)
	}
}

// named reads a list whose IDs are the names of nodes in a table.
func (l *TableEdges) named(c edgelist.Config, source, target Ends) (err error) {
	list, err := c.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	for edge, err := range list.All() {
		if err != nil {
			return err
		}
		var ends [2]int32
		for k, of := range [2]*Ends{&source, &target} {
			id := [2]int64{edge.Source, edge.Target}[k]
			i, must, ok := of.Find(strconv.FormatInt(id, 10))
			if !ok {
				return list.Fault(edge, "node must be a name in %s%s (got %d)", of.File, must, id)
			}
			ends[k] = i
		}
		l.add(ends, 0, edge.Weight)
	}
	return nil
}

// Append adds the edges of another table as relation kind; its columns begin at column first.
func (l *TableEdges) Append(more *TableEdges, kind int32, first int) {
	row, wide := make([]float32, l.e.EdgeWidth()), more.e.EdgeWidth()
	for k := range more.Source {
		weight := float32(1)
		if more.weight != nil {
			weight = more.weight[k]
		}
		l.add([2]int32{more.Source[k], more.Target[k]}, kind, weight)
		copy(row[first:], more.x[k*wide:(k+1)*wide])
		l.x = append(l.x, row...)
	}
}

// Graph gives g, of n nodes, a copy of these edges.
func (l *TableEdges) Graph(g *graph.Graph, n int) (err error) {
	e := l.e
	src, dst, kind, weight, rows := l.Source, l.Target, l.kind, l.weight, []int32(nil)
	directed := e.Directed.OneWay()
	merged := kind
	if directed && kind == nil {
		merged = make([]int32, len(src)) // an edge and its reverse count as two
	}
	cols := e.EdgeWidth()
	x := mat.View(len(src), cols, l.x)
	if cols > 0 {
		edgelist.MergeColumns(e.Merge, src, dst, merged, x)
	}
	src, dst, kind, weight, first := edgelist.Merge(e.Merge, src, dst, merged, weight)
	if cols > 0 {
		if rows = first; rows == nil {
			rows = mat.EveryRow(len(src))
		}
	}
	if e.Directed == OutOf {
		src, dst = dst, src
	}
	if g.Adj, err = graph.FromEdges(n, src, dst, weight, graph.Build{Directed: directed, Edge: rows}); err != nil {
		return err
	}
	kind, src, dst, weight, rows = e.BothWays(kind, src, dst, weight, rows)
	if g.Typed, err = e.Typed(n, n, kind, src, dst, weight, rows); err != nil {
		return err
	}
	if cols > 0 {
		g.EdgeX, _ = g.Typed.CompactEdges(&g.Adj, x)
	}
	return nil
}

// ProfileEdges reads the table of edges for the contents of its EdgeColumns.
func (c ImportConfig) ProfileEdges() (columns []ColumnProfile, err error) {
	if len(c.EdgeColumns) == 0 || c.Edges == "" {
		return nil, nil
	}
	s, err := c.scanEdges(nil)
	if err != nil {
		return nil, err
	}
	if err := s.complete(c.scanEdges); err != nil {
		return nil, err
	}
	for k, one := range s.stats {
		if one == nil {
			continue
		}
		of := ColumnProfile{Stats: one}
		of.Column, of.Why = one.Column(s.names[k])
		columns = append(columns, of)
	}
	return columns, nil
}

// EdgeFeatures returns the edge columns that become features, among those that ProfileEdges found.
func EdgeFeatures(found []ColumnProfile) (columns []table.Column) {
	for _, of := range found {
		if of.Kind != table.Ignored {
			columns = append(columns, of.Column)
		}
	}
	return columns
}

// CheckEdges returns an error if the user names an edge column that makes no feature.
func (c ImportConfig) CheckEdges(found []ColumnProfile) error {
	for _, of := range found {
		if of.Kind == table.Ignored && c.EdgeColumns[0] != allColumns {
			return fmt.Errorf("%s: edge column %s makes no feature: %s; %[2]s:categorical keeps it", c.Edges, of.Name,
				of.Why)
		}
	}
	return nil
}

// allColumns means every column of a table of edges that has no role.
const allColumns = "all"

// scanEdges reads the table of edges once for its columns' contents or, if only is not nil, for the statistics of only
// these columns.
func (c *ImportConfig) scanEdges(only map[int]*table.Stats) (*scanned, error) {
	t, ends, err := c.openEdges()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &scanned{names: t.Columns, stats: make([]*table.Stats, len(t.Columns))}
	if only == nil {
		if err := c.beginEdges(t, s); err != nil {
			return nil, err
		}
	}
	for k, one := range only {
		s.stats[k] = one
	}
	return s, t.Each(func(cells []string, line int) error {
		for k, one := range s.stats {
			if one != nil {
				one.Add(t, cells[k], line, cells[ends[0]], cells[ends[1]])
			}
		}
		return nil
	})
}

// openEdges opens the table of edges and returns the indices of the columns of the ends.
func (c *ImportConfig) openEdges() (t *table.Table, at [2]int, err error) {
	format := c.Format
	format.Edges = true
	if t, err = table.Open(c.Edges, format); err != nil {
		return nil, at, err
	}
	if at[0], err = t.Column(c.Source, "the edges' sources, option source-column"); err == nil {
		at[1], err = t.Column(c.Target, "the edges' targets, option target-column")
	}
	if err != nil {
		return nil, at, errors.Join(err, t.Close())
	}
	return t, at, nil
}

// beginEdges makes the statistics of the columns that the user names.
func (c *ImportConfig) beginEdges(t *table.Table, s *scanned) error {
	roles := []int{t.Find(c.Source), t.Find(c.Target), t.Find(c.Weight), t.Find(c.Relation)}
	if c.EdgeColumns[0] == allColumns && len(c.EdgeColumns) == 1 {
		for k, name := range t.Columns {
			if name != "" && !slices.Contains(roles, k) {
				s.stats[k] = &table.Stats{}
			}
		}
		return nil
	}
	for _, text := range c.EdgeColumns {
		name, asked := edgeColumn(text)
		if t.Find(text) >= 0 {
			name, asked = text, nil // the column's own name has a colon
		}
		at, err := t.Column(name, "edge columns, each COLUMN or COLUMN:KIND, the kind numeric, categorical, date, "+
			"dmy or mdy")
		if err != nil {
			return err
		}
		if slices.Contains(roles, at) {
			return fmt.Errorf("%s: column %s must have one role (got another, too: edge columns)",
				t.Path, name)
		}
		s.stats[at] = &table.Stats{Asked: asked}
	}
	return nil
}

// edgeColumn splits the text for an edge column into its name and, if the user gives one, its kind.
func edgeColumn(text string) (name string, asked *table.Column) {
	name, kind, ok := cutLast(text)
	switch {
	case ok && (kind == string(table.Numeric) || kind == string(table.Categorical) || kind == string(table.Date)):
		return name, &table.Column{Name: name, Kind: table.ColumnKind(kind)}
	case ok && (kind == "mdy" || kind == "dmy"):
		return name, &table.Column{Name: name, Kind: table.Date, MonthFirst: kind == "mdy"}
	}
	return strings.TrimSpace(text), nil
}
