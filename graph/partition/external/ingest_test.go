package external

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/graphtest"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
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

// TestWhatIsWrittenIsRead: graphs with types, relations, columns of edges and sites are those that graph.Read reads,
// and a byte that is another is noticed.
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

// An ingest that was ended between any two of its steps goes on there, without what is done, and
// gives the same bytes; another begins anew.
func TestStoppedIngestGoesOn(t *testing.T) {
	const n, m = 3000, 140_000
	dir, reads := t.TempDir(), 0
	list, other := listed(n, m, rng.New(1), &reads), listed(n, m, rng.New(2), &reads)
	want := make(map[*EdgeReader]string)
	for k, edges := range []*EdgeReader{&list, &other} {
		path := filepath.Join(dir, fmt.Sprint("want-", k))
		if err := WriteNodes(path, &graph.Graph{Name: "list"}, nil, n, *edges, graph.Build{}, 1); err != nil {
			t.Fatal(err)
		}
		want[edges] = read(t, path)
	}
	path := filepath.Join(dir, "graph")
	// stop does what WriteNodes does until bucket last is to be sorted, and leaves what that left.
	stop := func(last int) *ingest {
		t.Helper()
		g := &ingest{n: n, dir: shard.Incomplete(path), edges: list}
		if err := g.count(1); err != nil {
			t.Fatal(err)
		}
		if err := g.resume(); err != nil {
			t.Fatal(err)
		}
		if err := g.scatter(); err != nil {
			t.Fatal(err)
		}
		if len(g.done.Buckets) < 4 {
			t.Fatalf("%d buckets, want several", len(g.done.Buckets))
		}
		var pairs, col []int32
		for k := range last {
			if err := g.sort(k, &pairs, &col); err != nil {
				t.Fatal(err)
			}
		}
		return g
	}
	finish := func(what string, edges *EdgeReader, times int) {
		t.Helper()
		reads = 0
		if err := WriteNodes(path, &graph.Graph{Name: "list"}, nil, n, *edges, graph.Build{}, 1); err != nil {
			t.Fatal(what, err)
		}
		if reads != times {
			t.Errorf("%s: the list was read %d times, want %d", what, reads, times)
		}
		if read(t, path) != want[edges] {
			t.Errorf("%s: another file", what)
		}
		if _, err := os.Stat(shard.Incomplete(path)); !os.IsNotExist(err) {
			t.Errorf("%s: %v: something is left", what, err)
		}
	}
	for _, last := range []int{0, 1, 3} {
		stop(last)
		finish(fmt.Sprint("sorted ", last), &list, 1)
	}
	stop(2)
	finish("another list", &other, 2)
	// Before all edges are dealt.
	g := stop(0)
	g.done.Dealt = false
	if err := g.save(); err != nil {
		t.Fatal(err)
	}
	finish("half dealt", &list, 2)
	stop(1)
	if err := os.WriteFile(g.journal(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	finish("no journal", &list, 2)

	// What is no longer as it was written is refused by name.
	for _, name := range []string{"part-pairs-2", "part-rows-0", "part-degree-1"} {
		for what, damage := range map[string]func([]byte) []byte{"flipped": func(b []byte) []byte {
			b[len(b)/2] ^= 4
			return b
		}, "short": func(b []byte) []byte { return b[:len(b)-3] }} {
			stop(2)
			file := filepath.Join(shard.Incomplete(path), name)
			if err := os.WriteFile(file, damage([]byte(read(t, file))), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := WriteNodes(path, &graph.Graph{Name: "list"}, nil, n, list, graph.Build{}, 1); err == nil ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: %v", name, what, err)
			}
			if err := os.RemoveAll(shard.Incomplete(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What is not an ingest's is not removed.
	if err := os.MkdirAll(filepath.Join(shard.Incomplete(path), "mine"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := WriteNodes(path, &graph.Graph{Name: "list"}, nil, n, list, graph.Build{}, 1); err == nil ||
		!strings.Contains(err.Error(), "mine") {
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
