package edgelist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// openMatrix opens a sparse matrix in coordinates of the Matrix Market
// (math.nist.gov/MatrixMarket/formats.html): entry (i, j) is an edge from node i−1 to node j−1.
// Values count only where weights are asked for, as column 3.
func openMatrix(c Config) (*List, error) {
	l, err := table.OpenLines(c.Path)
	if err != nil {
		return nil, err
	}
	e, err := matrix(c, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return e, nil
}

func matrix(c Config, l *table.Lines) (*List, error) {
	columns, err := matrixHead(c, l)
	if err != nil {
		return nil, err
	}
	size, err := matrixSize(l)
	if err != nil {
		return nil, err
	}
	left := size[2]
	next := func() (Edge, error) {
		line, err := dataLine(l)
		if err == io.EOF && left > 0 {
			return Edge{}, fmt.Errorf("edgelist: %s: after line %d: truncated, %d entries of %d are missing", l.Path,
				l.Number, left, size[2])
		}
		if err != nil {
			return Edge{}, err
		}
		if left--; left < 0 {
			return Edge{}, l.Fault("an entry more than the %d announced", size[2])
		}
		e, err := parseEdge(l, line, columns)
		if err == nil && (e.Source == 0 || e.Target == 0) {
			err = l.Fault("row and column must be at least 1 (got %d and %d)", e.Source, e.Target)
		}
		e.Source--
		e.Target--
		return e, err
	}
	return &List{Path: c.Path, Unit: "line", Nodes: size[0], next: next, close: l.Close}, nil
}

// matrixHead reads the first line, and returns the columns of source, target and weight (−1: none).
func matrixHead(c Config, l *table.Lines) (columns [3]int, err error) {
	line, err := l.Next()
	if err == io.EOF {
		return columns, l.Fault("the file must begin with a line %%%%MatrixMarket (got an empty one)")
	}
	if err != nil {
		return columns, err
	}
	words := strings.Fields(strings.ToLower(string(line)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return columns, l.Fault("the line must be %%%%MatrixMarket matrix coordinate and the kinds of values and symmetry (got %.80q)", line)
	}
	if words[2] != "coordinate" {
		return columns, l.Fault("the format of the matrix must be coordinate (got %q): a full one is not a graph",
			words[2])
	}
	kind := words[3]
	switch kind {
	case "real", "integer", "double", "pattern":
	default:
		return columns, l.Fault("values must be real, integer or pattern (got %q)", kind)
	}
	switch words[4] {
	case "general", "symmetric":
	default:
		return columns, l.Fault("symmetry must be general or symmetric (got %q): an edge has no sign", words[4])
	}
	columns = [3]int{0, 1, -1}
	if c.Weight != "" {
		if c.Weight != "3" || kind == "pattern" {
			return columns, l.Fault("the column of weights must be 3, and a pattern has none (got %q of a matrix of kind %s)", c.Weight, kind)
		}
		columns[2] = 2
	}
	return columns, nil
}

// matrixSize reads the numbers of rows, columns and entries.
func matrixSize(l *table.Lines) (size [3]int64, err error) {
	line, err := dataLine(l)
	if err == io.EOF {
		return size, l.Fault("a line must give rows, columns and entries (got none)")
	} else if err != nil {
		return size, err
	}
	cells := bytes.Fields(line)
	if len(cells) != 3 {
		return size, l.Fault("the line must have rows, columns and entries (got %d numbers)", len(cells))
	}
	for k, cell := range cells {
		if size[k], err = ParseID(cell); err != nil {
			return size, l.Fault("%w", err)
		}
	}
	if size[0] != size[1] || size[0] > math.MaxInt32 {
		return size, l.Fault("rows and columns must be equal and at most %d (got %d and %d)", math.MaxInt32, size[0],
			size[1])
	}
	return size, nil
}

// dataLine returns the next line that is not a comment.
func dataLine(l *table.Lines) ([]byte, error) {
	for {
		line, err := l.Next()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '%' {
			return line, nil
		}
	}
}
