package dataset

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

// TestWarned: what a column that is no column of numbers looks like is named, as is what trains to nothing.
func TestWarned(t *testing.T) {
	dir := t.TempDir()
	n := "id,income,share,cost,plain,const,big,note,outcome\n"
	for i := range 60 {
		class := []string{"ill", "well"}[i%2]
		big := fmt.Sprint(i)
		if i == 7 {
			big = "1e100"
		}
		n += fmt.Sprintf("p%d,\"%d,%03d\",%d.5 %%,\"$ 2,%03d.60\",%d,7,%s,seen %s in room %d today,%s\n", i, 20+i, i,
			i%7, i, i, big, class[:2], i, class)
	}
	path := filepath.Join(dir, "n.csv")
	if err := os.WriteFile(path, []byte(n), 0o600); err != nil {
		t.Fatal(err)
	}
	_, f, err := ImportConfig{Nodes: path, Label: "outcome", Text: []string{"note:64"}}.Read()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(f.Warnings, "\n")
	for _, want := range []string{
		`column income is dropped: 60 of 60 cells have a text that no other has; its cells look like numbers with ` +
			`thousands separators`,
		`such as "20,000": write plain numbers; if the comma is a decimal one, give option decimal-comma`,
		`column share becomes categories; its cells look like numbers with thousands separators, % or currency, ` +
			`such as "0.5 %"`,
		`column cost is dropped: 60 of 60 cells have a text that no other has; its cells look like numbers`,
		`column big has 1e+100 on line 9, over a million times as large as all others`,
		`column note alone predicts outcome for 100.0 % of the nodes`,
		`no node has an edge`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings %s\nmust have %q", all, want)
		}
	}
	if strings.Contains(all, "column plain") {
		t.Errorf("warnings %s of a column of numbers", all)
	}
	at := slices.IndexFunc(f.Columns, func(c table.ColumnFacts) bool { return c.Name == "const" })
	if f.Columns[at].Why != "the same in each row" {
		t.Errorf("column const: %+v", f.Columns[at])
	}
	_, err = Import(ImportConfig{Nodes: path, Label: "outcome", Ignore: []string{"big, bigger"}})
	graphtest.Refused(t, err, `no column "big, bigger" (ignored columns, option ignore)`)
	_, err = Import(ImportConfig{Nodes: path, Label: "outcome", Numeric: []string{"income"}})
	graphtest.Refused(t, err, `must be a number (got "20,000"); write it without thousands separators; `+
		`a decimal comma needs option decimal-comma`)
	_, err = Import(ImportConfig{Nodes: path, Label: "share", Regression: true})
	graphtest.Refused(t, err, `target must be a number (got "0.5 %"); write it without thousands separators, `+
		`% and currency`)
}

// TestArraysBomb: an array that does not fit the nodes is refused before it is unpacked.
func TestArraysBomb(t *testing.T) {
	zeros := make([]int64, 1<<21) // 16 MiB
	for _, name := range []string{"y", "edge_index", "train_mask", "ids_indptr"} {
		path := filepath.Join(t.TempDir(), "g.npz")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(f)
		put := func(as string, shape []int, values any) {
			if as == name {
				shape, values = []int{len(zeros)}, zeros
			}
			if err == nil {
				err = npy.Write(z, as, shape, values)
			}
		}
		put("y", []int{2}, []int64{0, 1})
		put("x", []int{2, 1}, []float32{1, 2})
		put("edge_index", []int{2, 1}, []int64{0, 1})
		put("train_mask", []int{2}, []bool{true, true})
		put("ids_indptr", []int{3}, []int64{0, 1, 2})
		put("ids", []int{2}, []uint8("ab"))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		f.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = Read(path, 0)
		runtime.ReadMemStats(&after)
		graphtest.Refused(t, err, "shape must be [")
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes allocated, want few", name, got)
		}
	}
}
