package table

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// lists are the suffixes of lists of edges: texts with columns that are numbered from 1.
var lists = []string{".txt", ".el", ".wel", ".edges", ".edgelist"}

// IsList reports whether the file's name is one of a list of edges.
func IsList(path string) bool {
	return slices.Contains(lists, filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")))
}

// openList opens a text with an edge a line, as SNAP, KONECT and networkx write it. Cells are separated by tabs, if
// there are any, or else by blanks and commas. Lines that begin with # or % are comments. The first two columns are
// also called source and target. The first line may name the columns.
func (t *Table) openList() error {
	if err := t.decode(); err != nil {
		return err
	}
	in := bufio.NewScanner(t.Reader)
	in.Buffer(make([]byte, 1<<16), maxLine)
	line := 0
	next := func() ([]string, error) {
		for in.Scan() {
			line++
			text := strings.TrimSpace(strings.TrimPrefix(in.Text(), "\ufeff"))
			if text == "" || text[0] == '#' || text[0] == '%' {
				continue
			}
			if t.format.Delimiter != "" {
				comma, err := t.format.comma(',')
				return strings.Split(text, string(comma)), err
			}
			if strings.Contains(text, "\t") {
				return strings.Split(text, "\t"), nil
			}
			return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }), nil
		}
		if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
			return nil, errLong
		} else if err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	first, err := next()
	if err != nil && err != io.EOF {
		return err
	}
	at := line
	for k := range max(2, len(first)) {
		t.Columns = append(t.Columns, strconv.Itoa(k+1))
	}
	t.first = first
	t.named = len(first) > 1 && usual("source", first[0]) && usual("target", first[1])
	t.Read = func() ([]string, int, error) {
		cells, n := first, at
		if first = nil; cells == nil || t.named && n == at {
			var err error
			if cells, err = next(); err != nil {
				return nil, 0, err
			}
			n = line
		}
		if len(cells) < 2 {
			return cells, n,
				&RowFault{Path: t.Path, Unit: t.Unit, Line: n, Text: "an edge must have two ends (got one cell)"}
		}
		for len(cells) < len(t.Columns) {
			cells = append(cells, "")
		}
		return cells[:len(t.Columns)], n, nil
	}
	return nil
}
