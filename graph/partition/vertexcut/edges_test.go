package vertexcut

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/graphtest"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"pgregory.net/rapid"
)

func of(n int, ends ...int32) *graph.Graph {
	var src, dst []int32
	for k := 0; k < len(ends); k += 2 {
		src, dst = append(src, ends[k]), append(dst, ends[k+1])
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	return &graph.Graph{Adj: adj}
}

// Edges are in the order of rows: into node 0, into node 1 …
func TestVertexCutsByHand(t *testing.T) {
	triangles := of(6, 0, 1, 0, 2, 1, 2, 3, 4, 3, 5, 4, 5, 2, 3)
	for _, c := range []struct {
		what          string
		cut           Cut
		g             *graph.Graph
		parts         int
		owner, holder []int32
		replicas      int64
	}{
		// Owners of equally many edges: the middles of the nodes' lie at 0.5, 2, 4, 5.5 of 6. No
		// hubs: with the source.
		{"hvc", Parse("hvc"), graphtest.Path(4), 2, []int32{0, 0, 1, 1}, []int32{0, 0, 1, 0, 1, 1}, 6},
		// A grid of 2×2: an edge from u to v is in part (owner of u)/2·2 + (owner of v) mod 2.
		{"cvc", Parse("cvc"), graphtest.Path(4), 4, []int32{0, 1, 2, 3}, []int32{0, 1, 3, 0, 2, 3}, 10},
		// Two parts are a grid of 2×1: with the source.
		{"cvc", Parse("cvc"), graphtest.Path(4), 2, []int32{0, 0, 1, 1}, []int32{0, 0, 1, 0, 1, 1}, 6},
		// FEC as in TestFormulas, but that 1 is full when 3 comes.
		{"gvc", Parse("gvc"), graphtest.Path(4), 2, []int32{0, 1, 1, 0}, []int32{1, 0, 1, 1, 0, 1}, 8},
		{"svc", Parse("svc"), graphtest.Path(4), 2, []int32{0, 1, 1, 0}, []int32{1, 0, 1, 1, 0, 1}, 8},
		// 1–0 is first. 3–2: 2/3 for the empty part. 4–3: both alike but for 3, which is in 1.
		{"hdrf", hdrf{}, of(5, 0, 1, 2, 3, 3, 4), 2, []int32{0, 0, 1, 1, 1}, []int32{0, 0, 1, 1, 1, 1}, 5},
		// Volumes of 14 at most: the triangles are the clusters, 14 each, in part 0 and 1. 2–3: 2
		// for either part, and of node 2's two the emptier is its owner.
		{"2ps-l", twoPhase{}, triangles, 2, []int32{0, 0, 1, 1, 1, 1}, []int32{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}, 7},
	} {
		owner, holder, err := AssignEdges(c.g, c.cut, c.parts, 0)
		if err != nil || !slices.Equal(owner, c.owner) || !slices.Equal(holder, c.holder) {
			t.Errorf("%s in %d: %v, %v, %v, want %v, %v", c.what, c.parts, owner, holder, err, c.owner, c.holder)
			continue
		}
		if r, err := Measure(partition.Memory{Graph: c.g}, c.cut, c.parts, 0); err != nil || r.Replicas != c.replicas {
			t.Errorf("%s in %d: %d replicas, %v, want %d", c.what, c.parts, r.Replicas, err, c.replicas)
		}
	}
}

func TestHybridMovesEdgesOfHubs(t *testing.T) {
	for leaves, hubs := range map[int]bool{1000: false, 1001: true} {
		g := graphtest.Star(leaves)
		owner, holder, err := AssignEdges(g, Parse("hvc"), 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		for v := range int32(g.N()) {
			col, _ := g.Adj.Row(int(v))
			for k, u := range col {
				want := owner[u]
				if u == 600 && hubs {
					want = owner[v]
				}
				if got := holder[g.Adj.RowPtr[v]+int64(k)]; got != want {
					t.Fatalf("%d leaves: edge from %d to %d in part %d, want %d", leaves, u, v, got, want)
				}
			}
		}
	}
}

func TestDBHReplicatesHubs(t *testing.T) {
	g := graphtest.Star(1001)
	r, err := Measure(partition.Memory{Graph: g}, Parse("dbh"), 4, rng.New(3))
	if err != nil {
		t.Fatal(err)
	}
	if r.Replicas != r.Nodes+3 {
		t.Errorf("%d places of %d nodes, want the hub in 4 parts and all others in one", r.Replicas, r.Nodes)
	}
}

// In a cartesian cut a node meets a row and a column of the grid at most.
func TestCartesianMeetsRowAndColumn(t *testing.T) {
	g := graphtest.Communities(600, 6, 20, 0.1, rng.New(1))
	owner, holder, err := AssignEdges(g, Parse("cvc"), 12, 0)
	if err != nil {
		t.Fatal(err)
	}
	in := newPlaces(g.N(), 12)
	for v := range int32(g.N()) {
		col, _ := g.Adj.Row(int(v))
		for k, u := range col {
			in.put(u, holder[g.Adj.RowPtr[v]+int64(k)])
			in.put(v, holder[g.Adj.RowPtr[v]+int64(k)])
		}
	}
	for v := range int32(g.N()) {
		in.each(v, func(p int32) {
			if p/3 != owner[v]/3 && p%3 != owner[v]%3 {
				t.Fatalf("node %d of part %d lies in part %d, in another row and column of 4×3", v, owner[v], p)
			}
		})
	}
}

func TestVertexCutsHoldEveryEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphtest.Draw(t)
		parts := rapid.IntRange(1, g.N()).Draw(t, "parts")
		key := rng.New(rapid.Uint64().Draw(t, "seed"))
		for _, c := range named {
			owner, holder, err := AssignEdges(g, c.cut, parts, key)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			bad := func(p int32) bool { return p < 0 || int(p) >= parts }
			if len(owner) != g.N() || len(holder) != g.Adj.NumEdges() || slices.ContainsFunc(owner, bad) || slices.ContainsFunc(holder, bad) {
				t.Fatalf("%s: owners %v, holders %v", c.name, owner, holder)
			}
			r, err := Measure(partition.Memory{Graph: g}, c.cut, parts, key)
			if err != nil {
				t.Fatal(err)
			}
			sent := int64(0)
			for _, row := range r.Rows {
				for _, n := range row {
					sent += n
				}
			}
			if r.Replicas != r.Nodes+sent || r.Replication < 1 || r.Replication > float64(parts) {
				t.Fatalf("%s: %+v", c.name, r)
			}
		}
	})
}

// What streams look at pays: on a graph of communities hdrf and 2ps-l replicate less than hashing,
// and 2ps-l is even.
func TestVertexCutsFindCommunities(t *testing.T) {
	g := graphtest.Communities(4000, 16, 8, 0.9, rng.New(7))
	of := func(c Cut) Replicas {
		r, err := Measure(partition.Memory{Graph: g}, c, 8, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	dbh, hdrf, two := of(Parse("dbh")), of(hdrf{}), of(twoPhase{})
	if hdrf.Replication > 0.85*dbh.Replication || two.Replication > 0.8*dbh.Replication || two.EdgeBalance > 1.051 {
		t.Errorf("dbh %+v, hdrf %+v, 2ps-l %+v", dbh, hdrf, two)
	}
}

func TestVertexCutsRefuse(t *testing.T) {
	bad := graphtest.Path(4)
	bad.Adj.Col[0] = 77
	for _, c := range named {
		if _, _, err := AssignEdges(graphtest.Path(4), c.cut, 5, 0); err == nil || !strings.Contains(err.Error(), "parts must be 1 to 4, as many as nodes (got 5)") {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, _, err := AssignEdges(bad, c.cut, 2, 0); err == nil || !strings.Contains(err.Error(), "source 77") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r := EdgeRules{partition.Hash(), func(_, _ int32, _ *EdgeView) int32 { return 2 }}
	if _, _, err := AssignEdges(graphtest.Path(4), r, 2, 0); err == nil || !strings.Contains(err.Error(), "to part 2, out of [0, 2)") {
		t.Error(err)
	}
}

// Edges and their reverses lie together where all have one.
func TestReverseEdgesLieTogether(t *testing.T) {
	g := graphtest.Communities(500, 5, 10, 0.7, rng.New(4))
	for _, cut := range []Cut{hdrf{}, twoPhase{}} {
		at := make(map[[2]int32]int32)
		w, err := placed(partition.Memory{Graph: g}, cut, 4, 1, func(u, v, p int32) { at[[2]int32{u, v}] = p })
		if err != nil {
			t.Fatal(err)
		}
		if len(at) != g.Adj.NumEdges() {
			t.Errorf("%T: %d edges of %d", cut, len(at), g.Adj.NumEdges())
		}
		for e, p := range at {
			if q, ok := at[[2]int32{e[1], e[0]}]; !ok || p != q || !w.has(e[0], p) {
				t.Errorf("%T: edge %v in part %d, its reverse in %d", cut, e, p, q)
			}
		}
	}
}
