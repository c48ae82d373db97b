package table

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// RowFault is a fault of one row.
type RowFault struct {
	Path, Unit string // the file, and the unit of Line
	Line       int
	Column     string // "" = no single column
	Text       string
}

// Error implements error.
func (e *RowFault) Error() string {
	column := ""
	if e.Column != "" {
		column = ", column " + e.Column
	}
	return fmt.Sprintf("%s: %s %d%s: %s", e.Path, e.Unit, e.Line, column, e.Text)
}

// mostFaults is how many rows at fault an error names.
const mostFaults = 20

// Faults collects the rows at fault of one or more tables. Reads of the table with these Faults omit the rows, so that
// results do not depend on them.
type Faults struct {
	Skip bool // the rows are omitted for good; otherwise Err names the first 20

	list  []*RowFault
	cells [][]string                // cells of each fault
	known map[string]map[int]string // by path and line
}

// has reports whether a row is known to be at fault.
func (f *Faults) has(path string, line int) bool {
	if f == nil {
		return false
	}
	_, ok := f.known[path][line]
	return ok
}

// add records a row's fault. It returns an error when there are as many faults as an error names.
func (f *Faults) add(e *RowFault, cells []string) error {
	if f.known == nil {
		f.known = map[string]map[int]string{}
	}
	if f.known[e.Path] == nil {
		f.known[e.Path] = map[int]string{}
	}
	f.known[e.Path][e.Line] = e.Text
	f.list = append(f.list, e)
	if f.Skip {
		own, room := make([]string, len(cells)), maxCell>>4
		for k, c := range cells {
			own[k] = strings.Clone(c[:min(len(c), room)])
			room -= len(own[k])
		}
		f.cells = append(f.cells, own)
	} else if len(f.list) == mostFaults {
		return f.Err()
	}
	return nil
}

// Err returns the faults as an error, unless their rows are skipped or there are none.
func (f *Faults) Err() error {
	if f == nil || f.Skip || len(f.list) == 0 {
		return nil
	}
	var all []error
	for _, e := range f.sorted() {
		all = append(all, e)
	}
	if len(all) == mostFaults {
		all = append(all, fmt.Errorf("these are the first %d faults; there may be more", mostFaults))
	}
	return errors.Join(append(all, errors.New("option on-error skip leaves such rows out"))...)
}

// Again calls read until it adds no row to the faults: then neither the statistics of columns nor the nodes' edges
// include skipped rows. It returns the faults as an error if they are not skipped.
func (format *Format) Again(read func() error) error {
	if format.Faults == nil {
		format.Faults = &Faults{}
	}
	f := format.Faults
	for known := -1; known < f.Count(""); {
		known = f.Count("")
		err := read()
		if err = cmp.Or(f.Err(), err); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the faults in the order of their lines, table after table.
func (f *Faults) sorted() []*RowFault {
	place := map[string]int{}
	for _, e := range f.list {
		if _, ok := place[e.Path]; !ok {
			place[e.Path] = len(place)
		}
	}
	list := slices.Clone(f.list)
	slices.SortStableFunc(list, func(a, b *RowFault) int {
		if a.Path != b.Path {
			return place[a.Path] - place[b.Path]
		}
		return a.Line - b.Line
	})
	return list
}

// Count returns how many rows of a table are at fault, or of all tables if path is "".
func (f *Faults) Count(path string) int {
	if f == nil {
		return 0
	}
	if path == "" {
		return len(f.list)
	}
	return len(f.known[path])
}

// values matches the parts that differ among the texts of faults with one reason.
var values = regexp.MustCompile(`"(\\.|[^"\\])*"|\b(line|row) \d+`)

// Reasons counts a table's rows at fault by reason, the most frequent first, each as "N × REASON".
func (f *Faults) Reasons(path string) (list []string) {
	if f == nil {
		return nil
	}
	count := map[string]int{}
	for _, e := range f.list {
		if e.Path == path {
			text, _, _ := strings.Cut(e.Text, " (")
			if text = values.ReplaceAllString(text, "…"); e.Column != "" {
				text = "column " + e.Column + ": " + text
			}
			count[text]++
		}
	}
	for text, n := range count {
		list = append(list, fmt.Sprintf("%d × %s", n, text))
	}
	slices.SortFunc(list, func(a, b string) int {
		_, x, _ := strings.Cut(a, " × ")
		_, y, _ := strings.Cut(b, " × ")
		return cmp.Or(count[y]-count[x], strings.Compare(x, y))
	})
	return list
}

// Write writes the omitted rows: file, line, column and fault, then the row's cells.
func (f *Faults) Write(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"file", "line", "column", "fault", "row"}); err != nil {
		return err
	}
	for k, e := range f.list {
		row := append([]string{e.Path, strconv.Itoa(e.Line), e.Column, e.Text}, f.cells[k]...)
		if err := c.Write(row); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// Told reports whether the error of Err names rows of a table.
func (f *Faults) Told(path string) bool { return f != nil && !f.Skip && f.Count(path) > 0 }
