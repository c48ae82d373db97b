package ogb

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/graph/npy"
)

func TestRead(t *testing.T) {
	s := graphtest.ReadFormats(t, "../../../../graph/dataset/testdata")
	n := len(s.Y)
	split := make([]graph.Split, n)
	for k, ids := range s.Split {
		for _, i := range ids {
			split[i] = graph.Split(k + 1)
		}
	}
	for _, name := range []string{"ogb_plain", "ogb_multi", "ogb_binary"} {
		g, err := Read(filepath.Join("../../../../graph/dataset/testdata", name), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(g.Adj, s.Adjacency(t, false)) || g.Name != strings.ReplaceAll(name, "_", "-") {
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
				t.Errorf("%s: node %d: split %d, features %v, want %d, %v", name, i, g.Split[i], g.X.Dense.Row(i), want,
					s.X[i])
			}
		}
	}
	g, err := Read("../../../../graph/dataset/testdata/ogb_typed", "time")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	whole := s.Adjacency(t, false)
	to := make([]int32, n) // papers come before venues
	dst := make([]int32, n)
	for i := range n {
		to[i] = int32((i + 20) % 30)
		dst[to[i]] = int32(i)
	}
	if !reflect.DeepEqual(g.Adj, *whole.Relabel(dst, to, n)) {
		t.Errorf("edges %v", g.Adj)
	}
	if want := (graph.Types{Names: []string{"paper", "venue"},
		Of:  append(make([]uint8, 20), bytes.Repeat([]uint8{1}, 10)...),
		Ptr: []int64{0, int64(g.X.Cols()), int64(g.X.Cols())}}); !reflect.DeepEqual(g.Types, want) {
		t.Errorf("types %+v, must be %+v", g.Types, want)
	}
	names := []string{"paper-to-paper", "paper-to-venue", "venue-to-paper", "venue-to-venue"}
	if !reflect.DeepEqual(g.Typed.Names, graph.InverseNames(names)) {
		t.Fatalf("relations %q", g.Typed.Names)
	}
	between := g.Typed.Adj.Relation(1, 8)
	for i := range n {
		col, _ := between.Row(i)
		for _, j := range col {
			if i < 20 || j >= 20 {
				t.Errorf("an edge from %s to %s in %s", g.IDs[j], g.IDs[i], names[1])
			}
		}
	}
	if between.NumEdges() == 0 {
		t.Errorf("%s has no edge", names[1])
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
		if g.IDs[at] != id || g.Labels.Class[at] != want || g.Split[at] != of ||
			!reflect.DeepEqual(x.Row(at), features) {
			t.Errorf("node %s: label %d, split %d, features %v; want %s, %d, %d, %v", g.IDs[at], g.Labels.Class[at],
				g.Split[at], x.Row(at), id, want, of, features)
		}
	}
}

// put writes text, packed where the file's name says so.
func put(t *testing.T, path, text string) {
	t.Helper()
	var b bytes.Buffer
	if strings.HasSuffix(path, ".gz") {
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		b.WriteString(text)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// edgeFeatures returns features of the edges of a list, a row each as the file has them: k and source − target.
func edgeFeatures(t *testing.T, path string) (ends [][2]int32, x []float32, text string) {
	t.Helper()
	v, _, err := readNumbers[float64](path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for k := range len(v) / 2 {
		ends = append(ends, [2]int32{int32(v[2*k]), int32(v[2*k+1])})
		x = append(x, float32(k), float32(v[2*k]-v[2*k+1]))
		text += fmt.Sprintf("%d,%g\n", k, v[2*k]-v[2*k+1])
	}
	return ends, x, text
}

// TestEdgeFeatures: the features of an edge are those of its row, of several rows the largest, in CSV, binary files and
// in a relation of several.
func TestEdgeFeatures(t *testing.T) {
	for _, name := range []string{"ogb_plain", "ogb_binary", "ogb_typed"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../../graph/dataset/testdata", name))); err != nil {
			t.Fatal(err)
		}
		list := filepath.FromSlash("../../../../graph/dataset/testdata/ogb_plain/raw/edge.csv.gz") // as ogb_binary
		relation := filepath.Join(dir, "raw/relations/paper___to___venue")
		if name == "ogb_typed" {
			list = filepath.Join(relation, "edge.csv.gz")
		}
		ends, x, text := edgeFeatures(t, list)
		switch name {
		case "ogb_plain":
			put(t, filepath.Join(dir, "raw/edge-feat.csv.gz"), text)
		case "ogb_typed":
			put(t, filepath.Join(relation, "edge-feat.csv.gz"), text)
		default:
			addArray(t, filepath.Join(dir, "raw/data.npz"), "edge_feat", []int{len(ends), 2}, x)
		}
		g, err := Read(dir, map[string]string{"ogb_typed": "time"}[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Valid(); err != nil {
			t.Fatal(err)
		}
		adj, n := &g.Adj, 0
		if name == "ogb_typed" {
			adj = g.Typed.Adj.Relation(1, 8)
		}
		for i := range g.N() {
			col, _ := adj.Row(i)
			for k, j := range col {
				must, first := [2]float32{}, true
				for e, of := range ends {
					along, back := of == [2]int32{j, int32(i)}, of == [2]int32{int32(i), j}
					if name == "ogb_typed" { // papers come first
						along, back = of == [2]int32{j, int32(i) - 20}, false
					}
					for c := range 2 {
						if v := x[2*e+c]; (along || back) && (first || v > must[c]) {
							must[c] = v
						}
					}
					first = first && !along && !back
				}
				if row := g.EdgeX.Row(int(adj.EdgeRows(i)[k])); first || row[0] != must[0] || row[1] != must[1] {
					t.Errorf("%s: edge %d to %d has features %v, must have %v", name, j, i, row, must)
				}
				n++
			}
		}
		if n == 0 || g.EdgeX.Cols != 2 {
			t.Errorf("%s: %d edges with %d columns", name, n, g.EdgeX.Cols)
		}
	}
}

// addArray adds an array to an archive.
func addArray(t *testing.T, path, name string, shape []int, values any) {
	t.Helper()
	old, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range old.File {
		if err := z.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(npy.Write(z, name, shape, values), z.Close()); err != nil {
		t.Fatal(err)
	}
	put(t, path, b.String())
}

func TestReadFaults(t *testing.T) {
	for _, c := range []struct {
		name, in, file, text string
		want                 []string
	}{
		{"nothing there", "ogb_plain", "raw/edge.csv.gz", "-", []string{"no raw/data.npz"}},
		{"edges", "ogb_plain", "raw/num-edge-list.csv.gz", "7\n",
			[]string{"edge.csv.gz", "there must be 7 edges, as in"}},
		{"two graphs", "ogb_plain", "raw/num-node-list.csv.gz", "7\n8\n",
			[]string{"num-node-list", "line 2", "more than the 1"}},
		{"nodes", "ogb_plain", "raw/num-node-list.csv.gz", "7\n", []string{"edge.csv.gz", "line "}},
		{"giant", "ogb_plain", "raw/num-node-list.csv.gz", "2000000000\n", []string{"2000000000 nodes"}},
		{"features", "ogb_plain", "raw/node-feat.csv.gz", "1,2\n3\n",
			[]string{"node-feat", "line 2", "there must be 2 columns (got 1)"}},
		{"infinite", "ogb_plain", "raw/node-feat.csv.gz", strings.Repeat("1,inf\n", 30),
			[]string{"node-feat", "row 0, column 1", "+Inf"}},
		{"few rows", "ogb_plain", "raw/node-feat.csv.gz", "1,2\n",
			[]string{"node-feat", "1 rows", "there must be 30 rows of at most 16777216 columns (got 1 rows of 2)"}},
		{"edge features", "ogb_plain", "raw/edge-feat.csv.gz", "1\n2\n",
			[]string{"edge-feat", "rows of at most", "(got 2 rows of 1)"}},
		{"infinite edge features", "ogb_typed", "raw/relations/venue___to___venue/edge-feat.csv.gz", "nan\n",
			[]string{"edge-feat"}},
		{"no labels", "ogb_plain", "raw/node-label.csv.gz", "-", []string{"node-label", "no labels"}},
		{"label", "ogb_plain", "raw/node-label.csv.gz", strings.Repeat("0.5\n", 30),
			[]string{"row 0 must be a class from 0 to 1048575, or none (got 0.5)"}},
		{"split", "ogb_plain", "split/random/train.csv.gz", "30\n",
			[]string{"train.csv.gz", "line 1", "line 1: node must be 0 to 29 (got 30)"}},
		{"in two", "ogb_plain", "split/random/train.csv.gz", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n" +
			"16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n", []string{"valid.csv.gz", "already"}},
		{"no lists", "ogb_plain", "split/random/test.csv.gz", "-", []string{"test.csv.gz"}},
		{"path in a type", "ogb_typed", "raw/num-node-dict.csv.gz", "venue,../paper\n10,20\n",
			[]string{"num-node-dict", "../paper"}},
		{"unknown type", "ogb_typed", "raw/triplet-type-list.csv.gz", "paper,to,author\n",
			[]string{"triplet-type-list", "line 1", "author"}},
		{"damaged archive", "ogb_binary", "raw/data.npz", "PK", []string{"data.npz", "zip"}},
		{"no archive of labels", "ogb_binary", "raw/node-label.npz", "-", []string{"node-label.npz"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../../../graph/dataset/testdata", c.in))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, filepath.FromSlash(c.file))
			if err := os.Remove(path); err != nil && c.text == "-" {
				t.Fatal(err)
			}
			if c.text != "-" {
				put(t, path, c.text)
			}
			_, err := Read(dir, "")
			graphtest.Refused(t, err, c.want...)
		})
	}
	_, err := Read("../../../../graph/dataset/testdata/ogb_plain", "../random")
	graphtest.Refused(t, err, "split", "name of a folder")
	_, err = Read("../../../../graph/dataset/testdata/ogb_plain", "scaffold")
	graphtest.Refused(t, err, "scaffold")
}

// FuzzOGB replaces one file of a set.
func FuzzOGB(f *testing.F) {
	files := []string{"edge.csv.gz", "num-node-list.csv.gz", "node-feat.csv.gz", "node-label.csv.gz"}
	for k, name := range files {
		b, err := os.ReadFile(filepath.Join("../../../../graph/dataset/testdata/ogb_plain/raw", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(k), b)
	}
	root := f.TempDir()
	if err := os.CopyFS(root, os.DirFS("../../../../graph/dataset/testdata/ogb_plain")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, k uint8, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		path := filepath.Join(root, "raw", files[int(k)%len(files)])
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		g, err := Read(root, "")
		if err == nil {
			err = g.Valid()
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	})
}
