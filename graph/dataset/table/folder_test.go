package table

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
	if text := strings.Join(slices.Concat(got...), " "); text != "1 a 1 2 b\n 2 3 c 3" {
		t.Errorf("rows are %q", text)
	}
	if _, got, err := rows(t, folderOf(t, map[string]string{"a.csv": "id\n", "b.csv": "id\n"})); err != nil || got != nil {
		t.Errorf("a table without rows is %v, %v", got, err)
	}
}

// TestFolderRefused: what is wrong with one of the files is told with its name and the row in it.
func TestFolderRefused(t *testing.T) {
	nested := folderOf(t, map[string]string{"a.csv": "id\n1\n"})
	if err := os.Mkdir(filepath.Join(nested, "day=1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, dir := range map[string]string{
		"columns must be id, x, as in the files before (got id, y)": folderOf(t, map[string]string{"a.csv": "id,x\n1,2\n", "b.csv": "id,y\n1,2\n"}),
		"row 3, column x: text must be UTF-8":                       folderOf(t, map[string]string{"a.csv": "id,x\n1,2\n2,2\n", "b.csv": "id,x\n1,\xff\xff\n"}),
		"must have the files of a table (got none)":                 folderOf(t, map[string]string{"_SUCCESS": ""}),
		"got the directory day=1":                                   nested,
		"must end in .csv":                                          folderOf(t, map[string]string{"a.orc": "x"}),
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
