// Package table reads tables row by row as text: CSV, tab-separated, Parquet, packed or not.
package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table is an open table.
type Table struct {
	*Packed
	Columns []string
	Unit    string                        // what line counts: "line" or "row"
	Read    func() ([]string, int, error) // cells in the columns' order and the line; io.EOF at the end
}

// Open opens path, whose suffix is .csv or .tsv, then perhaps .gz or .zst, or .parquet.
func Open(path string) (*Table, error) {
	p, err := Unpack(path)
	if err != nil {
		return nil, err
	}
	t := &Table{Packed: p, Unit: "line"}
	if err := t.open(); err != nil {
		return nil, fmt.Errorf("table: %s: %w", path, errors.Join(err, t.Close()))
	}
	return t, nil
}

func (t *Table) open() error {
	var err error
	f, plain := t.Reader.(*os.File) // Parquet packs its own columns
	switch {
	case plain && strings.HasSuffix(t.Plain, ".parquet"):
		err = t.openParquet(f)
	case strings.HasSuffix(t.Plain, ".csv"):
		err = t.openCSV(',')
	case strings.HasSuffix(t.Plain, ".tsv"):
		err = t.openCSV('\t')
	default:
		err = errors.New("the name of a table must end in .csv or .tsv, with .gz or .zst after it if it is packed, or in .parquet")
	}
	if err != nil {
		return err
	}
	t.onlyUTF8()
	return t.checkColumns()
}

// onlyUTF8 makes Read refuse other text: what is stored of it would be another value when it is
// read again.
func (t *Table) onlyUTF8() {
	read := t.Read
	t.Read = func() ([]string, int, error) {
		cells, line, err := read()
		for k, c := range cells {
			if !utf8.ValidString(c) {
				return nil, 0, fmt.Errorf("%s %d, column %s: text must be UTF-8 (got %.40q)", t.Unit, line, t.Columns[k], c)
			}
		}
		return cells, line, err
	}
}

func (t *Table) openCSV(comma rune) error {
	b := bufio.NewReader(t.Reader)
	if mark, err := b.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := b.Discard(3); err != nil {
			return err
		}
	}
	c := csv.NewReader(b)
	c.Comma, c.ReuseRecord = comma, true
	header, err := c.Read()
	if err == io.EOF {
		return errors.New("the file is empty; its first line must name the columns")
	}
	if err != nil {
		return err
	}
	t.Columns = slices.Clone(header)
	t.Read = func() ([]string, int, error) {
		cells, err := c.Read()
		if err != nil {
			return nil, 0, err
		}
		line, _ := c.FieldPos(0)
		return cells, line, nil
	}
	return nil
}

// checkColumns refuses a name that occurs twice; columns without a name (some programs write one)
// are never used.
func (t *Table) checkColumns() error {
	for k, name := range t.Columns {
		if !utf8.ValidString(name) {
			return fmt.Errorf("names of columns must be UTF-8 (got %.40q)", name)
		}
		if name != "" && slices.Contains(t.Columns[:k], name) {
			return fmt.Errorf("column %s occurs twice", name)
		}
	}
	return nil
}

// Each calls f with the cells and line of every row; the cells are valid until f returns.
func (t *Table) Each(f func(cells []string, line int) error) error {
	for {
		cells, line, err := t.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("table: %s: %w", t.Path, err)
		}
		if err := f(cells, line); err != nil {
			return err
		}
	}
}

// Column returns the place of the column of that name, which flag the user may set to another.
func (t *Table) Column(name, flag string) (int, error) {
	at := t.Find(name)
	if at < 0 {
		return -1, fmt.Errorf("table: %s: no column %q (%s); its columns are %s", t.Path, name, flag, strings.Join(t.Columns, ", "))
	}
	return at, nil
}

// Find returns the place of the column of that name, or −1.
func (t *Table) Find(name string) int {
	if name == "" {
		return -1
	}
	return slices.Index(t.Columns, name)
}

// Fault names the file, the line and the column that the text is about.
func (t *Table) Fault(line, column int, format string, args ...any) error {
	return fmt.Errorf("table: %s: %s %d, column %s: %s", t.Path, t.Unit, line, t.Columns[column], fmt.Sprintf(format, args...))
}

// Weight reads the weight of an edge.
func (t *Table) Weight(cells []string, line, at int) (float32, error) {
	v, ok := Number(cells[at])
	if w := float32(v); ok && w > 0 && w <= math.MaxFloat32 {
		return w, nil
	}
	return 0, t.Fault(line, at, "weight must be a number above 0 (got %.40q)", cells[at])
}

// Number reads a finite number.
func Number(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}
