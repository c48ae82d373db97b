package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// openText opens a list with an edge on every line, as SNAP, KONECT and the GAP suite have it: two IDs and whatever
// follows them, separated by blanks, tabs or commas. Lines that begin with # or % say nothing.
func openText(c EdgeConfig) (*Edges, error) {
	columns, err := c.columns()
	if err != nil {
		return nil, err
	}
	l, err := openLines(c.Path)
	if err != nil {
		return nil, err
	}
	next := func() (Edge, error) {
		for {
			line, err := l.next()
			if err != nil {
				return Edge{}, err
			}
			if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' || line[0] == '%' {
				continue
			}
			return parseEdge(l, line, columns)
		}
	}
	return &Edges{Path: c.Path, Unit: "line", Nodes: -1, next: next, close: l.close}, nil
}

// columns returns the places of source, target and weight in lines without names, from 0; −1 for none.
func (c EdgeConfig) columns() (at [3]int, err error) {
	for k, name := range [3]string{or(c.Source, "1"), or(c.Target, "2"), or(c.Weight, "0")} {
		if k < 2 && name == [2]string{"source", "target"}[k] {
			name = strconv.Itoa(k + 1)
		}
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || n == 0 && k < 2 || n > math.MaxInt16 {
			return at, fmt.Errorf("dataset: %s: column %q of a list without names of columns, want its number, from 1", c.Path, name)
		}
		at[k] = n - 1
	}
	if at[0] == at[1] {
		return at, fmt.Errorf("dataset: %s: sources and targets are both in column %d", c.Path, at[0]+1)
	}
	return at, nil
}

func separator(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' }

// parseEdge reads one line.
func parseEdge(l *lines, line []byte, columns [3]int) (Edge, error) {
	e := Edge{Weight: 1, At: int64(l.n)}
	last := max(columns[0], columns[1], columns[2])
	at := 0
	for cell := range bytes.FieldsFuncSeq(line, separator) {
		var err error
		switch at {
		case columns[0]:
			e.Source, err = parseID(cell)
		case columns[1]:
			e.Target, err = parseID(cell)
		case columns[2]:
			e.Weight, err = parseWeight(cell)
		}
		if err != nil {
			return e, l.fault("column %d: %w", at+1, err)
		}
		if at++; at > last {
			return e, nil
		}
	}
	return e, l.fault("%d columns, want at least %d", at, last+1)
}

// parseID reads a number from 0.
func parseID(cell []byte) (int64, error) {
	v := int64(0)
	for _, d := range cell {
		if d < '0' || d > '9' || v > (math.MaxInt64-9)/10 {
			return 0, fmt.Errorf("%.40q is no node's number", cell)
		}
		v = 10*v + int64(d-'0')
	}
	if len(cell) == 0 {
		return 0, errors.New("empty, want a node's number")
	}
	return v, nil
}

func parseWeight(cell []byte) (float32, error) {
	v, err := strconv.ParseFloat(string(cell), 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", cell)
	}
	return float32(v), nil
}

// openTableEdges opens a table with the columns source and target, or one of numbers only, which has no names.
func openTableEdges(c EdgeConfig) (*Edges, error) {
	t, err := openTable(c.Path)
	if err != nil {
		return nil, err
	}
	source, target, weight := t.find(or(c.Source, "source")), t.find(or(c.Target, "target")), t.find(c.Weight)
	if source < 0 && c.Format != "parquet" && len(t.columns) > 1 {
		if _, err := parseID([]byte(t.columns[0])); err == nil {
			if err := t.close(); err != nil {
				return nil, err
			}
			return openText(c)
		}
	}
	if source < 0 || target < 0 || weight < 0 && c.Weight != "" {
		_, err := t.column(or(c.Source, "source"), "the edges' sources")
		if err == nil {
			_, err = t.column(or(c.Target, "target"), "the edges' targets")
		}
		if err == nil {
			_, err = t.column(c.Weight, "the edges' weights")
		}
		return nil, errors.Join(err, t.close())
	}
	next := func() (Edge, error) {
		cells, line, err := t.read()
		if err == io.EOF {
			return Edge{}, err
		}
		if err != nil {
			return Edge{}, fmt.Errorf("dataset: %s: %w", t.path, err)
		}
		e := Edge{Weight: 1, At: int64(line)}
		if e.Source, err = parseID([]byte(cells[source])); err != nil {
			return e, t.fault(line, source, "%v; where nodes have names, give a table of them", err)
		}
		if e.Target, err = parseID([]byte(cells[target])); err != nil {
			return e, t.fault(line, target, "%v; where nodes have names, give a table of them", err)
		}
		if weight >= 0 {
			if e.Weight, err = parseWeight([]byte(cells[weight])); err != nil {
				return e, t.fault(line, weight, "%v", err)
			}
		}
		return e, nil
	}
	return &Edges{Path: c.Path, Unit: t.unit, Nodes: -1, next: next, close: t.close}, nil
}
