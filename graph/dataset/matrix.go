package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// openMatrix opens a sparse matrix in coordinates of the Matrix Market (math.nist.gov/MatrixMarket/formats.html): entry
// (i, j) is an edge from node i−1 to node j−1. Values count only where weights are asked for, as column 3.
func openMatrix(c EdgeConfig) (*Edges, error) {
	l, err := openLines(c.Path)
	if err != nil {
		return nil, err
	}
	e, err := matrix(c, l)
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return e, nil
}

func matrix(c EdgeConfig, l *lines) (*Edges, error) {
	line, err := l.next()
	if err == io.EOF {
		return nil, l.fault("empty, want a line %%%%MatrixMarket")
	}
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(string(line)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return nil, l.fault("%.80q, want %%%%MatrixMarket matrix coordinate and the kinds of values and symmetry", line)
	}
	if words[2] != "coordinate" {
		return nil, l.fault("a matrix in format %q, want coordinate: a full one is no graph", words[2])
	}
	kind := words[3]
	switch kind {
	case "real", "integer", "double", "pattern":
	default:
		return nil, l.fault("values of kind %q, want real, integer or pattern", kind)
	}
	switch words[4] {
	case "general", "symmetric":
	default:
		return nil, l.fault("symmetry %q, want general or symmetric: an edge has no sign", words[4])
	}
	columns := [3]int{0, 1, -1}
	if c.Weight != "" {
		if c.Weight != "3" || kind == "pattern" {
			return nil, l.fault("weights in column %q of a matrix of kind %s, want 3, and none of a pattern", c.Weight, kind)
		}
		columns[2] = 2
	}
	// dataLine returns the next line that is not a comment.
	dataLine := func() ([]byte, error) {
		for {
			line, err := l.next()
			if err != nil {
				return nil, err
			}
			if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
				return line, nil
			}
		}
	}
	if line, err = dataLine(); err == io.EOF {
		return nil, l.fault("no line of sizes, want rows, columns and entries")
	} else if err != nil {
		return nil, err
	}
	var size [3]int64
	cells := bytes.Fields(line)
	if len(cells) != 3 {
		return nil, l.fault("%d numbers, want rows, columns and entries", len(cells))
	}
	for k, cell := range cells {
		if size[k], err = parseID(cell); err != nil {
			return nil, l.fault("%w", err)
		}
	}
	if size[0] != size[1] || size[0] > math.MaxInt32 {
		return nil, l.fault("%d rows and %d columns, want as many of each, at most %d", size[0], size[1], math.MaxInt32)
	}
	left := size[2]
	next := func() (Edge, error) {
		line, err := dataLine()
		if err == io.EOF && left > 0 {
			return Edge{}, fmt.Errorf("dataset: %s: after line %d: truncated, %d entries of %d are missing", l.path, l.n, left, size[2])
		}
		if err != nil {
			return Edge{}, err
		}
		if left--; left < 0 {
			return Edge{}, l.fault("an entry more than the %d announced", size[2])
		}
		e, err := parseEdge(l, line, columns)
		if err == nil && (e.Source == 0 || e.Target == 0) {
			err = l.fault("row %d, column %d, want numbers from 1", e.Source, e.Target)
		}
		e.Source--
		e.Target--
		return e, err
	}
	return &Edges{Path: c.Path, Unit: "line", Nodes: size[0], next: next, close: l.close}, nil
}
