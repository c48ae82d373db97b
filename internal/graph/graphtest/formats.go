package graphtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// Formats is the graph that graph/dataset/testdata/formats.py wrote in every format.
type Formats struct {
	Edges   [][2]int32  `json:"edges"`
	Weights []float32   `json:"weights"`
	X       [][]float32 `json:"x"`
	Y       []int32     `json:"y"`
	Multi   [][]uint8   `json:"multi"`
	Split   [][]int     `json:"split"`
}

// ReadFormats reads the graph from the folder of its files.
func ReadFormats(t testing.TB, folder string) (f Formats) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, "expected.json"))
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Adjacency is built only from the edges, not by the readers.
func (f Formats) Adjacency(t testing.TB, weighted bool) graph.CSR {
	t.Helper()
	var src, dst []int32
	for _, e := range f.Edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	var weight []float32
	if weighted {
		weight = f.Weights
	}
	adj, err := graph.FromEdges(len(f.Y), src, dst, weight, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	return adj
}

// Refused fails unless err contains all of want.
func Refused(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, must contain %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error must contain %q (got %q)", w, err)
		}
	}
}
