package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
)

// numbered writes a table of n numbered nodes and a ring of edges between them. With words it is
// sparse.
func numbered(t *testing.T, dir string, n int, words bool) (nodes, edges string) {
	t.Helper()
	var table, list strings.Builder
	table.WriteString("id,age,ward,class,site\n")
	for i := range n {
		age, ward := fmt.Sprint(20+i%7), fmt.Sprintf("w%d", i%2)
		if words {
			age = ""
			ward = fmt.Sprintf("w%d", i%40)
		}
		if i%5 == 0 {
			age = ""
		}
		fmt.Fprintf(&table, "%d,%s,%s,%s,%s\n", i, age, ward, []string{"a", "b", ""}[i%3],
			[]string{"north", "south"}[i%2])
		fmt.Fprintf(&list, "%d %d\n", i, (i+1)%n)
	}
	nodes, edges = filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "ring.el")
	for path, text := range map[string]string{nodes: table.String(), edges: list.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return nodes, edges
}

// TestTablesAreStored: tables read row by row give the same stored graph, byte for byte, as tables
// read into memory.
func TestTablesAreStored(t *testing.T) {
	t.Parallel()
	for _, words := range []bool{false, true} {
		dir := t.TempDir()
		nodes, edges := numbered(t, dir, 400, words)
		out := filepath.Join(dir, "web.graph")
		must(t, "import", "--nodes", nodes, "--edges", edges, "--label-column", "class", "--site-column", "site",
			"--name", "web", "-o", out)
		g, err := dataset.Import(dataset.ImportConfig{Name: "web", Nodes: nodes, Edges: edges, Label: "class",
			Site: "site", Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if sparse := g.X.Sparse != nil; sparse != words {
			t.Fatalf("sparse: %t, must be %t", sparse, words)
		}
		g.IDs = nil // they are their numbers
		if err := external.WriteGraph(filepath.Join(dir, "want.graph"), g); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(contents(t, out), contents(t, filepath.Join(dir, "want.graph"))) {
			t.Errorf("words %t: the stored graph is not what is read into memory", words)
		}
		parts := filepath.Join(dir, "parts")
		must(t, "partition", "--data", out, "--policy", "by-column", "-o", parts, "-q")
		must(t, "train", "--shards", parts, "--transport", "memory", "-q", "--out", filepath.Join(dir, "run"))
	}
}

// TestTablesAreRefused: faults of the tables name file and line, and leave no graph.
func TestTablesAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes, edges := numbered(t, dir, 30, false)
	text := string(contents(t, nodes))
	out := filepath.Join(dir, "web.graph")
	for _, c := range []struct {
		nodes, edges string
		want         []string
	}{
		{strings.Replace(text, "\n7,", "\n8,", 1), "",
			[]string{"bad.csv", "line 9, column id", `must be 7 (got "8")`, "numbered"}},
		{strings.Replace(text, "\n7,", "\nseven,", 1), "", []string{"bad.csv", "line 9", `must be 7 (got "seven")`}},
		{strings.Replace(text, "\n7,,", "\n7,old,", 1) + "30,x\n", "", []string{"bad.csv", "line 32"}},
		{text, "1 2\n3 99\n", []string{"bad.el", "node must be 0 to 29 (got 99)"}},
		{text, "1 2\n3 x\n", []string{"bad.el", "line 2"}},
		{"id,age\n", "", []string{"bad.csv", "no rows"}},
	} {
		bad := map[string]string{filepath.Join(dir, "bad.csv"): c.nodes, filepath.Join(dir, "bad.el"): c.edges}
		list := edges
		for path, text := range bad {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if c.edges != "" {
			list = filepath.Join(dir, "bad.el")
		}
		refuse(t, 2, c.want, "import", "--nodes", filepath.Join(dir, "bad.csv"), "--edges", list, "-o", out)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: a graph is left", c.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
