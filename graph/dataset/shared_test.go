package dataset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// sharedData returns the folder of the public graphs, or skips the test.
func sharedData(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("HEDDLE_DATA"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		data := filepath.Join(dir, "shared", "data")
		if _, err := os.Stat(data); err == nil {
			return data
		}
		if dir == filepath.Dir(dir) {
			t.Skip("SKIPPED: no public graphs; set HEDDLE_DATA to their folder")
		}
		dir = filepath.Dir(dir)
	}
}

// TestReadShared compares all public graphs with what their meta.json counts.
func TestReadShared(t *testing.T) {
	root := sharedData(t)
	dirs, err := filepath.Glob(filepath.Join(root, "*", arraysFile))
	if err != nil || len(dirs) != 19 {
		t.Fatalf("%d data sets in %s, want 19 (%v)", len(dirs), root, err)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(dir, metaFile))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Nodes       int
				Classes     int
				ClassCounts []int `json:"class_counts"`
				Unlabelled  int   `json:"unlabelled_nodes"`
				Features    struct{ Columns, Nonzero int }
				Graph       struct {
					Undirected int `json:"undirected_edges_without_loops"`
					Isolated   int `json:"isolated_nodes"`
				}
				Clients   []int `json:"client_counts"`
				Relations []int `json:"relation_edge_counts"`
				Split     struct {
					Splits int
					Train  any `json:"train_nodes"`
					Val    any `json:"val_nodes"`
					Test   any `json:"test_nodes"`
				}
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			last := want.Split.Splits - 1
			g, err := Read(dir, last)
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Adj.Valid(); err != nil {
				t.Error(err)
			}
			is := func(what string, got, want int) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
			is("nodes", g.N(), want.Nodes)
			is("classes", g.Labels.Classes, want.Classes)
			is("stored edges", g.Adj.NumEdges(), 2*want.Graph.Undirected)
			is("columns", g.X.Cols(), want.Features.Columns)
			if g.X.Sparse != nil {
				is("nonzero", g.X.Sparse.NNZ(), want.Features.Nonzero)
			}
			if r := len(want.Relations); r > 0 && g.Typed.Count() != r && g.Typed.Count() != 2*r {
				t.Errorf("%d relations, want %d, or with their reverses twice as many", g.Typed.Count(), r)
			}
			for r, n := range want.Relations {
				is("edges of "+g.Typed.Names[r], g.Typed.Adj.Relation(r, g.Typed.Count()).NumEdges(), n)
			}
			if err := g.Typed.Valid(&g.Adj); err != nil {
				t.Error(err)
			}
			isolated := 0
			for _, d := range g.Adj.Degrees() {
				if d == 0 {
					isolated++
				}
			}
			is("isolated", isolated, want.Graph.Isolated)
			counts, unlabelled := make([]int, want.Classes), 0
			for _, c := range g.Labels.Class {
				if c < 0 {
					unlabelled++
				} else {
					counts[c]++
				}
			}
			is("unlabelled", unlabelled, want.Unlabelled)
			for c := range counts {
				is("class", counts[c], want.ClassCounts[c])
			}
			split := make([]int, 4)
			for _, s := range g.Split {
				split[s]++
			}
			for s, n := range map[graph.Split]any{graph.Train: want.Split.Train, graph.Val: want.Split.Val,
				graph.Test: want.Split.Test} {
				if list, ok := n.([]any); ok {
					n = list[last]
				}
				count, _ := n.(float64)
				is("split", split[s], int(count))
			}
			is("sites", len(g.Sites), len(want.Clients))
			sites := make([]int, len(g.Sites))
			for _, s := range g.Site {
				sites[s]++
			}
			for s := range sites {
				is("site", sites[s], want.Clients[s])
			}
			if _, err := Read(dir, last+1); err == nil {
				t.Errorf("split %d of %d was read", last+1, last+1)
			}
		})
	}
}
