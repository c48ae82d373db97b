package edgelist

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/heddle-gnn/heddle/graph/graphtest"
)

// lists writes the sample as binary lists and text beside copies of the golden files, and returns
// the folder.
func lists(t testing.TB, s graphtest.Formats) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var el32, el64, wel32, wel64, csv, named bytes.Buffer
	named.WriteString("from,weight,to\n")
	for k, e := range s.Edges {
		w := s.Weights[k]
		for _, err := range []error{
			binary.Write(&el32, binary.LittleEndian, e), binary.Write(&el64, binary.LittleEndian, [2]int64{int64(e[0]), int64(e[1])}),
			binary.Write(&wel32, binary.LittleEndian, e), binary.Write(&wel32, binary.LittleEndian, w),
			binary.Write(&wel64, binary.LittleEndian, [2]int64{int64(e[0]), int64(e[1])}), binary.Write(&wel64, binary.LittleEndian, w),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&csv, "%d,%d,%v\n", e[0], e[1], w)
		fmt.Fprintf(&named, "%d,%v,%d\n", e[0], w, e[1])
	}
	put("b.el32", el32.Bytes())
	put("b.el64", el64.Bytes())
	put("b.u32", el32.Bytes())
	put("b.u64", el64.Bytes())
	put("b.wel32", wel32.Bytes())
	put("b.wel64", wel64.Bytes())
	put("bare.csv", csv.Bytes())
	put("named.csv", named.Bytes())
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(el32.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	put("b.el32.gz", packed.Bytes())
	for _, name := range []string{"graph.el", "graph.el.zst", "graph.mtx", "graph.parquet", "graph.v1.gr", "graph.v2.gr"} {
		b, err := os.ReadFile(filepath.Join("../testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		put(name, b)
	}
	return dir
}

// TestReadEdges reads the same graph in every format, with and without weights.
func TestReadEdges(t *testing.T) {
	s := graphtest.ReadFormats(t, "../testdata")
	dir := lists(t, s)
	for _, c := range []struct{ file, weight string }{
		{"graph.el", "3"}, {"graph.el.zst", "3"}, {"graph.mtx", "3"}, {"graph.parquet", "weight"}, {"graph.v1.gr", "u32"}, {"graph.v2.gr", "u32"},
		{"b.el32", ""}, {"b.el64", ""}, {"b.u32", ""}, {"b.u64", ""}, {"b.wel32", "3"}, {"b.wel64", "3"}, {"b.el32.gz", ""}, {"bare.csv", "3"}, {"named.csv", "weight"},
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
	s := graphtest.ReadFormats(t, "../testdata")
	c := Config{Path: filepath.Join(lists(t, s), "graph.v1.gr")}
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
	if err := (Config{Path: "../testdata/graph.el", Nodes: 3}).Batches(func(_, _ []int32) error { return nil }); err != nil {
		t.Error(err) // Size compares with Nodes
	}
	_, _, err := Config{Path: "../testdata/graph.el", Nodes: 3}.Size()
	graphtest.Refused(t, err, "graph.el", "node must be 0 to 2 (got 29)")
}

func TestReadEdgesFaults(t *testing.T) {
	galois := func(words ...uint64) string {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, words); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const mm = "%%MatrixMarket matrix coordinate "
	for _, c := range []struct {
		name, file, text string
		cfg              Config
		want             []string
	}{
		{name: "suffix", file: "a.foo", want: []string{"a.foo", `format of edges must be text, csv, tsv, parquet, el32, el64, wel32, wel64, gr, mtx or npz, given or as the name's suffix (got "foo")`, "mtx"}},
		{name: "one column", file: "a.el", text: "1 2\n3\n", want: []string{"a.el", "line 2", "there must be at least 2 columns (got 1)"}},
		{name: "no number", file: "a.el", text: "1 x\n", want: []string{"line 1", "column 2", `must be the number of a node (got "x")`}},
		{name: "negative", file: "a.el", text: "1 -2\n", want: []string{"line 1", `"-2"`}},
		{name: "too large", file: "a.el", text: "\n1 4294967296\n", want: []string{"line 2", "line 2: node must be 0 to 2147483646 (got 4294967296)"}},
		{name: "wraps around", file: "a.el", text: "1 18446744073709551617\n", want: []string{"line 1", `must be the number of a node, at most 9223372036854775807 (got "18446744073709551617")`}},
		{name: "a gap", file: "a.el", text: "1 2000000000\n", want: []string{"2000000001 nodes and 1 edges"}},
		{name: "beyond the nodes", file: "a.el", text: "1 2\n", cfg: Config{Nodes: 2}, want: []string{"line 1", "line 1: node must be 0 to 1 (got 2)"}},
		{name: "weight must be a finite number above 0 (got 0)", file: "a.el", text: "1 2 0\n", cfg: Config{Weight: "3"}, want: []string{"line 1", "weight must be a finite number above 0 (got 0)"}},
		{name: "weight must be a finite number above 0 (got NaN)", file: "a.el", text: "1 2 nan\n", cfg: Config{Weight: "3"}, want: []string{"line 1", "weight must be a finite number above 0 (got NaN)"}},
		{name: "a weight beyond floats", file: "a.el", text: "1 2 1e39\n", cfg: Config{Weight: "3"}, want: []string{"line 1", "column 3", `weight must be a number above 0, at most 3.4e+38 (got "1e39")`}},
		{name: "name of a column", file: "a.el", text: "1 2\n", cfg: Config{Source: "from"}, want: []string{`"from"`, "number"}},
		{name: "the same column", file: "a.el", text: "1 2\n", cfg: Config{Source: "2"}, want: []string{"both in column 2"}},
		{name: "loop", file: "a.el", text: "1 2\n2 2\n", cfg: Config{Strict: true}, want: []string{"line 2", "node 2 is joined to itself"}},
		{name: "repeat", file: "a.el", text: "1 2\n2 1\n0 1\n1 2\n", cfg: Config{Strict: true}, want: []string{"line 4", "from 1 to 2"}},
		{name: "not gzip", file: "a.el.gz", text: "1 2\n", want: []string{"a.el.gz", "gzip"}},
		{name: "not zstd", file: "a.el.zst", text: "1 2\n3 4\n", want: []string{"a.el.zst", "magic"}},
		{name: "names", file: "a.csv", text: "source,target\na,b\n", want: []string{"line 2", "column source", `"a"`, "table"}},
		{name: "no columns", file: "a.csv", text: "from,to\n1,2\n", want: []string{`"source"`, "from, to"}},
		{name: "truncated", file: "a.el32", text: "\x01\x00\x00\x00\x02\x00\x00\x00\x03", want: []string{"byte 8", "1 bytes of an edge of 8"}},
		{name: "negative in binary", file: "a.el64", text: galois(1, math.MaxUint64), want: []string{"byte 0", "byte 0: node must be 0 to 2147483646 (got -1)"}},
		{name: "weights of none", file: "a.el32", cfg: Config{Weight: "3"}, want: []string{"wel32"}},
		{name: "short header", file: "a.gr", text: galois(1, 0), want: []string{"a.gr", "header", "truncated"}},
		{name: "version", file: "a.gr", text: galois(3, 0, 0, 0), want: []string{"version must be 1 or 2 (got 3)"}},
		{name: "giant counts", file: "a.gr", text: galois(1, 0, 1<<60, 1<<60), want: []string{"byte 8", "1152921504606846976 nodes"}},
		{name: "too short for edges", file: "a.gr", text: galois(2, 0, 1, 5, 5, 0), want: []string{"5 edges"}},
		{name: "too short for data", file: "a.gr", text: galois(2, 8, 2, 1, 1, 1, 1), want: []string{"data", "must have 8 bytes (got 0"}},
		{name: "ends fall", file: "a.gr", text: galois(2, 0, 3, 2, 2, 1, 2, 0, 0), want: []string{"byte 40", "edges of node 1 must end at 2 to 2 (got 1)"}},
		{name: "ends early", file: "a.gr", text: galois(2, 0, 2, 2, 1, 1, 0, 0), want: []string{"must end at 2 (got 1)"}},
		{name: "target", file: "a.gr", text: galois(2, 0, 2, 1, 1, 1, 7), want: []string{"byte 48", "byte 48: node must be 0 to 1 (got 7)"}},
		{name: "type of data", file: "a.gr", text: galois(2, 8, 1, 0, 0), cfg: Config{Weight: "f32"}, want: []string{`"f32"`, "8 bytes"}},
		{name: "no matrix", file: "a.mtx", text: "1 2\n", want: []string{"line 1", "%%MatrixMarket"}},
		{name: "full matrix", file: "a.mtx", text: "%%MatrixMarket matrix array real general\n", want: []string{"array", "coordinate"}},
		{name: "complex", file: "a.mtx", text: mm + "complex general\n", want: []string{"complex"}},
		{name: "skew", file: "a.mtx", text: mm + "real skew-symmetric\n", want: []string{"skew-symmetric"}},
		{name: "no sizes", file: "a.mtx", text: mm + "pattern general\n% only this\n", want: []string{"line 2", "sizes"}},
		{name: "oblong", file: "a.mtx", text: mm + "pattern general\n2 3 1\n1 1\n", want: []string{"line 2", "(got 2 and 3)"}},
		{name: "giant", file: "a.mtx", text: mm + "pattern general\n2000000000 2000000000 1\n1 2\n", want: []string{"2000000000 nodes and 1 edges"}},
		{name: "row 0", file: "a.mtx", text: mm + "pattern general\n2 2 1\n0 1\n", want: []string{"line 3", "at least 1 (got 0 and 1)"}},
		{name: "column 3", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 3\n", want: []string{"line 3", "line 3: node must be 0 to 1 (got 2)"}},
		{name: "missing entries", file: "a.mtx", text: mm + "pattern general\n2 2 3\n1 2\n", want: []string{"after line 3", "2 entries of 3"}},
		{name: "too many entries", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 2\n2 1\n", want: []string{"line 4", "more than the 1"}},
		{name: "weights of a pattern", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 2\n", cfg: Config{Weight: "3"}, want: []string{"pattern"}},
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
	for name, text := range map[string]string{"_SUCCESS": "", "part-0.csv": "source,target\n0,1\n1,2\n", "part-1.csv": "source,target\n2,3\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if nodes, edges, err := (Config{Path: dir}).Size(); nodes != 4 || edges != 3 || err != nil {
		t.Errorf("%d nodes and %d edges (%v), must be 4 and 3", nodes, edges, err)
	}
}
