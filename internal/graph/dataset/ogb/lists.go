package ogb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
)

// readSplit reads the lists of nodes of each split.
func (o *set) readSplit(name string) error {
	root := filepath.Join(o.dir, "split")
	if name == "" {
		list, err := os.ReadDir(root)
		if err != nil {
			return err
		}
		var names []string
		for _, e := range list {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		if len(names) != 1 {
			return fmt.Errorf("%s has the splits %s: choose one", root, strings.Join(names, ", "))
		}
		name = names[0]
	}
	if !local(name) {
		return fmt.Errorf("%s: split must be the name of a folder in it (got %q)", root, name)
	}
	o.g.Split = make([]graph.Split, o.g.N())
	found := false
	for split, file := range [...]string{graph.Train: "train.csv.gz", graph.Val: "valid.csv.gz",
		graph.Test: "test.csv.gz"} {
		if file == "" {
			continue
		}
		for _, k := range o.kinds {
			path := filepath.Join(root, name, k.name, file)
			v, columns, err := readNumbers[float64](path, k.n)
			if len(o.kinds) > 1 && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if columns > 1 {
				return fmt.Errorf("%s: there must be one column (got %d)", path, columns)
			}
			found = true
			for at, id := range v {
				if !(id >= 0 && id < float64(k.n)) || id != math.Trunc(id) {
					return fmt.Errorf("%s: line %d: node must be 0 to %d (got %v)", path, at+1, k.n-1, id)
				}
				i := k.first + int(id)
				switch {
				case o.g.Split[i] != graph.None:
					return fmt.Errorf("%s: line %d: node %v is in a split already", path, at+1, id)
				case o.g.Labels.Class != nil && o.g.Labels.Class[i] < 0:
					continue
				}
				o.g.Split[i] = graph.Split(split)
			}
		}
	}
	if !found {
		return fmt.Errorf("%s: no train.csv.gz of any type of nodes", filepath.Join(root, name))
	}
	return nil
}

// readFloats reads a table of numbers without names, which must have `rows` rows.
func readFloats(path string, rows int) ([]float32, int, error) {
	v, columns, err := readNumbers[float32](path, rows)
	if err == nil && (columns > maxColumns || len(v) != rows*columns) {
		err = fmt.Errorf("%s: there must be %d rows of at most %d columns (got %d rows of %d)", path, rows,
			maxColumns, len(v)/max(1, columns), columns)
	}
	return v, columns, err
}

// readNumbers reads at most `most` rows of numbers, separated by commas. An empty cell is NaN.
func readNumbers[T float32 | float64](path string, most int) (v []T, columns int, err error) {
	l, err := table.OpenLines(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for {
		line, err := l.Next()
		if err == io.EOF {
			return v, columns, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if l.Number > most {
			return nil, 0, l.Fault("a row more than the %d wanted", most)
		}
		at := 0
		for cell := range bytes.SplitSeq(bytes.TrimSpace(line), []byte{','}) {
			f, err := math.NaN(), error(nil)
			if text := string(bytes.TrimSpace(cell)); text != "" && text != `""` {
				f, err = strconv.ParseFloat(text, 64)
			}
			if err != nil {
				return nil, 0, l.Fault("column %d must be a number (got %.40q)", at+1, cell)
			}
			v, at = append(v, T(f)), at+1
		}
		if columns == 0 {
			columns = at
		}
		if at != columns {
			return nil, 0, l.Fault("there must be %d columns (got %d)", columns, at)
		}
	}
}

// oneCount reads a list of counts, one for each graph of the set: there is one.
func oneCount(path string) (int, error) {
	v, _, err := readNumbers[float64](path, 1)
	if err != nil {
		return 0, err
	}
	if len(v) != 1 || v[0] < 0 || v[0] > math.MaxInt32 || v[0] != math.Trunc(v[0]) {
		return 0, fmt.Errorf("%s: must be one count (got %v)", path, v)
	}
	return int(v[0]), nil
}
