package edgelist

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// openText opens a list with an edge on every line, as SNAP, KONECT and the GAP suite have it: two
// IDs and whatever follows them, separated by blanks, tabs or commas. Lines that begin with # or %
// are comments.
func openText(c Config) (*List, error) {
	columns, err := c.columns()
	if err != nil {
		return nil, err
	}
	l, err := table.OpenLines(c.Path)
	if err != nil {
		return nil, err
	}
	next := func() (Edge, error) {
		for {
			line, err := l.Next()
			if err != nil {
				return Edge{}, err
			}
			if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' || line[0] == '%' {
				continue
			}
			return parseEdge(l, line, columns)
		}
	}
	return &List{Path: c.Path, Unit: "line", Nodes: -1, next: next, close: l.Close}, nil
}

// columns returns the places of source, target and weight in lines without names, from 0; −1 for
// none.
func (c Config) columns() (at [3]int, err error) {
	for k, name := range [3]string{cmp.Or(c.Source, "1"), cmp.Or(c.Target, "2"), cmp.Or(c.Weight, "0")} {
		if k < 2 && name == [2]string{"source", "target"}[k] {
			name = strconv.Itoa(k + 1)
		}
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || n == 0 && k < 2 || n > math.MaxInt16 {
			return at, fmt.Errorf("%s: a list without column names needs the number of a column, from 1 "+
				"(got %q)", c.Path, name)
		}
		at[k] = n - 1
	}
	if at[0] == at[1] {
		return at, fmt.Errorf("%s: sources and targets are both in column %d", c.Path, at[0]+1)
	}
	return at, nil
}

func separator(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' }

// parseEdge reads one line.
func parseEdge(l *table.Lines, line []byte, columns [3]int) (Edge, error) {
	e := Edge{Weight: 1, At: int64(l.Number)}
	last := max(columns[0], columns[1], columns[2])
	at := 0
	for cell := range bytes.FieldsFuncSeq(line, separator) {
		var err error
		switch at {
		case columns[0]:
			e.Source, err = ParseID(cell)
		case columns[1]:
			e.Target, err = ParseID(cell)
		case columns[2]:
			e.Weight, err = parseWeight(cell)
		}
		if err != nil {
			return e, l.Fault("column %d: %w; names of nodes need a table of nodes", at+1, err)
		}
		if at++; at > last {
			return e, nil
		}
	}
	return e, l.Fault("there must be at least %d columns (got %d)", last+1, at)
}

// ParseID reads a number from 0.
func ParseID(cell []byte) (int64, error) {
	v := int64(0)
	for _, d := range cell {
		if d < '0' || d > '9' {
			return 0, fmt.Errorf("must be the number of a node (got %.40q)", cell)
		}
		if v > (math.MaxInt64-int64(d-'0'))/10 {
			return 0, fmt.Errorf("must be the number of a node, at most %d (got %.40q)", math.MaxInt64, cell)
		}
		v = 10*v + int64(d-'0')
	}
	if len(cell) == 0 {
		return 0, errors.New("must be the number of a node (got nothing)")
	}
	return v, nil
}

func parseWeight(cell []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(cell), 32)
	if err != nil {
		return 0, fmt.Errorf("weight must be a number above 0, at most %.2g (got %.40q)", math.MaxFloat32, cell)
	}
	return float32(v), nil
}

// openTableEdges opens a table with the columns source and target, or one of numbers only, which
// has no names.
func openTableEdges(c Config) (*List, error) {
	c.Cells.Edges = true
	t, err := table.Open(c.Path, c.Cells)
	if err != nil {
		return nil, err
	}
	source, target, weight := t.Find(cmp.Or(c.Source, "source")), t.Find(cmp.Or(c.Target, "target")), t.Find(c.Weight)
	if source < 0 && c.Format != "parquet" && len(t.Columns) > 1 {
		if _, err := ParseID([]byte(t.Columns[0])); err == nil {
			if err := t.Close(); err != nil {
				return nil, err
			}
			return openText(c)
		}
	}
	if source < 0 || target < 0 || weight < 0 && c.Weight != "" {
		_, err := t.Column(cmp.Or(c.Source, "source"), "the edges' sources, option source-column")
		if err == nil {
			_, err = t.Column(cmp.Or(c.Target, "target"), "the edges' targets, option target-column")
		}
		if err == nil {
			_, err = t.Column(c.Weight, "the edges' weights, option weight-column")
		}
		return nil, errors.Join(err, t.Close())
	}
	next := func() (Edge, error) {
		cells, line, err := t.Read()
		if err == io.EOF {
			return Edge{}, err
		}
		if err != nil {
			return Edge{}, fmt.Errorf("%s: %w", t.Path, err)
		}
		e := Edge{Weight: 1, At: int64(line)}
		if e.Source, err = ParseID([]byte(cells[source])); err != nil {
			return e, t.Fault(line, source, "%v; where nodes have names, give a table of them", err)
		}
		if e.Target, err = ParseID([]byte(cells[target])); err != nil {
			return e, t.Fault(line, target, "%v; where nodes have names, give a table of them", err)
		}
		if weight >= 0 {
			if e.Weight, err = parseWeight([]byte(cells[weight])); err != nil {
				return e, t.Fault(line, weight, "%v", err)
			}
		}
		return e, nil
	}
	return &List{Path: c.Path, Unit: t.Unit, Nodes: -1, next: next, close: t.Close}, nil
}
