package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// sample is what testdata/formats.py wrote in every format.
type sample struct {
	Edges   [][2]int32  `json:"edges"`
	Weights []float32   `json:"weights"`
	X       [][]float32 `json:"x"`
	Y       []int32     `json:"y"`
	Multi   [][]uint8   `json:"multi"`
	Split   [][]int     `json:"split"`
}

func readSample(t testing.TB) (s sample) {
	t.Helper()
	b, err := os.ReadFile("testdata/expected.json")
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// adjacency is built from the edges alone, not by the readers.
func (s sample) adjacency(t testing.TB, weighted bool) graph.CSR {
	t.Helper()
	var src, dst []int32
	for _, e := range s.Edges {
		src, dst = append(src, e[0]), append(dst, e[1])
	}
	var weight []float32
	if weighted {
		weight = s.Weights
	}
	adj, err := graph.FromEdges(len(s.Y), src, dst, weight, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	return adj
}

// lists writes the sample as binary lists and text beside copies of the golden files, and returns the folder.
func lists(t testing.TB, s sample) string {
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
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		put(name, b)
	}
	return dir
}

// TestReadEdges reads the same graph in every format, with and without weights.
func TestReadEdges(t *testing.T) {
	s := readSample(t)
	dir := lists(t, s)
	for _, c := range []struct{ file, weight string }{
		{"graph.el", "3"}, {"graph.el.zst", "3"}, {"graph.mtx", "3"}, {"graph.parquet", "weight"}, {"graph.v1.gr", "u32"}, {"graph.v2.gr", "u32"},
		{"b.el32", ""}, {"b.el64", ""}, {"b.u32", ""}, {"b.u64", ""}, {"b.wel32", "3"}, {"b.wel64", "3"}, {"b.el32.gz", ""}, {"bare.csv", "3"}, {"named.csv", "weight"},
	} {
		for _, weight := range []string{"", c.weight} {
			cfg := EdgeConfig{Path: filepath.Join(dir, c.file), Weight: weight, Strict: true}
			if c.file == "named.csv" {
				cfg.Source, cfg.Target = "from", "to"
			}
			g, err := ReadEdges(cfg)
			if err != nil {
				t.Errorf("%s, weight %q: %v", c.file, weight, err)
				continue
			}
			if want := s.adjacency(t, weight != ""); !reflect.DeepEqual(g.Adj, want) {
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
	s := readSample(t)
	c := EdgeConfig{Path: filepath.Join(lists(t, s), "graph.v1.gr")}
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
	if err := (EdgeConfig{Path: "testdata/graph.el", Nodes: 3}).Batches(func(_, _ []int32) error { return nil }); err != nil {
		t.Error(err) // Size compares with Nodes
	}
	_, _, err := EdgeConfig{Path: "testdata/graph.el", Nodes: 3}.Size()
	names(t, err, "graph.el", "want one of 0 to 2")
}

// TestReadEdgesRoundTrip stores what was read and reads it back.
func TestReadEdgesRoundTrip(t *testing.T) {
	g, err := ReadEdges(EdgeConfig{Path: "testdata/graph.el", Weight: "3"})
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
	if want := (graph.CSR{NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 1, 2, 2}, Col: []int32{1, 0}}); !reflect.DeepEqual(g.Adj, want) {
		t.Errorf("edges %v, want %v", g.Adj, want)
	}
	if err := os.WriteFile(list, []byte("10 70\n70 11\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Import(ImportConfig{Nodes: nodes, Edges: list})
	names(t, err, "e.el", "line 2", "unknown node 11", "nodes.csv")
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
		cfg              EdgeConfig
		want             []string
	}{
		{name: "suffix", file: "a.foo", want: []string{"a.foo", "unknown format", "mtx"}},
		{name: "one column", file: "a.el", text: "1 2\n3\n", want: []string{"a.el", "line 2", "1 columns, want at least 2"}},
		{name: "no number", file: "a.el", text: "1 x\n", want: []string{"line 1", "column 2", `"x" is no node's number`}},
		{name: "negative", file: "a.el", text: "1 -2\n", want: []string{"line 1", `"-2"`}},
		{name: "too large", file: "a.el", text: "\n1 4294967296\n", want: []string{"line 2", "node 4294967296"}},
		{name: "wraps around", file: "a.el", text: "1 18446744073709551617\n", want: []string{"line 1", "no node's number"}},
		{name: "a gap", file: "a.el", text: "1 2000000000\n", want: []string{"2000000001 nodes and 1 edges"}},
		{name: "beyond the nodes", file: "a.el", text: "1 2\n", cfg: EdgeConfig{Nodes: 2}, want: []string{"line 1", "node 2, want one of 0 to 1"}},
		{name: "weight 0", file: "a.el", text: "1 2 0\n", cfg: EdgeConfig{Weight: "3"}, want: []string{"line 1", "weight 0"}},
		{name: "weight NaN", file: "a.el", text: "1 2 nan\n", cfg: EdgeConfig{Weight: "3"}, want: []string{"line 1", "weight NaN"}},
		{name: "name of a column", file: "a.el", text: "1 2\n", cfg: EdgeConfig{Source: "from"}, want: []string{`"from"`, "number"}},
		{name: "the same column", file: "a.el", text: "1 2\n", cfg: EdgeConfig{Source: "2"}, want: []string{"both in column 2"}},
		{name: "loop", file: "a.el", text: "1 2\n2 2\n", cfg: EdgeConfig{Strict: true}, want: []string{"line 2", "node 2 is joined to itself"}},
		{name: "repeat", file: "a.el", text: "1 2\n2 1\n0 1\n1 2\n", cfg: EdgeConfig{Strict: true}, want: []string{"line 4", "from 1 to 2"}},
		{name: "not gzip", file: "a.el.gz", text: "1 2\n", want: []string{"a.el.gz", "gzip"}},
		{name: "not zstd", file: "a.el.zst", text: "1 2\n3 4\n", want: []string{"a.el.zst", "magic"}},
		{name: "names", file: "a.csv", text: "source,target\na,b\n", want: []string{"line 2", "column source", `"a"`, "table"}},
		{name: "no columns", file: "a.csv", text: "from,to\n1,2\n", want: []string{`"source"`, "from, to"}},
		{name: "truncated", file: "a.el32", text: "\x01\x00\x00\x00\x02\x00\x00\x00\x03", want: []string{"byte 8", "1 bytes of an edge of 8"}},
		{name: "negative in binary", file: "a.el64", text: galois(1, math.MaxUint64), want: []string{"byte 0", "node -1"}},
		{name: "weights of none", file: "a.el32", cfg: EdgeConfig{Weight: "3"}, want: []string{"wel32"}},
		{name: "short header", file: "a.gr", text: galois(1, 0), want: []string{"a.gr", "header", "truncated"}},
		{name: "version", file: "a.gr", text: galois(3, 0, 0, 0), want: []string{"version 3"}},
		{name: "giant counts", file: "a.gr", text: galois(1, 0, 1<<60, 1<<60), want: []string{"byte 8", "1152921504606846976 nodes"}},
		{name: "too short for edges", file: "a.gr", text: galois(2, 0, 1, 5, 5, 0), want: []string{"5 edges"}},
		{name: "too short for data", file: "a.gr", text: galois(2, 8, 2, 1, 1, 1, 1), want: []string{"data", "the file holds 0"}},
		{name: "ends fall", file: "a.gr", text: galois(2, 0, 3, 2, 2, 1, 2, 0, 0), want: []string{"byte 40", "edges of node 1 end at 1"}},
		{name: "ends early", file: "a.gr", text: galois(2, 0, 2, 2, 1, 1, 0, 0), want: []string{"end at 1 of 2"}},
		{name: "target", file: "a.gr", text: galois(2, 0, 2, 1, 1, 1, 7), want: []string{"byte 48", "node 7, want one of 0 to 1"}},
		{name: "type of data", file: "a.gr", text: galois(2, 8, 1, 0, 0), cfg: EdgeConfig{Weight: "f32"}, want: []string{`"f32"`, "8 bytes"}},
		{name: "no matrix", file: "a.mtx", text: "1 2\n", want: []string{"line 1", "%%MatrixMarket"}},
		{name: "full matrix", file: "a.mtx", text: "%%MatrixMarket matrix array real general\n", want: []string{"array", "coordinate"}},
		{name: "complex", file: "a.mtx", text: mm + "complex general\n", want: []string{"complex"}},
		{name: "skew", file: "a.mtx", text: mm + "real skew-symmetric\n", want: []string{"skew-symmetric"}},
		{name: "no sizes", file: "a.mtx", text: mm + "pattern general\n% only this\n", want: []string{"line 2", "sizes"}},
		{name: "oblong", file: "a.mtx", text: mm + "pattern general\n2 3 1\n1 1\n", want: []string{"line 2", "2 rows and 3 columns"}},
		{name: "giant", file: "a.mtx", text: mm + "pattern general\n2000000000 2000000000 1\n1 2\n", want: []string{"2000000000 nodes and 1 edges"}},
		{name: "row 0", file: "a.mtx", text: mm + "pattern general\n2 2 1\n0 1\n", want: []string{"line 3", "from 1"}},
		{name: "column 3", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 3\n", want: []string{"line 3", "node 2"}},
		{name: "missing entries", file: "a.mtx", text: mm + "pattern general\n2 2 3\n1 2\n", want: []string{"after line 3", "2 entries of 3"}},
		{name: "too many entries", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 2\n2 1\n", want: []string{"line 4", "more than the 1"}},
		{name: "weights of a pattern", file: "a.mtx", text: mm + "pattern general\n2 2 1\n1 2\n", cfg: EdgeConfig{Weight: "3"}, want: []string{"pattern"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Path = filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(c.cfg.Path, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := ReadEdges(c.cfg)
			names(t, err, c.want...)
		})
	}
}

func TestReadOGB(t *testing.T) {
	s := readSample(t)
	n := len(s.Y)
	split := make([]graph.Split, n)
	for k, ids := range s.Split {
		for _, i := range ids {
			split[i] = graph.Split(k + 1)
		}
	}
	for _, name := range []string{"ogb_plain", "ogb_multi", "ogb_binary"} {
		g, err := ReadOGB(filepath.Join("testdata", name), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g.Adj, s.adjacency(t, false)) || g.Name != strings.ReplaceAll(name, "_", "-") {
			t.Errorf("%s: %s, edges %v", name, g.Name, g.Adj)
		}
		for i := range n {
			want := split[i]
			switch {
			case name == "ogb_multi":
				if !bytes.Equal(g.Labels.Bits[3*i:3*i+3], s.Multi[i]) {
					t.Errorf("%s: node %d has labels %v, want %v", name, i, g.Labels.Bits[3*i:3*i+3], s.Multi[i])
				}
			case g.Labels.Class[i] != s.Y[i]:
				t.Errorf("%s: node %d has label %d, want %d", name, i, g.Labels.Class[i], s.Y[i])
			case s.Y[i] < 0:
				want = graph.None
			}
			if g.Split[i] != want || !reflect.DeepEqual(g.X.Dense.Row(i), s.X[i]) {
				t.Errorf("%s: node %d: split %d, features %v, want %d, %v", name, i, g.Split[i], g.X.Dense.Row(i), want, s.X[i])
			}
		}
	}
	g, err := ReadOGB("testdata/ogb_typed", "time")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	whole := s.adjacency(t, false)
	to := make([]int32, n) // papers come before venues
	dst := make([]int32, n)
	for i := range n {
		to[i] = int32((i + 20) % 30)
		dst[to[i]] = int32(i)
	}
	if !reflect.DeepEqual(g.Adj, *whole.Relabel(dst, to, n)) {
		t.Errorf("edges %v", g.Adj)
	}
	x := g.X.Sparse.Dense()
	for i := range n {
		id, want, features := fmt.Sprintf("venue/%d", i), int32(-1), []float32{0, 0, 0}
		if i >= 10 {
			id, want, features = fmt.Sprintf("paper/%d", i-10), s.Y[i], s.X[i]
		}
		of := graph.None
		if want >= 0 {
			of = split[i]
		}
		at := int(to[i])
		if g.IDs[at] != id || g.Labels.Class[at] != want || g.Split[at] != of || !reflect.DeepEqual(x.Row(at), features) {
			t.Errorf("node %s: label %d, split %d, features %v; want %s, %d, %d, %v", g.IDs[at], g.Labels.Class[at], g.Split[at], x.Row(at), id, want, of, features)
		}
	}
}

func TestReadOGBFaults(t *testing.T) {
	for _, c := range []struct {
		name, in, file, text string
		want                 []string
	}{
		{"nothing there", "ogb_plain", "raw/edge.csv.gz", "-", []string{"no raw/data.npz"}},
		{"edges", "ogb_plain", "raw/num-edge-list.csv.gz", "7\n", []string{"edge.csv.gz", "want 7"}},
		{"two graphs", "ogb_plain", "raw/num-node-list.csv.gz", "7\n8\n", []string{"num-node-list", "line 2", "more than the 1"}},
		{"nodes", "ogb_plain", "raw/num-node-list.csv.gz", "7\n", []string{"edge.csv.gz", "line "}},
		{"giant", "ogb_plain", "raw/num-node-list.csv.gz", "2000000000\n", []string{"2000000000 nodes"}},
		{"features", "ogb_plain", "raw/node-feat.csv.gz", "1,2\n3\n", []string{"node-feat", "line 2", "1 columns, want 2"}},
		{"infinite", "ogb_plain", "raw/node-feat.csv.gz", strings.Repeat("1,inf\n", 30), []string{"node-feat", "row 0, column 1", "+Inf"}},
		{"few rows", "ogb_plain", "raw/node-feat.csv.gz", "1,2\n", []string{"node-feat", "1 rows", "want 30"}},
		{"no labels", "ogb_plain", "raw/node-label.csv.gz", "-", []string{"node-label", "no labels"}},
		{"label", "ogb_plain", "raw/node-label.csv.gz", strings.Repeat("0.5\n", 30), []string{"row 0 is 0.5"}},
		{"split", "ogb_plain", "split/random/train.csv.gz", "30\n", []string{"train.csv.gz", "line 1", "node 30"}},
		{"in two", "ogb_plain", "split/random/train.csv.gz", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n", []string{"valid.csv.gz", "already"}},
		{"no lists", "ogb_plain", "split/random/test.csv.gz", "-", []string{"test.csv.gz"}},
		{"path in a type", "ogb_typed", "raw/num-node-dict.csv.gz", "venue,../paper\n10,20\n", []string{"num-node-dict", "../paper"}},
		{"unknown type", "ogb_typed", "raw/triplet-type-list.csv.gz", "paper,to,author\n", []string{"triplet-type-list", "line 1", "author"}},
		{"damaged archive", "ogb_binary", "raw/data.npz", "PK", []string{"data.npz", "zip"}},
		{"no archive of labels", "ogb_binary", "raw/node-label.npz", "-", []string{"node-label.npz"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", c.in))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			var b bytes.Buffer
			if strings.HasSuffix(path, ".gz") {
				z := gzip.NewWriter(&b)
				if _, err := z.Write([]byte(c.text)); err != nil {
					t.Fatal(err)
				}
				if err := z.Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				b.WriteString(c.text)
			}
			err := os.Remove(path)
			if err == nil && c.text != "-" {
				err = os.WriteFile(path, b.Bytes(), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = ReadOGB(dir, "")
			names(t, err, c.want...)
		})
	}
	_, err := ReadOGB("testdata/ogb_plain", "../random")
	names(t, err, "split", "name of a folder")
	_, err = ReadOGB("testdata/ogb_plain", "scaffold")
	names(t, err, "scaffold")
}
