package table

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// folderOf writes files into a new directory.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFolder: a directory as Spark writes it is one table, in the order of its files' names.
func TestFolder(t *testing.T) {
	dir := folderOf(t, map[string]string{"_SUCCESS": "", ".part-00000.csv.crc": "x", "part-00000.csv": "id,x\n",
		"part-00001.csv": "id,x\na,1\n\"b\n\",2\n", "part-00002.csv": "id,x\n", "part-00010.csv": "id,x\nc,3\n"})
	columns, got, err := rows(t, dir)
	if err != nil || !slices.Equal(columns, []string{"id", "x"}) {
		t.Fatalf("columns are %v (%v), must be id, x", columns, err)
	}
	if text := strings.Join(slices.Concat(got...), " "); text != "1 a 1 2 b 2 3 c 3" {
		t.Errorf("rows are %q", text)
	}
	if _, got, err := rows(t, folderOf(t, map[string]string{"a.csv": "id\n", "b.csv": "id\n"})); err != nil ||
		got != nil {
		t.Errorf("a table without rows is %v, %v", got, err)
	}
}

// TestFolderEmptyParts: files without rows, wherever they are and however they are packed, have no say;
// alone they are refused.
func TestFolderEmptyParts(t *testing.T) {
	const head, row = "id,x\n", "id,x\na,1\n"
	for name, files := range map[string]map[string]string{
		"first": {"a.csv": "", "b.csv": row}, "last": {"a.csv": row, "b.csv": ""},
		"middle":  {"a.csv": row, "b.csv": "", "c.csv": "id,x\nb,2\n"},
		"packed":  {"a.csv.gz": "", "b.csv": row, "c.csv.zst": "", "d.parquet": ""},
		"blank":   {"a.csv": "\n\n", "b.csv": row},
		"mark":    {"a.csv": "\xef\xbb\xbf", "b.csv": row},
		"headers": {"a.csv": head, "b.csv": row, "c.csv": head, "d.csv": ""},
		"no row":  {"a.csv": head, "b.csv": ""}, "no row last": {"a.csv": "", "b.csv": head},
	} {
		columns, got, err := rows(t, folderOf(t, files))
		want := map[string]int{"middle": 2, "no row": 0, "no row last": 0}
		n, ok := want[name]
		if !ok {
			n = 1
		}
		if err != nil || !slices.Equal(columns, []string{"id", "x"}) || len(got) != n {
			t.Errorf("%s: columns %v, rows %v, %v", name, columns, got, err)
		}
	}
	_, _, err := rows(t, folderOf(t, map[string]string{"a.csv": "", "b.csv": ""}))
	if err == nil || !strings.Contains(err.Error(), "the file is empty") {
		t.Errorf("only empty files: %v", err)
	}
}

// TestSpreadsheet: Excel's line with the delimiter and rows of delimiters are no rows, and lines are counted as in
// the file.
func TestSpreadsheet(t *testing.T) {
	for name, text := range map[string]string{
		"sep":       "sep=;\r\nid;x\r\na;1\r\n;\r\n;\r\n",
		"mark":      "\xef\xbb\xbfsep=;\nid;x\na;1\n",
		"quoted":    "\"SEP=;\"\nid;x\na;1\n ; \n",
		"tab":       "sep=\t\nid\tx\na\t1\n",
		"odd":       "sep=#\nid#x\na#1\n",
		"wide":      "\nid,x\na,1\n,,,\n\"\",\"\"\n",
		"before":    ",,\nid,x\na,1\n",
		"utf-16":    "\xff\xfes\x00e\x00p\x00=\x00;\x00\n\x00i\x00d\x00;\x00x\x00\n\x00a\x00;\x001\x00\n\x00",
		"delimiter": "sep=;\nid|x\na|1\n",
	} {
		f := Format{Delimiter: map[string]string{"delimiter": "|"}[name]}
		table, err := Open(written(t, "a.csv", []byte(text)), f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := 0
		err = table.Each(func(cells []string, line int) error {
			if n++; line != 3 || !slices.Equal(cells, []string{"a", "1"}) {
				t.Errorf("%s: line %d is %q", name, line, cells)
			}
			return nil
		})
		if table.Close(); err != nil || n != 1 || !slices.Equal(table.Columns, []string{"id", "x"}) {
			t.Errorf("%s: %d rows, columns %q, %v", name, n, table.Columns, err)
		}
	}
}

// TestCharsetOfAnyLength: the character set is found in files of a few bytes and of many.
func TestCharsetOfAnyLength(t *testing.T) {
	for _, n := range []int{1, 2, 30, 1000, 1023, 1024, 1025, 40000} {
		text := "id,x\n" + strings.Repeat("é,1\n", n)
		for name, c := range map[string]*encoding.Encoder{
			"utf-16":  unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(),
			"utf-16 ": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder(),
			"latin1":  charmap.ISO8859_1.NewEncoder(), "utf-8": unicode.UTF8BOM.NewEncoder(),
		} {
			b, err := c.Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			table, err := Open(written(t, "a.csv", b), Format{})
			if err != nil {
				t.Fatal(err)
			}
			if cells, _, err := table.Read(); err != nil || cells[0] != "é" ||
				table.Charset != strings.TrimSpace(name) {
				t.Errorf("%s, %d rows: read as %s, %q, %v", name, n, table.Charset, cells, err)
			}
			table.Close()
		}
	}
}

// TestFolderRefused: what is wrong with one of the files is told with its name and the row in it.
func TestFolderRefused(t *testing.T) {
	nested := folderOf(t, map[string]string{"a.csv": "id\n1\n"})
	if err := os.Mkdir(filepath.Join(nested, "day=1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, dir := range map[string]string{
		"columns must be id, x, as in the files before (got id, y)": folderOf(t,
			map[string]string{"a.csv": "id,x\n1,2\n", "b.csv": "id,y\n1,2\n"}),
		"row 3, column x: text must be UTF-8": folderOf(t,
			map[string]string{"a.csv": "id,x\n1,2\n2,2\n", "b.csv": "id,x\n1,\xff\xff\n"}),
		"must have the files of a table (got none)": folderOf(t, map[string]string{"_SUCCESS": ""}),
		"got the directory day=1":                   nested,
		"must end in .csv":                          folderOf(t, map[string]string{"a.orc": "x"}),
	} {
		table, err := Open(dir, Format{Charset: "utf-8"})
		if err == nil {
			err = table.Each(func(cells []string, line int) error { return nil })
			table.Close()
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, must contain %q", err, text)
		}
	}
	table, err := Open(folderOf(t, map[string]string{"a.csv": "id,x\n1,2\n", "b.csv": "id,x\n1,2\n3,x\n"}), Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	err = table.Each(func(cells []string, line int) error {
		if cells[1] == "x" {
			return table.Fault(line, 1, "must be a number")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "row 3, column x: must be a number (row 2 of b.csv)") {
		t.Errorf("the fault is %v", err)
	}
}
