package dgl

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// small returns shards of a random graph. Its nodes are dealt out at random, so that DGL's numbers differ from
// Heddle's.
func small(t *testing.T, parts int, directed, weighted, multi, sparse bool) []*shard.Shard {
	t.Helper()
	const n, e = 50, 160
	key := rng.New(7).FoldString("dgl")
	var src, dst []int32
	var weight []float32
	for k := range uint64(e) {
		src = append(src, int32(key.FoldString("src").Fold(k).Perm(n)[0]))
		dst = append(dst, int32(key.FoldString("dst").Fold(k).Perm(n)[0]))
		if weighted {
			weight = append(weight, float32(1+k%5)/4)
		}
	}
	adj, err := graph.FromEdges(n, src, dst, weight, graph.Build{Directed: directed})
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "drawn", Adj: adj, Split: make([]graph.Split, n)}
	x := mat.New(n, 4)
	for i := range n {
		x.Set(i, i%4, float32(i)+0.5)
		g.Split[i] = graph.Split(i % 4)
		if multi {
			g.Labels.Bits = append(g.Labels.Bits, uint8(i%2), 1, uint8(i/2%2))
		} else {
			g.Labels.Class = append(g.Labels.Class, int32(i%3)-1)
			if i%3 == 0 {
				g.Split[i] = graph.None
			}
		}
	}
	g.Labels.Classes = 3
	if !multi {
		g.Labels.Classes = 2
	}
	g.X.Dense = x
	if sparse {
		s := &mat.Sparse{Rows: n, Cols: 4, RowPtr: []int64{0}}
		for i := range n {
			s.Col, s.Val = append(s.Col, int32(i%4)), append(s.Val, float32(i)+0.5)
			s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
		}
		g.X = graph.Features{Sparse: s}
	}
	shards, err := partition.Partition(g, partition.Random{}, parts, 3)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

var variants = []struct {
	name                              string
	parts                             int
	directed, weighted, multi, sparse bool
}{
	{name: "plain", parts: 3},
	{name: "one part", parts: 1},
	{name: "directed and weighted", parts: 3, directed: true, weighted: true},
	{name: "multi and sparse", parts: 4, multi: true, sparse: true},
}

// TestWriteRead writes shards and reads them back: the same except for the nodes' numbers.
func TestWriteRead(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			shards := small(t, v.parts, v.directed, v.weighted, v.multi, v.sparse)
			dir := filepath.Join(t.TempDir(), "out")
			if _, err := WriteDir(dir, shards); err != nil {
				t.Fatal(err)
			}
			names := Names{Build: graph.Build{Directed: true, KeepLoops: true}}
			if v.weighted {
				names.Weight = "weight"
			}
			p, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			back, err := shardsOf(p, names)
			if err != nil {
				t.Fatal(err)
			}
			var orig []int64 // of DGL's number
			for _, part := range p.Parts {
				ids, err := part.Columns[0]["orig_id"].ints()
				if err != nil {
					t.Fatal(err)
				}
				orig = append(orig, ids...)
			}
			for k, s := range shards {
				got := back[k]
				for at, id := range got.Global {
					if orig[id] != s.Global[at] {
						t.Fatalf("part %d: source %d is node %d, want %d", k, at, orig[id], s.Global[at])
					}
				}
				if !reflect.DeepEqual(got.Adj, s.Adj) || !reflect.DeepEqual(got.Boundary, s.Boundary) {
					t.Errorf("part %d: edges %v, want %v", k, got.Adj, s.Adj)
				}
				want := s.X.Dense
				if s.X.Sparse != nil {
					want = s.X.Sparse.Dense()
				}
				if !slices.Equal(got.X.Dense.Data, want.Data) || !reflect.DeepEqual(got.Labels, s.Labels) ||
					!slices.Equal(got.Split, s.Split) {
					t.Errorf("part %d: features, labels or splits differ: %v %v, want %v %v", k, got.Labels, got.Split,
						s.Labels, s.Split)
				}
			}
			if _, err := WriteDir(dir, shards); err == nil || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("writing again: %v", err)
			}
			if _, err := os.Stat(shard.Incomplete(dir)); err == nil {
				t.Errorf("%s is left", shard.Incomplete(dir))
			}
		})
	}
}

// TestDGLReads lets DGL itself open what WriteDir wrote, and check it as it checks its own
// (DGL_DIST_DEBUG): counts, runs, halo, in-edges of every inner node.
func TestDGLReads(t *testing.T) {
	python := os.Getenv("HEDDLE_DGL")
	if python == "" {
		t.Skip("SKIPPED: set HEDDLE_DGL to a Python that has DGL (testdata/golden.py says how to make one)")
	}
	open := func(t *testing.T, shards []*shard.Shard) {
		path, err := WriteDir(filepath.Join(t.TempDir(), "out"), shards)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, filepath.Join("testdata", "open.py"), path)
		cmd.Env = append(os.Environ(), "DGLBACKEND=pytorch", "DGL_DIST_DEBUG=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "opened by DGL") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { open(t, small(t, v.parts, v.directed, v.weighted, v.multi, v.sparse)) })
	}
	t.Run("cora", func(t *testing.T) {
		g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
		if err != nil {
			t.Fatal(err)
		}
		shards, err := partition.Partition(g, partition.Multilevel{}, 4, 1)
		if err != nil {
			t.Fatal(err)
		}
		open(t, shards)
	})
}

// TestDGLWrites lets DGL partition Cora, and compares what is read with DGL's report on the parts.
func TestDGLWrites(t *testing.T) {
	python := os.Getenv("HEDDLE_DGL")
	if python == "" {
		t.Skip("SKIPPED: set HEDDLE_DGL to a Python that has DGL (testdata/golden.py says how to make one)")
	}
	data, dir := testenv.DataDir(t, "cora"), t.TempDir()
	g, err := dataset.Read(data, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"random-2", "random-4", "metis-2", "metis-4"} {
		t.Run(name, func(t *testing.T) {
			method, parts, _ := strings.Cut(name, "-")
			cmd := exec.Command(python, filepath.Join("testdata", "golden.py"), filepath.Join(data, "graph.npz"), dir,
				method, parts)
			cmd.Env = append(os.Environ(), "DGLBACKEND=pytorch")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p, err := Read(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			want := expectedIn(t, dir, name)
			for k, part := range p.Parts {
				part.compare(t, p, k, want[k])
			}
			compareShards(t, p, want)
			got, _, err := p.Graph(Names{})
			if err != nil {
				t.Fatal(err)
			}
			if got.N() != g.N() || got.Adj.NumEdges() != g.Adj.NumEdges() ||
				!slices.Equal(got.Labels.Count(), g.Labels.Count()) {
				t.Errorf("%d nodes, %d edges, classes %v; want %d, %d, %v", got.N(), got.Adj.NumEdges(),
					got.Labels.Count(), g.N(), g.Adj.NumEdges(), g.Labels.Count())
			}
		})
	}
}
