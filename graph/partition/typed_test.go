package partition

import (
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
)

// edge is a typed edge by global IDs.
type typedEdge struct {
	relation int
	src, dst int64
}

// typedEdges returns the typed edges of all shards, each of which must occur once.
func typedEdges(t *testing.T, shards []*shard.Shard) map[typedEdge]bool {
	t.Helper()
	all := make(map[typedEdge]bool)
	for _, s := range shards {
		for row := range s.Typed.Adj.NumDst {
			col, _ := s.Typed.Adj.Row(row)
			for _, j := range col {
				e := typedEdge{row / s.Owned, s.Global[j], s.Global[row%s.Owned]}
				if all[e] {
					t.Fatalf("edge %+v occurs twice", e)
				}
				all[e] = true
			}
		}
	}
	return all
}

// TestTypedShards: every typed edge is in the shard of its destination, whatever the policy and the
// order of nodes; the halo has its source; the file has all of it.
func TestTypedShards(t *testing.T) {
	g := graphtest.Typed(t)
	want := typedEdges(t, []*shard.Shard{shard.Whole(g)})
	for _, name := range []string{"random", "multilevel", "fennel"} {
		policy, err := ParsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		shards, err := Partition(g, policy, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		for what, shards := range map[string][]*shard.Shard{"cut": shards,
			"reordered": shard.Reorder(shards, func(g *graph.CSR) []int32 { return rcm(g) })} {
			if err := shard.Consistent(shards); err != nil {
				t.Fatal(err)
			}
			if got := typedEdges(t, shards); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, %s: %d typed edges, must be the graph's %d", name, what, len(got), len(want))
			}
			dir := filepath.Join(t.TempDir(), "shards")
			if _, err := shard.WriteDir(dir, shards, shard.Meta{}); err != nil {
				t.Fatal(err)
			}
			again, files, err := shard.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for p, s := range shards {
				if !reflect.DeepEqual(again[p].Typed, s.Typed) {
					t.Fatalf("%s, %s: part %d is another after it was written and read", name, what, s.Rank)
				}
			}
			if err := files.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A bound on relations is of each of them, and of nothing where edges have no types.
func TestRelationsHaveBounds(t *testing.T) {
	g := graphtest.Typed(t)
	names := g.Typed.Names
	for _, name := range []string{"multilevel", "fennel", "restream:5"} {
		owner, err := Bounded(policy(t, name), Goal{Relations: 1.3}).Assign(g, 4, 1)
		if err != nil {
			t.Fatal(err)
		}
		held := make([][]int, len(names))
		for k := range held {
			held[k] = make([]int, 4)
			one := g.Typed.Adj.Relation(k, len(names))
			for v, p := range owner {
				held[k][p] += int(one.RowPtr[v+1] - one.RowPtr[v])
			}
			for p, n := range held[k] {
				if fair := float64(one.NumEdges()) / 4; float64(n) > max(1.3*fair, math.Ceil(fair)) {
					t.Errorf("%s: part %d has %d edges of %q, of a fair share of %v", name, p, n, names[k], fair)
				}
			}
		}
	}
	hub := graphtest.Typed(t)
	var src []int32
	for u := range int32(39) {
		src = append(src, u+1)
	}
	one, err := graph.FromEdges(40, src, make([]int32, 39), nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	hub.Adj, hub.Typed = one, graph.Relations{Names: []string{"cites"}, Adj: one}
	if _, err := Bounded(policy(t, "fennel"), Goal{Relations: 1.5}).Assign(hub, 4, 1); err == nil ||
		!strings.Contains(err.Error(), `node 0 has 39 edges of relation "cites"`) {
		t.Error(err)
	}
	plain := graphtest.Path(4)
	if _, err := Bounded(policy(t, "fennel"), Goal{Relations: 1.5}).Assign(plain, 2, 1); err == nil ||
		!strings.Contains(err.Error(), "nodes or edges have no types") {
		t.Error(err)
	}
	if _, err := Bounded(policy(t, "fennel"), Goal{Types: 1.5}).Assign(plain, 2, 1); err == nil ||
		!strings.Contains(err.Error(), "nodes or edges have no types") {
		t.Error(err)
	}
}
