package dataset

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// TestImportList reads a list of numbers that are names in a table of nodes.
func TestImportList(t *testing.T) {
	dir := t.TempDir()
	nodes := filepath.Join(dir, "nodes.csv")
	if err := os.WriteFile(nodes, []byte("id,age\n70,1\n10,2\n5000000000,3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "e.el")
	if err := os.WriteFile(list, []byte("10 70\n70 10\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	g, err := Import(ImportConfig{Nodes: nodes, Edges: list})
	if err != nil {
		t.Fatal(err)
	}
	if want := (graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 1, 2, 2}, Col: []int32{1, 0}}); !reflect.DeepEqual(
		g.Adj, want) {
		t.Errorf("edges %v, want %v", g.Adj, want)
	}
	if err := os.WriteFile(list, []byte("10 70\n70 11\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Import(ImportConfig{Nodes: nodes, Edges: list})
	graphtest.Refused(t, err, "e.el", "line 2", "node must be a name in", "nodes.csv")
}

// TestReadEdgesRoundTrip stores what was read and reads it back.
func TestReadEdgesRoundTrip(t *testing.T) {
	g, _, err := edgelist.Read(edgelist.Config{Path: "testdata/graph.el", Weight: "3"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(dir, g); err != nil {
		t.Fatal(err)
	}
	back, err := Read(dir, 0)
	if err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read %+v, want %+v (%v)", back, g, err)
	}
}
