package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns the files of a table in order. It is path itself or, if that is a directory as Spark and Hadoop write
// tables, its files by name, except those whose names begin with _ or a dot.
func Files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "."):
		case e.IsDir():
			return nil, fmt.Errorf("%s: a table in several files must have them in one directory "+
				"(got the directory %s)", path, name)
		default:
			files = append(files, filepath.Join(path, name))
		}
	}
	if files == nil {
		return nil, fmt.Errorf("%s: the directory must have the files of a table (got none)", path)
	}
	return files, nil
}

// folder reads the files of a table one after the other.
type folder struct {
	whole  *Table
	rest   []string
	now    *Table // the open file
	row    int    // row that was read last, from 1, over all files
	begins []int  // row before the first one of each opened file
	names  []string

	// The first row of now has been read already, to see whether there is one.
	ahead bool
	cells []string
	err   error
}

// openFolder opens the files of the table at path, which have the same columns, as one table. Its rows are counted from
// 1 over all files. Spark writes a file without rows for an empty partition; such a file does not affect the columns.
func openFolder(path string, files []string, format Format) (*Table, error) {
	w := &Table{Packed: &Packed{Path: path, Plain: path}, Unit: "row", format: format}
	f := &folder{whole: w, rest: files}
	w.parts, w.files = f, []io.Closer{f}
	if err := f.next(); err != nil && (err != io.EOF || f.now == nil) {
		return nil, errors.Join(err, f.Close())
	}
	w.Columns, w.Charset, w.Comma, w.Unread = f.now.Columns, f.now.Charset, f.now.Comma, f.now.Unread
	w.index, w.place, w.unnamed, w.Read = f.now.index, f.now.place, f.now.unnamed, f.read
	return w, nil
}

// Close closes the file that is open.
func (f *folder) Close() error {
	if f.now == nil {
		return nil
	}
	return f.now.Close()
}

// next opens the next file that has rows, or the last one that names columns; if none is left, the error is io.EOF.
func (f *folder) next() error {
	for len(f.rest) > 0 {
		t, err := openFile(f.rest[0], f.whole.format)
		info, wrong := os.Stat(f.rest[0])
		if err != nil && (errors.Is(err, errEmpty) || wrong == nil && info.Size() == 0) {
			if f.rest = f.rest[1:]; len(f.rest) > 0 || f.now != nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return errors.Join(err, t.Close())
		}
		f.now, f.rest = t, f.rest[1:]
		f.cells, _, f.err = t.Read()
		if f.err == io.EOF {
			continue
		}
		f.ahead, f.begins, f.names = true, append(f.begins, f.row), append(f.names, filepath.Base(t.Path))
		if f.whole.Columns != nil && !slices.Equal(t.Columns, f.whole.Columns) {
			return fmt.Errorf("%s: columns must be %s, as in the files before (got %s)", t.Path,
				strings.Join(f.whole.Columns, ", "), strings.Join(t.Columns, ", "))
		}
		return nil
	}
	return io.EOF
}

// read returns the next row, from the next file if the current one has ended.
func (f *folder) read() (cells []string, row int, err error) {
	for {
		if f.ahead {
			f.ahead, cells, err = false, f.cells, f.err
		} else {
			cells, _, err = f.now.Read()
		}
		if err != io.EOF {
			break
		}
		if err := f.next(); err != nil {
			return nil, 0, err
		}
	}
	f.row++
	if fault := (*RowFault)(nil); errors.As(err, &fault) {
		err = &RowFault{Path: f.whole.Path, Unit: f.whole.Unit, Line: f.row, Column: fault.Column,
			Text: fault.Text + f.at(f.row)}
	} else if err != nil {
		err = fmt.Errorf("%s: %w", f.names[len(f.names)-1], err)
	}
	return cells, f.row, err
}

// at names the file that a row is in.
func (f *folder) at(row int) string {
	k, _ := slices.BinarySearch(f.begins, row) // the first file that begins at or after the row
	return fmt.Sprintf(" (row %d of %s)", row-f.begins[k-1], f.names[k-1])
}
