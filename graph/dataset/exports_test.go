package dataset

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// What pandas writes is the same data set from CSV in UTF-8 and UTF-16 and from Parquet, and what
// networkx writes a list of edges (testdata/exports.py).
func TestExports(t *testing.T) {
	file := func(name string) string { return filepath.Join("testdata", name) }
	want, err := Import(ImportConfig{Name: "frame", Nodes: file("frame.parquet"), Label: "class"})
	if err != nil {
		t.Fatal(err)
	}
	if want.N() != 40 || want.IDs[39] != "p39" || want.X.Cols() != 5+8+7+3+2+1 { // seen and count have missing cells
		t.Errorf("%d nodes, %d features, %q", want.N(), want.X.Cols(), want.IDs)
	}
	for _, name := range []string{"frame.csv", "frame.utf16.csv"} {
		if got, err := Import(ImportConfig{Name: "frame", Nodes: file(name), Label: "class"}); err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v (%v)\nwant %+v", name, got, err, want)
		}
	}
	lists, f, err := ImportConfig{Nodes: file("lists.parquet"), Label: "class"}.Read()
	if err != nil || lists.IDs[39] != "39" || f.Columns[0].Name != "vector[0]" || f.Columns[1].Kind != "numeric" ||
		f.Columns[2].Values != 2 {
		t.Errorf("%+v, %+v, %v", lists, f, err)
	}
	if tags, err := Import(ImportConfig{Nodes: file("lists.parquet"), Label: "tags", Multi: true}); err != nil ||
		!slices.Equal(tags.Labels.Bits[:4], []uint8{1, 0, 1, 1}) {
		t.Errorf("%v, %v", tags, err)
	}
	friends, err := Import(ImportConfig{Nodes: file("friends.csv"), Edges: file("friends.edgelist"), Label: "class",
		Weight: "3"})
	if err != nil || friends.N() != 10 || friends.Adj.NumEdges() != 36 {
		t.Errorf("%+v, %v", friends, err)
	}
}
