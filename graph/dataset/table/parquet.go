package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// openParquet reads the columns of a flat Parquet file as text, so that the same rules hold for it
// as for CSV: null is the empty cell, numbers are written so that they read back to the same value.
func (t *Table) openParquet(f *os.File) (err error) {
	defer recovered(&err)
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The library allocates the footer before it compares its length with the file's.
	var tail [8]byte
	if _, err := f.ReadAt(tail[:], info.Size()-8); err != nil || string(tail[4:]) != "PAR1" {
		return errors.New("truncated or not a Parquet file: it must end in PAR1")
	}
	if n := binary.LittleEndian.Uint32(tail[:]); int64(n) > info.Size()-12 {
		return fmt.Errorf("footer of %d bytes in a file of %d", n, info.Size())
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("truncated or not a Parquet file: %w", err)
	}
	var cell []func(parquet.Value) string
	for _, c := range file.Root().Columns() {
		if !c.Leaf() || c.Repeated() {
			return fmt.Errorf("column %s must hold one value a row (got lists or groups)", strings.Join(c.Path(), "."))
		}
		text, err := cellText(c.Type())
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name(), err)
		}
		t.Columns, cell = append(t.Columns, c.Name()), append(cell, text)
	}
	rows := parquet.NewReader(file)
	t.files = append(t.files, rows)
	t.Unit = "row"
	buf, cells := make([]parquet.Row, 64), make([]string, len(t.Columns))
	var have []parquet.Row
	line := 0
	t.Read = func() (_ []string, _ int, err error) {
		defer recovered(&err)
		for len(have) == 0 {
			n, err := rows.ReadRows(buf)
			if n == 0 && err != nil {
				return nil, 0, err
			}
			if n == 0 {
				return nil, 0, io.ErrNoProgress
			}
			have = buf[:n]
		}
		row := have[0]
		have, line = have[1:], line+1
		if len(row) != len(cells) {
			return nil, 0, fmt.Errorf("row %d must have %d values (got %d)", line, len(cells), len(row))
		}
		for k, v := range row {
			cells[k] = ""
			if !v.IsNull() {
				cells[k] = cell[k](v)
			}
		}
		return cells, line, nil
	}
	return nil
}

// cellText returns how values of type t are written.
func cellText(t parquet.Type) (func(parquet.Value) string, error) {
	unsigned := false
	if l := t.LogicalType(); l != nil {
		if i, ok := l.Value.(*format.IntType); ok {
			unsigned = !i.IsSigned
		}
	}
	switch k := t.Kind(); {
	case k == parquet.Boolean:
		return func(v parquet.Value) string { return strconv.FormatBool(v.Boolean()) }, nil
	case k == parquet.Int32 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) }, nil
	case k == parquet.Int32:
		return func(v parquet.Value) string { return strconv.FormatInt(int64(v.Int32()), 10) }, nil
	case k == parquet.Int64 && unsigned:
		return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }, nil
	case k == parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(v.Int64(), 10) }, nil
	case k == parquet.Float:
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32) }, nil
	case k == parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'g', -1, 64) }, nil
	case k == parquet.ByteArray:
		return func(v parquet.Value) string { return string(v.ByteArray()) }, nil
	}
	return nil, fmt.Errorf("type must be boolean, integer, float or string (got %v)", t)
}

// recovered turns a panic of the Parquet library into an error: on damaged files it may index out
// of range.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged Parquet file: %v", r)
	}
}
