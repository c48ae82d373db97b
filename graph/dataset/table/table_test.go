package table

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// written returns the path of a new file of that name.
func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rows reads a table; each row begins with its line.
func rows(t testing.TB, path string) (columns []string, rows [][]string, err error) {
	t.Helper()
	table, err := Open(path, Format{})
	if err != nil {
		return nil, nil, err
	}
	err = table.Each(func(cells []string, line int) error {
		rows = append(rows, append([]string{fmt.Sprint(line)}, cells...))
		return nil
	})
	for range 2 { // closing twice is no fault
		if err := table.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return table.Columns, rows, err
}

// Quoted cells hold separators, quotes and line ends, which become blanks; a row's line is that of its first cell.
func TestText(t *testing.T) {
	want := [][]string{{"2", "p1", "a, b", ""}, {"3", "p2", "say \"hi\" again", "2"}, {"6", "p3", "", "3"}}
	csv := "\xef\xbb\xbfid,note,\np1,\"a, b\",\np2,\"say \"\"hi\"\"\nagain\", 2 \n\np3,,3\n"
	var gz, zst bytes.Buffer
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{gzip.NewWriter(&gz), z} {
		if _, err := io.WriteString(w, csv); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{
		"a.csv": []byte(csv), "windows.csv": []byte(strings.ReplaceAll(csv, "\n", "\r\n")), "a.csv.gz": gz.Bytes(),
		"a.csv.zst": zst.Bytes(),
		"a.tsv":     []byte("id\tnote\t\np1\ta, b\t\np2\t\"say \"\"hi\"\"\nagain\"\t 2 \n\np3\t\t3"),
	} {
		columns, got, err := rows(t, written(t, name, content))
		if err != nil || !reflect.DeepEqual(columns, []string{"id", "note", ""}) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: columns %q, rows %q, %v, must be %q", name, columns, got, err, want)
		}
	}
}

// An error names the file and, within it, line and column.
func TestTextRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty.csv", "", []string{"the file is empty"}},
		{"mark.csv", "\xef\xbb\xbf", []string{"the file is empty"}},
		{"twice.csv", "a,b,a\n", []string{"column a occurs twice"}},
		{"short.csv", "a,b\n1,2\n3\n", []string{"line 3: there must be 2 cells, as many as names of columns (got 1)"}},
		{"long.tsv", "a\tb\n1\t2\t3\n", []string{"line 2: there must be 2 cells, as many as names of columns (got 3)"}},
		{"quote.csv", "a,b\n1,2\n3,x\"y\n", []string{"line 3, column 4", "bare \""}},
		{"open.csv", "a,b\n1,\"2\n", []string{"line 2", "extraneous or missing \""}},
		{"a.txt", "a,b\n", []string{`must end in .csv or .tsv`, `(got ".txt")`, "python.md"}},
		{"a.csv.gz", "a,b\n1,2\n3,4\n", []string{"gzip: invalid header"}},
		{"a.csv.zst", "a,b\n", []string{"magic number mismatch"}},
		{"a.parquet.gz", "", []string{"EOF"}},
	} {
		path := written(t, c.name, []byte(c.text))
		_, _, err := rows(t, path)
		graphtest.Refused(t, err, append(c.want, path)...)
	}
	_, err := Open(filepath.Join(t.TempDir(), "none.csv"), Format{})
	graphtest.Refused(t, err, "none.csv", "no such file")
}

type cells struct {
	Text  *string  `parquet:"text,optional"`
	Flag  *bool    `parquet:"flag,optional"`
	Small *int32   `parquet:"small,optional"`
	Large *int64   `parquet:"large,optional"`
	Bits  *uint32  `parquet:"bits,optional"`
	More  *uint64  `parquet:"more,optional"`
	Short *float32 `parquet:"short,optional"`
	Long  *float64 `parquet:"long,optional"`
}

// Every type is written so that it reads back to the same value, and a null is the empty cell. Rows
// come in batches: there are more than fill one.
func TestParquet(t *testing.T) {
	values := cells{new("a,\"b\""), new(true), new(int32(-1 << 31)), new(int64(-1 << 63)), new(uint32(1<<32 - 1)),
		new(uint64(1<<64 - 1)), new(float32(0.1)), new(1e300)}
	list, want := []cells{}, [][]string{}
	for k := range 150 {
		if k%3 == 1 {
			list, want = append(list, cells{}), append(want, append([]string{fmt.Sprint(k + 1)}, make([]string, 8)...))
			continue
		}
		list = append(list, values)
		want = append(want, []string{fmt.Sprint(k + 1), "a,\"b\"", "true", "-2147483648", "-9223372036854775808",
			"4294967295", "18446744073709551615", "0.1", "1e+300"})
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, list); err != nil {
		t.Fatal(err)
	}
	path := written(t, "a.parquet", b.Bytes())
	columns, got, err := rows(t, path)
	if err != nil || !reflect.DeepEqual(columns,
		[]string{"text", "flag", "small", "large", "bits", "more", "short", "long"}) || !reflect.DeepEqual(got, want) {
		t.Errorf("columns %q, rows %q, %v", columns, got, err)
	}
	for n := 0; n < b.Len(); n += 1 + b.Len()/100 {
		_, got, err := rows(t, written(t, "cut.parquet", b.Bytes()[:n]))
		if err == nil || len(got) > len(want) || !strings.Contains(err.Error(), "cut.parquet") {
			t.Fatalf("%d of %d bytes: %d rows, %v", n, b.Len(), len(got), err)
		}
	}
}

func TestParquetRefused(t *testing.T) {
	for want, write := range map[string]func(io.Writer) error{
		"it must end in PAR1": func(w io.Writer) error {
			_, err := io.WriteString(w, "id,age\n1,2\n")
			return err
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		_, _, err := rows(t, written(t, "a.parquet", b.Bytes()))
		graphtest.Refused(t, err, want, "a.parquet")
	}
}

// TestParquetGroups: a group becomes a column for each field; what cannot be read is empty, and said.
func TestParquetGroups(t *testing.T) {
	type name struct {
		First string `parquet:"first"`
		Long  int32  `parquet:"long"`
	}
	type row struct {
		ID    string   `parquet:"id"`
		Of    name     `parquet:"of"`
		Stamp [16]byte `parquet:"stamp,uuid"`
		Deep  []name   `parquet:"deep"`
		Last  int32    `parquet:"last"`
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, []row{{"a", name{"x", 3}, [16]byte{1}, []name{{"p", 1}, {"q", 2}}, 7},
		{"b", name{"y", 4}, [16]byte{}, nil, 8}}); err != nil {
		t.Fatal(err)
	}
	table, err := Open(written(t, "a.parquet", b.Bytes()), Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if want := []string{"id", "of.first", "of.long", "stamp", "deep", "last"}; !slices.Equal(table.Columns, want) {
		t.Errorf("columns are %q, must be %q", table.Columns, want)
	}
	for _, want := range [][]string{{"a", "x", "3", "", "", "7"}, {"b", "y", "4", "", "", "8"}} {
		if got, _, err := table.Read(); err != nil || !slices.Equal(got, want) {
			t.Errorf("row is %q, must be %q (%v)", got, want, err)
		}
	}
	graphtest.Refused(t, table.Unread["stamp"], "type must be")
	graphtest.Refused(t, table.Unread["deep"], "list of lists")
	if len(table.Unread) != 2 {
		t.Errorf("unread are %v", table.Unread)
	}
}

// TestHalf: values of IEEE 754 binary16, as numpy.float16 has them.
func TestHalf(t *testing.T) {
	for b, want := range map[uint16]float32{0: 0, 0x3c00: 1, 0xc000: -2, 0x3555: 0.333251953125, 1: 0x1p-24,
		0x7bff: 65504, 0x8001: -0x1p-24, 0x7c00: float32(math.Inf(1))} {
		if got := half(b); got != want {
			t.Errorf("%04x is %v, must be %v", b, got, want)
		}
	}
	if v := half(0x7e00); v == v {
		t.Errorf("7e00 must not be a number (got %v)", v)
	}
}

func TestCells(t *testing.T) {
	table, err := Open(written(t, "a.csv", []byte("id,weight,\nx,0,1\n")), Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if at, err := table.Column("weight", "option weight"); err != nil || at != 1 {
		t.Errorf("weight is column %d, %v", at, err)
	}
	_, err = table.Column("mass", "option weight")
	graphtest.Refused(t, err, table.Path, `no column "mass" (option weight)`, "id, weight")
	if at := table.Find(""); at != -1 {
		t.Errorf("the column without a name is found at %d", at)
	}
	for _, cell := range []string{"0", "-1", "NaN", "Inf", "1e39", "", "x"} {
		_, err := table.Weight([]string{"x", cell, ""}, 7, 1)
		graphtest.Refused(t, err, table.Path, "line 7, column weight", fmt.Sprintf("(got %q)", cell))
	}
	if w, err := table.Weight([]string{"x", " 0.5 ", ""}, 7, 1); err != nil || w != 0.5 {
		t.Errorf("weight %v, %v", w, err)
	}
}

func TestLines(t *testing.T) {
	lines, err := OpenLines(written(t, "a.el", []byte("1 2\n\n3 4")))
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	for k, want := range []string{"1 2", "", "3 4"} {
		if got, err := lines.Next(); err != nil || string(got) != want || lines.Number != k+1 {
			t.Errorf("line %d is %q (number %d), %v", k+1, got, lines.Number, err)
		}
	}
	graphtest.Refused(t, lines.Fault("bad"), lines.Path, "line 3: bad")
	if _, err := lines.Next(); err != io.EOF {
		t.Errorf("after the last line: %v", err)
	}
	long, err := OpenLines(written(t, "long.el", append([]byte("1 2\n"), make([]byte, maxLine+1)...)))
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if _, err := long.Next(); err != nil {
		t.Error(err)
	}
	_, err = long.Next()
	graphtest.Refused(t, err, long.Path, "after line 1", "after line 1: a row must have at most 16 MiB")
}
