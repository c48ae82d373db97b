package edgelist

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// lists writes the sample as text and tables next to copies of the golden files, and returns the folder.
func lists(t testing.TB, s graphtest.Formats) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var csv, named, packed bytes.Buffer
	named.WriteString("from,weight,to\n")
	z := gzip.NewWriter(&packed)
	for k, e := range s.Edges {
		fmt.Fprintf(&csv, "%d,%d,%v\n", e[0], e[1], s.Weights[k])
		fmt.Fprintf(&named, "%d,%v,%d\n", e[0], s.Weights[k], e[1])
		fmt.Fprintln(z, e[0], e[1])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put("bare.csv", csv.Bytes())
	put("named.csv", named.Bytes())
	put("packed.el.gz", packed.Bytes())
	for _, name := range []string{"graph.el", "graph.el.zst", "graph.parquet"} {
		b, err := os.ReadFile(filepath.Join("../../../../graph/dataset/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		put(name, b)
	}
	return dir
}

// TestReadEdges reads the same graph in every format, with and without weights.
func TestReadEdges(t *testing.T) {
	s := graphtest.ReadFormats(t, "../../../../graph/dataset/testdata")
	dir := lists(t, s)
	for _, c := range []struct{ file, weight string }{
		{"graph.el", "3"}, {"graph.el.zst", "3"}, {"graph.parquet", "weight"}, {"packed.el.gz", ""}, {"bare.csv", "3"},
		{"named.csv", "weight"},
	} {
		for _, weight := range []string{"", c.weight} {
			cfg := Config{Path: filepath.Join(dir, c.file), Weight: weight, Strict: true}
			if c.file == "named.csv" {
				cfg.Source, cfg.Target = "from", "to"
			}
			g, _, err := Read(cfg)
			if err != nil {
				t.Errorf("%s, weight %q: %v", c.file, weight, err)
				continue
			}
			if want := s.Adjacency(t, weight != ""); !reflect.DeepEqual(g.Adj, want) {
				t.Errorf("%s, weight %q: read %v, want %v", c.file, weight, g.Adj, want)
			}
			if err := g.Valid(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestBatches reads the same edges in batches, more than once.
func TestBatches(t *testing.T) {
	s := graphtest.ReadFormats(t, "../../../../graph/dataset/testdata")
	c := Config{Path: filepath.Join(lists(t, s), "graph.el")}
	if n, e, err := c.Size(); err != nil || n != len(s.Y) || e != int64(len(s.Edges)) {
		t.Errorf("%d nodes and %d edges (%v), want %d and %d", n, e, err, len(s.Y), len(s.Edges))
	}
	for range 2 {
		var edges [][2]int32
		if err := c.Batches(func(src, dst []int32) error {
			for k := range src {
				edges = append(edges, [2]int32{src[k], dst[k]})
			}
			return nil
		}); err != nil || !reflect.DeepEqual(edges, s.Edges) {
			t.Errorf("edges %v (%v), want %v", edges, err, s.Edges)
		}
	}
	stop := errors.New("enough")
	if err := c.Batches(func(_, _ []int32) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if err := (Config{Path: "../../../../graph/dataset/testdata/graph.el", Nodes: 3}).Batches(func(_, _ []int32) error {
		return nil
	}); err != nil {
		t.Error(err) // Size compares with Nodes
	}
	_, _, err := Config{Path: "../../../../graph/dataset/testdata/graph.el", Nodes: 3}.Size()
	graphtest.Refused(t, err, "graph.el", "node must be 0 to 2 (got 29)")
}

func TestReadEdgesFaults(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		cfg              Config
		want             []string
	}{
		{name: "suffix", file: "a.foo", want: []string{"a.foo", `format of edges must be text, csv, tsv, parquet or ` +
			`npz, by option edge-format or the name's suffix (got "foo")`, "python.md"}},
		{name: "one column", file: "a.el", text: "1 2\n3\n",
			want: []string{"a.el", "line 2", "there must be at least 2 columns (got 1)"}},
		{name: "no number", file: "a.el", text: "1 x\n",
			want: []string{"line 1", "column 2", `must be the number of a node (got "x")`}},
		{name: "negative", file: "a.el", text: "1 -2\n", want: []string{"line 1", `"-2"`}},
		{name: "too large", file: "a.el", text: "\n1 4294967296\n",
			want: []string{"line 2", "line 2: node must be 0 to 2147483646 (got 4294967296)"}},
		{name: "wraps around", file: "a.el", text: "1 18446744073709551617\n", want: []string{"line 1",
			`must be the number of a node, at most 9223372036854775807 (got "18446744073709551617")`}},
		{name: "a gap", file: "a.el", text: "1 2000000000\n", want: []string{"2000000000 nodes and 1 edges"}},
		{name: "beyond the nodes", file: "a.el", text: "0 2\n", cfg: Config{Nodes: 2},
			want: []string{"line 1", "line 1: node must be 0 to 1 (got 2)"}},
		{name: "weight must be a finite number above 0 (got 0)", file: "a.el", text: "1 2 0\n",
			cfg: Config{Weight: "3"}, want: []string{"line 1", "weight must be a finite number above 0 (got 0)"}},
		{name: "weight must be a finite number above 0 (got NaN)", file: "a.el", text: "1 2 nan\n",
			cfg: Config{Weight: "3"}, want: []string{"line 1", "weight must be a finite number above 0 (got NaN)"}},
		{name: "a weight beyond floats", file: "a.el", text: "1 2 1e39\n", cfg: Config{Weight: "3"},
			want: []string{"line 1", "column 3", `weight must be a number above 0, at most 3.4e+38 (got "1e39")`}},
		{name: "name of a column", file: "a.el", text: "1 2\n", cfg: Config{Source: "from"},
			want: []string{`"from"`, "number"}},
		{name: "the same column", file: "a.el", text: "1 2\n", cfg: Config{Source: "2"},
			want: []string{"both in column 2"}},
		{name: "loop", file: "a.el", text: "1 2\n2 2\n", cfg: Config{Strict: true},
			want: []string{"line 2", "node 2 is joined to itself"}},
		{name: "repeat", file: "a.el", text: "1 2\n2 1\n0 1\n1 2\n", cfg: Config{Strict: true},
			want: []string{"line 4", "from 1 to 2"}},
		{name: "not gzip", file: "a.el.gz", text: "1 2\n", want: []string{"a.el.gz", "gzip"}},
		{name: "not zstd", file: "a.el.zst", text: "1 2\n3 4\n", want: []string{"a.el.zst", "magic"}},
		{name: "names", file: "a.csv", text: "source,target\na,b\n",
			want: []string{"line 2", "column source", `"a"`, "table"}},
		{name: "no columns", file: "a.csv", text: "a,b\n1,2\n", want: []string{`"source"`, "a, b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Path = filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(c.cfg.Path, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			_, _, err := Read(c.cfg)
			graphtest.Refused(t, err, c.want...)
		})
	}
}

// TestFolderOfEdges: a directory of tables is one list.
func TestFolderOfEdges(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"_SUCCESS": "", "part-0.csv": "source,target\n0,1\n1,2\n",
		"part-1.csv": "source,target\n2,3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if nodes, edges, err := (Config{Path: dir}).Size(); nodes != 4 || edges != 3 || err != nil {
		t.Errorf("%d nodes and %d edges (%v), must be 4 and 3", nodes, edges, err)
	}
}
