package external

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/rng"
)

// What is stored from a list of edges is what the graph in memory stores.
func TestIngestIsAsFromEdges(t *testing.T) {
	dir, key := t.TempDir(), rng.New(2)
	const n, m = 30_000, 200_000 // over one bucket and one batch
	var src, dst []int32
	for e := range uint64(m) {
		u, v := int32(key.Float64(2*e)*key.Float64(2*e)*n), int32(key.Float64(2*e+1)*n)
		if e%10 == 0 {
			v = u
		}
		src, dst = append(src, u), append(dst, v)
	}
	src, dst = append(src, src[:5000]...), append(dst, dst[:5000]...)
	edges := func(yield func(src, dst []int32) error) error { return yield(src, dst) }
	for _, b := range []graph.Build{{}, {Directed: true, KeepLoops: true}} {
		path, want, nodes := filepath.Join(dir, "graph"), filepath.Join(dir, "want"),
			int(max(slices.Max(src), slices.Max(dst)))+1
		adj, err := graph.FromEdges(nodes, src, dst, nil, b)
		if err != nil {
			t.Fatal(err)
		}
		g := &graph.Graph{Name: "list", Adj: adj, Split: make([]graph.Split, nodes)}
		if err := WriteGraph(want, g); err != nil {
			t.Fatal(err)
		}
		if err := WriteNodes(path, &graph.Graph{Name: "list"}, nil, nodes, edges, b, 1); err != nil {
			t.Fatal(err)
		}
		if read(t, path) != read(t, want) {
			t.Errorf("%+v: the file differs from that of the graph in memory", b)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
			t.Errorf("%v, %v: something is left", list, err)
		}
	}
}

// TestWhatIsWrittenIsRead: graph.Read reads graphs with types, relations, columns of edges and sites as they were
// written, and a changed byte is noticed.
func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.graph")
	rapid.Check(t, func(r *rapid.T) {
		g := graphtest.DrawTyped(r)
		if rapid.Bool().Draw(r, "sites") {
			g.Sites = []string{"north", "south"}
			for i := range g.N() {
				g.Site = append(g.Site, int32(i%2))
			}
		}
		if err := WriteGraph(path, g); err != nil {
			r.Fatal(err)
		}
		again, err := graph.Read(path)
		if err != nil {
			r.Fatal(err)
		}
		if again.Digest() != g.Digest() || !slices.Equal(again.Site, g.Site) || !slices.Equal(again.Sites, g.Sites) {
			r.Fatalf("read %+v, must be %+v", again, g)
		}
	})
	b := []byte(read(t, path))
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Read(path); err == nil {
		t.Error("a damaged file must be refused")
	}
}

func TestIngestRefuses(t *testing.T) {
	dir := t.TempDir()
	one := func(src, dst []int32) EdgeReader {
		return func(yield func(src, dst []int32) error) error { return yield(src, dst) }
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{WriteNodes(filepath.Join(dir, "g"), &graph.Graph{}, nil, 0, nil, graph.Build{}, 0),
			"number of nodes must be 1 to 2147483647 (got 0)"},
		{WriteNodes(filepath.Join(dir, "g"), &graph.Graph{}, nil, 3, one([]int32{0, 3}, []int32{1, 1}), graph.Build{},
			0), "edge 1 goes from node 3 to node 1, out of [0, 3)"},
		{WriteNodes(filepath.Join(dir, "g"), &graph.Graph{}, nil, 3, one([]int32{0}, nil), graph.Build{}, 0),
			"1 sources and 0 destinations"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v: something is left", left, err)
	}
}

// listed returns a list of m edges of n nodes, and counts how often it is read.
func listed(n, m int, key rng.Key, reads *int) EdgeReader {
	src, dst := make([]int32, m), make([]int32, m)
	for e := range uint64(m) {
		src[e], dst[e] = int32(key.Float64(2*e)*float64(n)), int32(key.Float64(2*e+1)*float64(n))
	}
	return func(yield func(src, dst []int32) error) error {
		*reads++
		for lo := 0; lo < m; lo += 1000 {
			if err := yield(src[lo:min(lo+1000, m)], dst[lo:min(lo+1000, m)]); err != nil {
				return err
			}
		}
		return nil
	}
}

// What a killed ingest left is no obstacle, what is not an ingest's is not removed, and a list that fails leaves
// nothing.
func TestIngestBeginsAnew(t *testing.T) {
	const n, m = 3000, 140_000
	path, reads := filepath.Join(t.TempDir(), "graph"), 0
	list := listed(n, m, rng.New(1), &reads)
	write := func(edges EdgeReader) error {
		return WriteNodes(path, &graph.Graph{Name: "list"}, nil, n, edges, graph.Build{}, 1)
	}
	if err := write(list); err != nil {
		t.Fatal(err)
	}
	want := read(t, path)
	left := shard.Incomplete(path)
	if err := errors.Join(os.Remove(path), os.MkdirAll(left, 0o777),
		os.WriteFile(filepath.Join(left, "part-pairs-0"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := write(list); err != nil || read(t, path) != want {
		t.Fatal("another file", err)
	}
	times, gone := 0, errors.New("gone")
	if err := write(func(yield func(src, dst []int32) error) error {
		if times++; times == 2 { // the first time counts
			return gone
		}
		return list(yield)
	}); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%v: something is left", err)
	}
	if err := os.MkdirAll(filepath.Join(left, "mine"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := write(list); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
