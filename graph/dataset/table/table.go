// Package table reads a user's tables row by row as text: CSV, tab-separated, Parquet, packed or not.
//
// One pass finds what is in a column (Stats). It becomes an encoding (Column), and encodes every
// cell alike wherever it is read. Facts are what the tables became: which features each column, how
// many nodes each class and site has, what was left out, and what looks like a mistake.
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
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is an open table.
type Table struct {
	*Packed
	Columns []string
	Unit    string                        // what line counts: "line" or "row"
	Read    func() ([]string, int, error) // cells in the columns' order and the line; io.EOF at the end
	Charset string                        // character set of a text
	Comma   rune                          // delimiter of a text
	Unread  map[string]error              // columns whose cells are empty because their values cannot be read, and why

	format  Format
	left    []bool         // columns that are not used: values that are no text become empty cells
	unnamed bool           // the columns have no names, but numbers from 1
	parts   *folder        // of a table in several files (nil = one file)
	index   int            // unnamed column with pandas' names of rows (−1 = none)
	place   map[string]int // index of each column, by name
	first   []string       // line of a list (nil = none)
	named   bool           // first names the columns
}

// indexName is the name of pandas' unnamed column with the names of rows.
const indexName = "index"

// WayOut is what to do about a file in an unsupported format.
const WayOut = "Python trains on other formats, as networkx, scipy or PyTorch Geometric read them: " +
	"see docs/how-to/python.md"

// Open opens path, whose suffix is .csv or .tsv, then perhaps .gz or .zst, or .parquet, or which is a directory of
// such files (Files); edges may also be a list (IsList).
func Open(path string, f Format) (*Table, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	files, err := Files(path)
	if err != nil {
		return nil, err
	}
	open := openFile
	if files[0] != path {
		open = func(path string, f Format) (*Table, error) { return openFolder(path, files, f) }
	}
	t, err := open(path, f)
	if err == nil {
		t.onlyUTF8()
	}
	return t, err
}

// openFile opens a table in one file.
func openFile(path string, f Format) (*Table, error) {
	p, err := Unpack(path)
	if err != nil {
		return nil, err
	}
	t := &Table{Packed: p, Unit: "line", format: f, index: -1}
	if err := t.open(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, t.Close()))
	}
	return t, nil
}

// open chooses the reader by the suffix of the decompressed file.
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
	case t.format.Edges && IsList(t.Path):
		err = t.openList()
	default:
		err = fmt.Errorf("the name of a table must end in .csv or .tsv, with .gz or .zst after it if it is packed, "+
			"or in .parquet (got %q); %s", filepath.Ext(t.Plain), WayOut)
	}
	if err != nil {
		return err
	}
	return t.checkColumns()
}

// Leave allows any content in unused columns; used reports whether a column is used.
func (t *Table) Leave(used func(column int) bool) {
	t.left = make([]bool, len(t.Columns))
	for k := range t.left {
		t.left[k] = !used(k)
	}
}

// onlyUTF8 makes Read refuse text that is not UTF-8, which would change when it is stored and read again, and unify
// texts that look alike (tidyText).
func (t *Table) onlyUTF8() {
	read := t.Read
	t.Read = func() ([]string, int, error) {
		cells, line, err := read()
		for k, c := range cells {
			if k < len(t.left) && t.left[k] && (len(c) > maxCell || !utf8.ValidString(c)) {
				cells[k] = ""
				continue
			}
			if len(c) > maxCell {
				return cells, line, t.Fault(line, k, "a cell must have at most %d bytes (got %d)", maxCell, len(c))
			}
			if !utf8.ValidString(c) {
				remedy := "option encoding names another"
				if t.Unit == "row" { // Parquet has text in UTF-8, and bytes
					remedy = "ignore the column, or write it as text or numbers"
				}
				return cells, line, t.Fault(line, k, "text must be UTF-8 (got %.40q); %s", c, remedy)
			}
			if t.Charset == "utf-16" && strings.ContainsRune(c, utf8.RuneError) {
				return cells, line, t.Fault(line, k, "text must be UTF-16 (got %.40q)", c)
			}
			cells[k] = tidyText(c)
		}
		return cells, line, err
	}
}

// openCSV opens a text with the usual delimiter of its suffix, unless the format or the first line has another.
func (t *Table) openCSV(usual rune) error {
	if err := t.decode(); err != nil {
		return err
	}
	b := bufio.NewReaderSize(t.Reader, 1<<16)
	if mark, err := b.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := b.Discard(3); err != nil {
			return err
		}
	}
	before, err := t.separator(b)
	if err != nil {
		return err
	}
	row := &bounded{r: io.MultiReader(strings.NewReader(before), b), left: maxLine}
	c := csv.NewReader(row)
	if t.Comma == 0 {
		if t.Comma, err = t.delimiter(b, usual); err != nil {
			return err
		}
	}
	c.Comma, c.ReuseRecord = t.Comma, true
	c.FieldsPerRecord = -1
	header, err := filled(c)
	if err == io.EOF {
		return errEmpty
	}
	if err != nil {
		return err
	}
	t.Columns, c.FieldsPerRecord = slices.Clone(header), len(header)
	if t.Columns[0] == "" && !t.format.NoHeader {
		t.index = 0
	}
	var first []string
	line, _ := c.FieldPos(0)
	if t.unnamed = t.format.NoHeader; t.unnamed {
		first = t.Columns
		t.Columns = make([]string, len(first))
		for k := range first {
			t.Columns[k] = strconv.Itoa(k + 1)
		}
	}
	t.Read = func() ([]string, int, error) {
		if cells := first; cells != nil {
			first = nil
			return cells, line, nil
		}
		row.left = maxLine
		cells, err := filled(c)
		if errors.Is(err, errLong) {
			return nil, 0, fmt.Errorf("after line %d: %w", line, err)
		}
		if fault := t.unclosed(c, cells, err); fault != nil && t.format.Faults != nil && t.format.Faults.Skip {
			return nil, 0, errors.New(fault.Text) // more than its row would be lost
		} else if fault != nil {
			return cells, fault.Line, fault
		}
		var wrong *csv.ParseError
		if errors.As(err, &wrong) {
			text := err.Error()
			if errors.Is(wrong.Err, csv.ErrFieldCount) {
				text = fmt.Sprintf("there must be %d cells, as many as names of columns (got %d)", len(t.Columns),
					len(cells))
			}
			return cells, wrong.StartLine, &RowFault{Path: t.Path, Unit: t.Unit, Line: wrong.StartLine, Text: text}
		}
		if err != nil {
			return nil, 0, err
		}
		line, _ = c.FieldPos(0)
		return cells, line, nil
	}
	return nil
}

// errLong is the error of a row that is too long to be one.
var errLong = fmt.Errorf("a row must have at most %d MiB; a quote that does not close makes one of all that follow",
	maxLine>>20)

// bounded is a reader with a bound on each row: compressed data may decompress to any length.
type bounded struct {
	r    io.Reader
	left int // bytes
}

// Read ends a row that is longer than its bound before more of it is decompressed.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// errEmpty is the error of a text without a line.
var errEmpty = errors.New("the file is empty; its first line must name the columns")

// separator reads Excel's line sep=; before the names of the columns, if b begins with it, and sets the delimiter. It
// returns a blank line instead, so that lines are counted as in the file.
func (t *Table) separator(b *bufio.Reader) (before string, err error) {
	head, _ := b.Peek(16)
	line, _, ended := strings.Cut(string(head), "\n")
	text := strings.Trim(strings.TrimSuffix(line, "\r"), `"`)
	if !ended || len(text) < 5 || !strings.EqualFold(text[:4], "sep=") || utf8.RuneCountInString(text[4:]) != 1 {
		return "", nil
	}
	t.Comma, err = t.format.comma([]rune(text[4:])[0])
	_, discarding := b.Discard(len(line) + 1)
	return "\n", errors.Join(err, discarding)
}

// filled returns the next row that has more than delimiters: spreadsheets write such rows at the end.
func filled(c *csv.Reader) ([]string, error) {
	for {
		cells, err := c.Read()
		if len(cells) < 2 || err != nil && !errors.Is(err, csv.ErrFieldCount) ||
			slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) != "" }) {
			return cells, err
		}
	}
}

// unclosed returns a fault if a quote in the row that c read with err does not close in its row and includes other
// rows. They count as rows if they have as many cells, and no blank after a delimiter as in prose.
func (t *Table) unclosed(c *csv.Reader, cells []string, err error) *RowFault {
	var wrong *csv.ParseError
	if err != nil && !errors.As(err, &wrong) {
		return nil
	}
	opens := 0 // lines after the first one of the row
	fault := func(until int) *RowFault {
		line := 0
		if wrong != nil {
			line = wrong.StartLine
		} else {
			line, _ = c.FieldPos(0)
		}
		return &RowFault{Path: t.Path, Unit: t.Unit, Line: line + opens, Text: fmt.Sprintf(
			"the quote that opens on line %d must close in its row (it goes on to line %d): "+
				"close it, or double it if it belongs to the text",
			line+opens, line+until)}
	}
	n, comma := max(c.FieldsPerRecord, 2), string(t.Comma)
	for k, cell := range cells {
		if !strings.Contains(cell, "\n") {
			continue
		}
		text := strings.Split(cell, "\n")
		last := len(text) - 1
		rows := 1+strings.Count(text[0], comma) == n-k && !strings.Contains(cell, comma+" ")
		for _, row := range text[1:last] {
			rows = rows && 1+strings.Count(row, comma) == n
		}
		switch ends := strings.Count(text[last], comma); {
		case rows && err == nil && last > 1 && ends == k, rows && err != nil && (last > 1 || ends > 0):
			return fault(opens + last)
		}
		opens += last
	}
	if errors.Is(err, csv.ErrQuote) && wrong.Line > wrong.StartLine+opens {
		return fault(wrong.Line - wrong.StartLine)
	}
	return nil
}

// checkColumns refuses a name that occurs twice. Columns without a name, which some programs write, are never used,
// except pandas' index as the names of the nodes.
func (t *Table) checkColumns() error {
	t.place = make(map[string]int, len(t.Columns))
	called := map[string]int{}
	for _, name := range t.Columns {
		if !utf8.ValidString(name) {
			return fmt.Errorf("names of columns must be UTF-8 (got %.40q)", name)
		}
		called[tidyText(name)]++
	}
	for k, name := range t.Columns {
		if name = tidyText(name); called[name] == 1 { // else blanks distinguish the columns
			t.Columns[k] = name
		}
	}
	for k, name := range t.Columns {
		if len(name) > maxCell {
			return fmt.Errorf("names of columns must have at most %d bytes (got %d)", maxCell, len(name))
		}
		if name == "" {
			continue
		}
		if _, ok := t.place[name]; ok {
			return fmt.Errorf("column %s occurs twice: rename one%s", name, t.headerHint())
		}
		t.place[name] = k
	}
	if t.format.Edges && len(t.Columns) > 1 && (IsList(t.Path) || t.unnamed) {
		t.place["source"], t.place["target"] = 0, 1
		return nil
	}
	// Names that Gephi, igraph and others use for the columns, in any case; the first one that occurs.
	for name, also := range usualNames {
		if _, ok := t.place[name]; ok || (name == "id") == t.format.Edges {
			continue
		}
		for _, other := range also {
			if at := slices.IndexFunc(t.Columns, func(c string) bool { return strings.EqualFold(c, other) }); at >= 0 {
				t.place[name] = at
				break
			}
		}
	}
	return nil
}

var usualNames = map[string][]string{
	"id": {"id"}, "source": {"source", "src", "from"}, "target": {"target", "dst", "to"},
}

// usual reports whether other, in any case, is a usual name of the column called name.
func usual(name, other string) bool { return slices.Contains(usualNames[name], strings.ToLower(other)) }

// headerHint returns what to do about a table whose first line has a number among the names of columns, else "".
func (t *Table) headerHint() string {
	if !t.unnamed && slices.ContainsFunc(t.Columns, func(name string) bool { _, ok := Number(name); return ok }) {
		return "; if the first line is a row, option no-header numbers the columns from 1"
	}
	return ""
}

// Each calls f with the cells and line of every row; the cells are valid until f returns. If f
// returns an error, the format's Faults decide whether the next row follows.
func (t *Table) Each(f func(cells []string, line int) error) error {
	faults := t.format.Faults
	for {
		cells, line, err := t.Read()
		if err == io.EOF {
			return nil
		}
		if faults.has(t.Path, line) {
			continue
		}
		if err == nil {
			err = f(cells, line)
		}
		var fault *RowFault
		switch {
		case err == nil:
		case faults != nil && errors.As(err, &fault):
			if err := faults.add(fault, cells); err != nil {
				return err
			}
		case errors.As(err, &fault):
			return err
		case cells == nil:
			return fmt.Errorf("%s: %w", t.Path, err)
		default:
			return err
		}
	}
}

// NameColumn returns the column of the rows' names if the user names none: id, or else pandas' index.
func (t *Table) NameColumn() string {
	at := t.Find("id")
	if at >= 0 {
		return t.Columns[at]
	}
	if t.unnamed {
		return "1"
	}
	if t.index >= 0 {
		if name := t.Columns[t.index]; name != "" {
			return name
		}
		return indexName
	}
	return "id"
}

// Column returns the index of the column of that name; flag is the flag with which the user can choose another one.
func (t *Table) Column(name, flag string) (int, error) {
	at := t.Find(name)
	if at < 0 {
		names := t.Columns
		if len(names) > 100 {
			names = append(slices.Clone(names[:100]), fmt.Sprintf("and %d more", len(t.Columns)-100))
		}
		hint := NewSpellings(t.Columns).Must(name)
		if hint != "" {
			hint = ": it must be " + hint
		}
		return -1, fmt.Errorf("%s: no column %q (%s)%s; its columns are %s%s", t.Path, name, flag, hint,
			strings.Join(names, ", "), t.headerHint())
	}
	return at, nil
}

// Find returns the index of the column of that name, or −1.
func (t *Table) Find(name string) int {
	if name == "" {
		return -1
	}
	if at, ok := t.place[name]; ok {
		return at
	}
	name = tidyText(name)
	if at, ok := t.place[name]; ok {
		return at
	}
	if usual := strings.ToLower(name); usual == "id" || usual == "source" || usual == "target" {
		if at, ok := t.place[usual]; ok {
			return at
		}
	}
	if name == indexName {
		return t.index
	}
	at := slices.Index(t.first, name)
	t.named = t.named || at >= 0
	return at
}

// Fault returns an error that names the file, the line and the column.
func (t *Table) Fault(line, column int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if t.parts != nil {
		text += t.parts.at(line)
	}
	return &RowFault{Path: t.Path, Unit: t.Unit, Line: line, Column: t.Columns[column], Text: text}
}

// Weight reads the weight of an edge.
func (t *Table) Weight(cells []string, line, at int) (float32, error) {
	v, ok := t.Number(cells[at])
	if w := float32(v); ok && w > 0 && w <= math.MaxFloat32 {
		return w, nil
	}
	return 0, t.Fault(line, at, "weight must be a number above 0, at most %.2g (got %.40q)%s", math.MaxFloat32,
		cells[at],
		t.NumberHint(cells[at]))
}

// NumberHint returns what to do about a cell that must be a number but is written in another format, else "".
func (t *Table) NumberHint(cell string) string {
	comma := !t.format.DecimalComma && commaNumber(cell)
	switch {
	case comma && Dressed(cell):
		return "; write it without thousands separators; a decimal comma needs option decimal-comma"
	case Dressed(cell):
		return "; write it without thousands separators, % and currency"
	case comma:
		return "; a decimal comma needs option decimal-comma"
	}
	return ""
}

// grouped matches digits, also in groups of three with a separator between them, and a fraction.
var grouped = regexp.MustCompile(`^(\d{1,3}([,.'’_\s\x{a0}\x{202f}]\d{3})+|\d+)([.,]\d+)?$`)

// Dressed reports whether a cell is a number for people: with thousands separators, a % or a currency sign.
func Dressed(cell string) bool {
	sign := func(r rune) bool {
		return unicode.Is(unicode.Sc, r) || r == '%' || r == '‰' || unicode.IsSpace(r)
	}
	cell = strings.TrimSpace(cell)
	plain := strings.TrimFunc(strings.TrimLeft(strings.TrimLeftFunc(cell, sign), "+-−"), sign)
	m := grouped.FindStringSubmatch(plain)
	return m != nil && (m[2] != "" || strings.ContainsFunc(cell, sign))
}

// Cell returns a cell, or "" for the format's texts that mean that there is no value.
func (t *Table) Cell(cell string) string {
	for _, text := range t.format.Missing {
		if strings.EqualFold(strings.TrimSpace(cell), strings.TrimSpace(text)) {
			return ""
		}
	}
	return cell
}

// Largest bounds the size of numbers in tables, so that sums of their squares are finite.
const Largest = 1e140

// Number reads a number of at most Largest in size as the table's format writes it.
func (t *Table) Number(cell string) (float64, bool) {
	cell, ok := t.pointed(cell)
	if !ok {
		return 0, false
	}
	return Number(cell)
}

// TooLarge reports whether a cell is an infinite number, or one above Largest in size.
func (t *Table) TooLarge(cell string) bool {
	cell, ok := t.pointed(cell)
	if !ok {
		return false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && math.Abs(v) > Largest
}

// pointed returns a number of the table's format with a decimal point.
func (t *Table) pointed(cell string) (string, bool) {
	// If commas separate cells, a number without a comma has no decimal comma.
	if t.format.DecimalComma && (t.Unit == "line" || t.Comma != 0) && (t.Comma != ',' || strings.Contains(cell, ",")) {
		return decimalPoint(cell)
	}
	return cell, true
}

// decimalPoint turns 1.234,5 into 1234.5; points may only precede groups of three digits.
func decimalPoint(cell string) (string, bool) {
	whole, rest, comma := strings.Cut(strings.TrimSpace(cell), ",")
	groups := strings.Split(whole, ".")
	for k, g := range groups {
		if k > 0 && (len(g) != 3 || strings.Trim(g, "0123456789") != "") {
			return "", false
		}
	}
	if first := strings.TrimLeft(groups[0], "+-"); len(groups) > 1 && (first == "" || len(first) > 3) {
		return "", false
	}
	if strings.ContainsAny(rest, ",.") {
		return "", false
	}
	whole = strings.Join(groups, "")
	if !comma {
		return whole, true
	}
	return whole + "." + rest, true
}

// commaNumber reports whether a cell is a number with a decimal comma but not with a point.
func commaNumber(cell string) bool {
	text, ok := decimalPoint(cell)
	if !ok || !strings.Contains(cell, ",") {
		return false
	}
	_, ok = Number(text)
	return ok
}

// Number reads a number of at most Largest in size with a decimal point.
func Number(cell string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return v, err == nil && math.Abs(v) <= Largest
}
