package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// table reads a user's table row by row: CSV, tab-separated or Parquet, by the file's suffix.
type table struct {
	path    string
	columns []string
	unit    string                        // what line counts: "line" or "row"
	read    func() ([]string, int, error) // cells in the columns' order and the line; io.EOF at the end
	files   []io.Closer                   // closed last to first
}

// openTable opens path, whose suffix is .csv or .tsv, then perhaps .gz or .zst, or .parquet.
func openTable(path string) (*table, error) {
	p, err := unpack(path)
	if err != nil {
		return nil, err
	}
	t := &table{path: path, unit: "line", files: p.files}
	if err := t.open(p); err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", path, errors.Join(err, t.close()))
	}
	return t, nil
}

func (t *table) open(p *packed) error {
	var err error
	f, plain := p.Reader.(*os.File) // Parquet packs its own columns
	switch {
	case plain && strings.HasSuffix(p.plain, ".parquet"):
		err = t.openParquet(f)
	case strings.HasSuffix(p.plain, ".csv"):
		err = t.openCSV(p, ',')
	case strings.HasSuffix(p.plain, ".tsv"):
		err = t.openCSV(p, '\t')
	default:
		err = errors.New("unknown kind of table, want a name that ends in .csv or .tsv, with .gz or .zst after it where it is packed, or in .parquet")
	}
	if err != nil {
		return err
	}
	return t.checkColumns()
}

func (t *table) openCSV(r io.Reader, comma rune) error {
	b := bufio.NewReader(r)
	if mark, err := b.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := b.Discard(3); err != nil {
			return err
		}
	}
	c := csv.NewReader(b)
	c.Comma, c.ReuseRecord = comma, true
	header, err := c.Read()
	if err == io.EOF {
		return errors.New("empty file, want a first line with the columns' names")
	}
	if err != nil {
		return err
	}
	t.columns = slices.Clone(header)
	t.read = func() ([]string, int, error) {
		cells, err := c.Read()
		if err != nil {
			return nil, 0, err
		}
		line, _ := c.FieldPos(0)
		return cells, line, nil
	}
	return nil
}

// checkColumns refuses a name that occurs twice; columns without a name (some programs write one) are never used.
func (t *table) checkColumns() error {
	for k, name := range t.columns {
		if name != "" && slices.Contains(t.columns[:k], name) {
			return fmt.Errorf("column %s occurs twice", name)
		}
	}
	return nil
}

// each calls f with the cells and line of every row; the cells are valid until f returns.
func (t *table) each(f func(cells []string, line int) error) error {
	for {
		cells, line, err := t.read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("dataset: %s: %w", t.path, err)
		}
		if err := f(cells, line); err != nil {
			return err
		}
	}
}

// column returns the place of the column of that name, which flag the user may set to another.
func (t *table) column(name, flag string) (int, error) {
	at := t.find(name)
	if at < 0 {
		return -1, fmt.Errorf("dataset: %s: no column %q (%s); its columns are %s", t.path, name, flag, strings.Join(t.columns, ", "))
	}
	return at, nil
}

// find returns the place of the column of that name, or −1.
func (t *table) find(name string) int {
	if name == "" {
		return -1
	}
	return slices.Index(t.columns, name)
}

// fault names the file, the line and the column that the text is about.
func (t *table) fault(line, column int, format string, args ...any) error {
	return fmt.Errorf("dataset: %s: %s %d, column %s: %s", t.path, t.unit, line, t.columns[column], fmt.Sprintf(format, args...))
}

func (t *table) close() error {
	var err error
	for _, f := range slices.Backward(t.files) {
		err = errors.Join(err, f.Close())
	}
	t.files = nil
	return err
}
