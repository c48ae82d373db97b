package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/text/encoding/unicode"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// read returns the cells of a table, row by row, and the table.
func read(t *testing.T, path string, f Format) (*Table, [][]string) {
	t.Helper()
	table, err := Open(path, f)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	rows := [][]string{table.Columns}
	if err := table.Each(func(cells []string, _ int) error {
		rows = append(rows, append([]string(nil), cells...))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return table, rows
}

// Every character set is found out and read to the same text, also where its first sign of what it
// is comes late.
func TestCharsets(t *testing.T) {
	text := "id;Name;Note\n" + strings.Repeat("a;Miller;plain\n", 9000) + "b;Jürgen Müßig;déjà vu\n"
	want := strings.Split("b;Jürgen Müßig;déjà vu", ";")
	latin := make([]byte, 0, len(text))
	for _, r := range text {
		latin = append(latin, byte(r))
	}
	wide := func(e unicode.Endianness, mark unicode.BOMPolicy) []byte {
		b, err := unicode.UTF16(e, mark).NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"utf8": {[]byte(text), "utf-8"}, "mark": {[]byte("\xef\xbb\xbf" + text), "utf-8"}, "latin1": {latin, "latin1"},
		"windows":         {append(bytes.Clone(latin), "c;\x80uro;x\n"...), "windows-1252"},
		"le":              {wide(unicode.LittleEndian, unicode.UseBOM), "utf-16"},
		"be":              {wide(unicode.BigEndian, unicode.UseBOM), "utf-16"},
		"le without mark": {wide(unicode.LittleEndian, unicode.IgnoreBOM), "utf-16"},
		"be without mark": {wide(unicode.BigEndian, unicode.IgnoreBOM), "utf-16"},
	} {
		table, rows := read(t, written(t, "a.csv", c.content), Format{})
		if table.Charset != c.want || table.Comma != ';' ||
			!reflect.DeepEqual(rows[0], []string{"id", "Name", "Note"}) || !reflect.DeepEqual(rows[9001], want) {
			t.Errorf("%s: read as %s, %q, last row %q", name, table.Charset, rows[0], rows[9001])
		}
		if c.want == "windows-1252" && rows[9002][1] != "€uro" {
			t.Errorf("%s: %q", name, rows[9002])
		}
	}
	// One damaged byte does not make UTF-8 something else.
	path := written(t, "a.csv", []byte(text+"c;\xffx;y\n"))
	table, err := Open(path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	graphtest.Refused(t, table.Each(func([]string, int) error { return nil }), "line 9003, column Name",
		`must be UTF-8 (got "\xffx")`)
	for _, f := range []Format{{Charset: "ebcdic"}, {Delimiter: ";;"}, {Delimiter: `"`}} {
		if _, err := Open(path, f); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}

func TestDelimiters(t *testing.T) {
	for text, want := range map[string]rune{"a,b;c\n1,2\n": ',', "a;b\n1;2\n": ';', "a|b|c;d\n1|2|3\n": '|',
		"a\tb\n1\t2\n": '\t', "\"x;y\",b\n1,2\n": ',', "alone\n1\n": ','} {
		table, err := Open(written(t, "a.csv", []byte(text)), Format{})
		if err != nil {
			t.Fatal(err)
		}
		if table.Comma != want {
			t.Errorf("%q: delimiter %q, must be %q", text, table.Comma, want)
		}
		table.Close()
	}
	if _, rows := read(t, written(t, "a.csv", []byte("a^b,c\n1^2,3\n")), Format{Delimiter: "^"}); len(rows[1]) != 2 ||
		rows[1][1] != "2,3" {
		t.Errorf("%q", rows)
	}
}

func TestDecimalComma(t *testing.T) {
	table, _ := read(t, written(t, "a.csv", []byte("a;b\n1;2\n")), Format{DecimalComma: true})
	for cell, want := range map[string]float64{"1,5": 1.5, "1.234,5": 1234.5, "-12.345.678": -12345678, " 7 ": 7,
		"0,001": 0.001, "1,5e3": 1500} {
		if v, ok := table.Number(cell); !ok || v != want {
			t.Errorf("%q is %v, %v", cell, v, ok)
		}
	}
	for _, cell := range []string{"1.5", "1,234.5", "1,2,3", "1234.567", ".123", "x", "1.23,4"} {
		if v, ok := table.Number(cell); ok {
			t.Errorf("%q is %v", cell, v)
		}
	}
	if table, _ := read(t, written(t, "b.csv", []byte("a,b\n1,2\n")), Format{DecimalComma: true}); true {
		if v, ok := table.Number("0.450"); !ok || v != 0.45 {
			t.Errorf("among commas 0.450 is %v, %v", v, ok)
		}
	}
}

// Names of rows as pandas writes them, to CSV and Parquet.
func TestPandasIndex(t *testing.T) {
	table, rows := read(t, written(t, "a.csv", []byte(",age\np1,40\np2,50\n")), Format{})
	if at, err := table.Column(table.NameColumn(), "ID"); err != nil || rows[2][at] != "p2" {
		t.Errorf("CSV: column %d, %v", at, err)
	}
	for _, c := range []struct{ meta, want string }{
		{`{"index_columns": ["__index_level_0__"]}`, "p2"}, {`{"index_columns": ["age"]}`, "50"},
		{`{"index_columns": [{"kind": "range", "start": 10, "stop": 14, "step": 2}]}`, "12"},
	} {
		var b bytes.Buffer
		type row struct {
			Age   int64  `parquet:"age"`
			Index string `parquet:"__index_level_0__"`
		}
		if err := parquet.Write(&b, []row{{40, "p1"}, {50, "p2"}},
			parquet.KeyValueMetadata("pandas", c.meta)); err != nil {
			t.Fatal(err)
		}
		table, rows := read(t, written(t, "a.parquet", b.Bytes()), Format{})
		if at, err := table.Column(table.NameColumn(), "ID"); err != nil || rows[2][at] != c.want {
			t.Errorf("%s: column %d of %q (%v), must be %s", c.meta, at, rows[2], err, c.want)
		}
	}
	if table, _ := read(t, written(t, "b.csv", []byte(",id\n0,a\n")), Format{}); table.NameColumn() != "id" {
		t.Errorf("the names are in %s", table.NameColumn())
	}
}

// Dates and times are written in ISO 8601, lists of numbers become columns, lists of texts one
// cell, categories (dictionaries) texts.
func TestParquetColumns(t *testing.T) {
	type row struct {
		Day    int32     `parquet:"day,date"`
		At     time.Time `parquet:"at,timestamp(microsecond)"`
		Kind   string    `parquet:"kind,dict"`
		Vector []float64 `parquet:"vector,list"`
		Plain  []int32   `parquet:"plain"`
		Tags   []string  `parquet:"tags,list"`
		Price  int64     `parquet:"price,decimal(2:10)"`
	}
	list := []row{
		{19813, time.Date(2024, 3, 31, 12, 30, 0, 500000000, time.UTC), "a", []float64{1, 2.5}, []int32{7},
			[]string{"x", "y"}, 12345},
		{-1, time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), "b", []float64{1234567, 1 << 53}, nil, nil, -5},
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, list); err != nil {
		t.Fatal(err)
	}
	_, rows := read(t, written(t, "a.parquet", b.Bytes()), Format{})
	want := [][]string{
		{"day", "at", "kind", "vector[0]", "vector[1]", "plain[0]", "tags", "price"},
		{"2024-03-31", "2024-03-31T12:30:00.5Z", "a", "1", "2.5", "7", "x;y", "123.45"},
		{"1969-12-31", "1969-12-31", "b", "1234567", "9.007199254740992e+15", "", "", "-0.05"},
	}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("read %q\nwant %q", rows, want)
	}
}

// Rows at fault are collected and left out, whatever makes them so.
func TestFaults(t *testing.T) {
	text := "id,v\n"
	for k := range 50 {
		text += fmt.Sprintf("n%d,%d\n", k, k)
	}
	path := written(t, "a.csv", []byte(strings.Replace(text, "n3,3", "n3,3,3", 1)))
	each := func(f *Faults, every int) (n int, err error) {
		table, err := Open(path, Format{Faults: f})
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		err = table.Each(func(_ []string, line int) error {
			if every > 0 && line%every == 0 {
				return table.Fault(line, 1, "odd")
			}
			n++
			return nil
		})
		return n, err
	}
	stop := &Faults{}
	if n, err := each(stop, 10); err != nil || n != 50-1-4-1 { // line 5 and 10, 20, 30, 40, 50
		t.Errorf("%d rows, %v", n, err)
	}
	graphtest.Refused(t, stop.Err(), "line 5", "as many as names of columns", "line 10, column v: odd",
		"line 50, column v: odd")
	if _, err := each(&Faults{}, 2); err == nil || !strings.Contains(err.Error(), "these are the first 20 faults") ||
		strings.Count(err.Error(), "\n") != 21 || !strings.Contains(err.Error(), "option on-error skip") {
		t.Errorf("%v", err)
	}
	skip := &Faults{Skip: true}
	for range 2 { // rows that are known are left out again, and are not counted again
		if n, err := each(skip, 10); err != nil || n != 44 || skip.Err() != nil || skip.Count(path) != 6 ||
			skip.Count("") != 6 {
			t.Errorf("%d rows, %d at fault, %v", n, skip.Count(path), err)
		}
	}
	var b bytes.Buffer
	if err := skip.Write(&b); err != nil || !strings.HasPrefix(b.String(), "file,line,column,fault,row\n") ||
		!strings.Contains(b.String(), path+",10,v,odd,n8,8\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
	if n, err := each(nil, 10); n != 3 || err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d rows, %v", n, err)
	}
}

// A reader that is told to stop does.
func TestWatch(t *testing.T) {
	stop := errors.New("stop")
	path := written(t, "a.csv", []byte("id,v\n"+strings.Repeat("abcdefghijklmnop,1\n", 1<<18)))
	seen := 0
	table, err := Open(path, Format{Charset: "utf-8", Watch: func(n int64) error {
		if seen++; seen == 2 {
			return stop
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Each(func([]string, int) error { return nil }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

// wideReader gives a table of n columns and one row.
func wideReader(n int) io.Reader {
	var b bytes.Buffer
	for line := range 2 {
		for k := range n {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "c%d", k+line)
		}
		b.WriteByte('\n')
	}
	return &b
}

// Twice the columns take about twice the steps: names are found by a table of them.
func TestManyColumns(t *testing.T) {
	n := 300_000
	text, err := io.ReadAll(wideReader(n))
	if err != nil {
		t.Fatal(err)
	}
	table, rows := read(t, written(t, "a.csv", text), Format{})
	for k := 0; k < n; k++ { // minutes, if each looked through all names
		if table.Find(fmt.Sprintf("c%d", k)) != k {
			t.Fatalf("column %d", k)
		}
	}
	if len(rows[1]) != n {
		t.Errorf("%d cells", len(rows[1]))
	}
}
