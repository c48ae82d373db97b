package external

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// streaming are the policies that need not all edges at once, and one that does.
var streaming = []string{"random", "contiguous", "fennel", "restream:2", "restream:5", "multilevel"}

type fataler interface{ Fatal(...any) }

func policy(t fataler, name string) partition.Policy {
	p, err := partition.ParsePolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// store writes g as a graph file and opens it.
func store(t fataler, dir string, g *graph.Graph) *Stored {
	path := filepath.Join(dir, "graph")
	if err := WriteGraph(path, g); err != nil {
		t.Fatal(err)
	}
	s, err := OpenGraph(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files returns what is in a directory.
func files(t fataler, dir string) map[string]string {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func same(t fataler, what string, got, want map[string]string) {
	if len(got) != len(want) {
		t.Fatal(what, "files", len(got), "must be", len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Fatal(what, name, "differs")
		}
	}
}

// The shards of a stored graph equal the shards of the graph in memory, byte for byte.
func TestStoredIsAsInMemory(t *testing.T) {
	key := rng.New(1)
	for at, g := range drawn(31) {
		key := key.Fold(uint64(at))
		if g.N() < 2 {
			continue
		}
		parts := 2 + int(key.Uint64(0)%uint64(g.N()-1))
		dir := t.TempDir()
		s := store(t, dir, g)
		name := streaming[at%len(streaming)]
		p := policy(t, name)
		if at%3 == 0 {
			p = partition.Bounded(p, partition.Goal{Vertices: 1.5, Edges: 2, Bytes: 2})
		}
		meta := shard.Meta{Policy: name, Seed: key.Uint64(1)}
		stored, memory := filepath.Join(dir, "stored"), filepath.Join(dir, "memory")
		_, _, err := s.Write(stored, Job{Policy: p, Parts: parts, Meta: meta})
		shards, want := partition.Partition(g, p, parts, meta.Seed)
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() {
			t.Fatalf("%s: %v, in memory %v", name, err, want)
		}
		if err == nil {
			if _, err := shard.WriteDir(memory, shards, meta); err != nil {
				t.Fatal(err)
			}
			same(t, name, files(t, stored), files(t, memory))
		}
		s.Close()
	}
}

// drawn returns n small random graphs of all kinds.
func drawn(n int) (list []*graph.Graph) {
	gen := rapid.Custom(graphtest.Draw)
	for at := range n {
		list = append(list, gen.Example(at))
	}
	return list
}

// large returns a graph of several runs, with everything that a graph may have.
func large() *graph.Graph {
	g := graphtest.Communities(70_000, 40, 6, 0.8, rng.New(8))
	g.Labels = graph.Labels{Classes: 3, Class: make([]int32, g.N()), Names: []string{"a", "bb", "ccc"}}
	g.Site, g.Sites = make([]int32, g.N()), []string{"north", "south", "west"}
	for i := range g.N() {
		g.Labels.Class[i], g.Site[i] = int32(i%4)-1, int32(i%3)
		g.IDs = append(g.IDs, strings.Repeat("x", i%3))
	}
	return g
}

// A job that is stopped leaves nothing, and what a killed one left is no obstacle.
func TestStoppedJobLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := store(t, dir, large())
	defer s.Close()
	for _, name := range []string{"restream:4", "by-column"} {
		job := Job{Policy: policy(t, name), Parts: 3, Meta: shard.Meta{Policy: name, Seed: 5}}
		calls := 0
		job.Watch = func(p Progress) error {
			if p.Steps > 0 && p.Step >= p.Steps || p.Done > p.Total && p.Total > 0 {
				t.Errorf("%+v", p)
			}
			calls++
			return nil
		}
		want := filepath.Join(dir, name)
		if _, _, err := s.Write(want, job); err != nil {
			t.Fatal(err)
		}
		shards, close, err := shard.ReadDir(want)
		if err != nil || len(shards) != 3 {
			t.Fatal(err)
		}
		defer close.Close()
		again, stop := filepath.Join(dir, name+"-again"), errors.New("stopped")
		for at := range 4 {
			left := at * calls / 4
			job.Watch = func(Progress) error {
				if left--; left < 0 {
					return stop
				}
				return nil
			}
			if _, _, err := s.Write(again, job); !errors.Is(err, stop) {
				t.Fatal(err)
			}
			for _, path := range []string{again, shard.Incomplete(again)} {
				if _, err := os.Stat(path); !os.IsNotExist(err) {
					t.Errorf("%s, stopped after %d of %d calls: %v: something is left", path, at*calls/4, calls, err)
				}
			}
		}
		job.Watch = nil
		killed := filepath.Join(shard.Incomplete(again), spills)
		if err := errors.Join(os.MkdirAll(killed, 0o777),
			os.WriteFile(filepath.Join(killed, "split.0"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		threads := runtime.GOMAXPROCS(1)
		_, _, err = s.Write(again, job)
		runtime.GOMAXPROCS(threads)
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, files(t, again), files(t, want))
	}
}

func TestJobsRefuse(t *testing.T) {
	dir := t.TempDir()
	g := large()
	s := store(t, dir, g)
	defer s.Close()
	write := func(s *Stored, job Job) error {
		_, _, err := s.Write(filepath.Join(dir, "out"), job)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{write(s, Job{Policy: partition.Random{}, Parts: 70_001}),
			"parts must be 1 to 70000, as many as nodes (got 70001)"},
		{write(s, Job{Policy: partition.Random{}, Parts: -1}), "(got -1)"},
		{write(s, Job{Policy: partition.Random{}, Parts: 4, Memory: 1 << 20}), "MiB of memory, with 1 allowed"},
		{write(s, Job{Policy: partition.Multilevel{}, Parts: 4, Memory: 1 << 25}), "another policy"},
		{write(s, Job{Policy: partition.ByColumn{}, Parts: 2}),
			"by-column: number of parts must be 3 (or 0), the number of sites (got 2)"},
		{write(s, Job{Policy: partition.Bounded(partition.ByColumn{}, partition.Goal{Train: 1}), Parts: 3}),
			"raise the bound on train"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, must be %q", c.err, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "out", "x"), nil, 0o600); err == nil {
		t.Fatal("a job that failed has left its directory under its name")
	}
}

// A file whose checksums are right may still contain no valid graph.
func TestStoredGraphsAreChecked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "graph")
	for name, c := range map[string]struct {
		spoil func(g *graph.Graph)
		want  string
	}{
		"source":  {func(g *graph.Graph) { g.Adj.Col[1] = 9 }, "not ascending, or out of [0, 8)"},
		"order":   {func(g *graph.Graph) { g.Adj.Col[1], g.Adj.Col[2] = g.Adj.Col[2], g.Adj.Col[1] }, "not ascending"},
		"pointer": {func(g *graph.Graph) { g.Adj.RowPtr[2] = 77 }, "node 1 ends at edge 77"},
		"split":   {func(g *graph.Graph) { g.Split[3] = 9 }, "split must be 0 (none) to 3 (test) (got 9)"},
		"weight": {func(g *graph.Graph) { g.Adj.Weight = make([]float32, len(g.Adj.Col)); g.Adj.Weight[2] = -1 },
			"weight of an edge must be a finite number, 0 or more (got -1)"},
		"feature": {func(g *graph.Graph) { g.X.Dense = mat.New(8, 2); g.X.Dense.Data[3] = float32(inf()) },
			"finite number"},
		"class": {func(g *graph.Graph) {
			g.Labels = graph.Labels{Classes: 2, Class: []int32{0, 1, 2, 0, 0, 0, 0, 0}}
		}, "label must be -1 (none) or a class in [0, 2) (got 2)"},
		"bits": {func(g *graph.Graph) {
			g.Labels = graph.Labels{Classes: 1, Bits: []uint8{0, 1, 2, 0, 0, 0, 0, 0}}
		}, "label for class 0 must be 0 or 1 (got 2)"},
		"bit rows": {func(g *graph.Graph) { g.Labels = graph.Labels{Classes: 1, Bits: make([]uint8, 7)} },
			"must have 1 elements for each of 8 nodes (got shape [7])"},
		"columns": {func(g *graph.Graph) { g.X = graph.Identity(8); g.X.Sparse.Col[5] = 8 }, "out of [0, 8)"},
		"rows":    {func(g *graph.Graph) { g.X = graph.Identity(8); g.X.Sparse.RowPtr[5] = 3 }, "before its start"},
	} {
		g := path8()
		c.spoil(g)
		if _, err := section.Write(path, graph.GraphKind, g.Sections()); err != nil {
			t.Fatal(err)
		}
		s, err := OpenGraph(path)
		if err == nil {
			_, _, err = s.Write(filepath.Join(dir, "out"), Job{Policy: partition.Random{}, Parts: 2})
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, must be %q", name, err, c.want)
		}
	}
	// And any damaged byte is found before anything is assigned.
	if err := WriteGraph(path, path8()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "whole")
	s, err := OpenGraph(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Write(want, Job{Policy: policy(t, "fennel"), Parts: 2}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for n := 0; n < len(file); n += 37 {
		b := bytes.Clone(file)
		b[n] ^= 0x10
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "damaged")
		s, err := OpenGraph(path)
		if err == nil {
			_, _, err = s.Write(out, Job{Policy: policy(t, "fennel"), Parts: 2})
			s.Close()
		}
		if err == nil { // the padding between sections is not read
			same(t, "damaged", files(t, out), files(t, want))
		}
		os.RemoveAll(out)
	}
}

func path8() *graph.Graph { g := graphtest.Path(8); g.Name = "path"; return g }

func inf() float64 { return math.Inf(1) }

// Whatever is in the file of a stored graph, its runs are refused or read to the end.
func FuzzStored(f *testing.F) {
	weighted := path8()
	weighted.Adj.Weight = make([]float32, len(weighted.Adj.Col))
	weighted.X, weighted.Labels = graph.Identity(8), graph.Labels{Classes: 2, Class: []int32{0, 1, -1, 0, 1, 1, 0, 0}}
	sites := path8()
	sites.Site, sites.Sites = []int32{0, 0, 0, 0, 1, 1, 1, 1}, []string{"a", "b"}
	for _, g := range []*graph.Graph{path8(), weighted, sites} {
		path := filepath.Join(f.TempDir(), "graph")
		if err := WriteGraph(path, g); err != nil {
			f.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-9])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		graphtest.Reseal(b)
		path := filepath.Join(t.TempDir(), "graph")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenGraph(path)
		if err != nil {
			return
		}
		defer s.Close()
		read := int64(0)
		if err := s.Runs(true, func(r *partition.Run) error { read += int64(len(r.Col)); return nil }); err == nil &&
			read != s.edges {
			t.Fatalf("%d edges were read, must be %d", read, s.edges)
		}
		if names, err := s.Sites(); err == nil && len(names) != s.sites {
			t.Fatalf("%d names of %d owners", len(names), s.sites)
		}
	})
}

// TestTypedGraphsAreNotStreamed: what is not supported is refused, not dropped.
func TestTypedGraphsAreNotStreamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "typed.graph")
	if err := WriteGraph(path, graphtest.Typed(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGraph(path); err == nil || !strings.Contains(err.Error(), "edges have types") {
		t.Fatalf("error is %v, must be one that says that edges have types", err)
	}
}
