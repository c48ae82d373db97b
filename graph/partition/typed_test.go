package partition

import (
	"bytes"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// typedGraph is 40 nodes with edges of two relations and their reverses.
func typedGraph(t *testing.T) *graph.Graph {
	t.Helper()
	const n = 40
	var all [2][]int32 // sources and destinations of both relations
	list := make([]*graph.CSR, 2)
	for r := range list {
		var src, dst []int32
		for k := range uint64(90) {
			src = append(src, int32(rng.New(uint64(r)).Uint64(k)%n))
			dst = append(dst, int32(rng.New(uint64(r)+7).Uint64(k)%n))
		}
		g, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
		if err != nil {
			t.Fatal(err)
		}
		list[r] = &g
		all[0], all[1] = append(all[0], src...), append(all[1], dst...)
	}
	adj, err := graph.FromEdges(n, all[0], all[1], nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "typed", Adj: adj, Typed: graph.WithInverses([]string{"a", "b"}, list), Split: make([]graph.Split, n), Labels: graph.Labels{Class: make([]int32, n), Classes: 1}}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	return g
}

// edge is a typed edge by global IDs.
type typedEdge struct {
	relation int
	src, dst int64
}

// typedEdges returns the typed edges of all shards, each of which must occur once.
func typedEdges(t *testing.T, shards []*Shard) map[typedEdge]bool {
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

// TestTypedShards: every typed edge is in the shard of its destination, whatever the policy and the order of nodes; the
// halo has its source; the file has all of it.
func TestTypedShards(t *testing.T) {
	g := typedGraph(t)
	want := typedEdges(t, []*Shard{Whole(g)})
	for _, name := range []string{"random", "multilevel", "ldg"} {
		policy, err := ParsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		shards, err := Partition(g, policy, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		for what, shards := range map[string][]*Shard{"cut": shards, "reordered": Reorder(shards, func(g *graph.CSR) []int32 { return RCM(g) })} {
			if err := Consistent(shards); err != nil {
				t.Fatal(err)
			}
			if got := typedEdges(t, shards); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, %s: %d typed edges, want the graph's %d", name, what, len(got), len(want))
			}
			for _, s := range shards {
				b := encode(t, s.sections())
				got, err := decode(b)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got.Typed, s.Typed) || !bytes.Equal(encode(t, got.sections()), b) {
					t.Fatalf("%s, %s: part %d is another after it was written and read", name, what, s.Rank)
				}
			}
		}
	}
}

// TestTypedGraphsAreNotStreamed: what is not supported is refused, not dropped.
func TestTypedGraphsAreNotStreamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "typed.graph")
	if err := WriteGraph(path, typedGraph(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenGraph(path); err == nil || !strings.Contains(err.Error(), "edges have types") {
		t.Fatalf("error is %v, want one that says that edges have types", err)
	}
}

// A bound on relations is of each of them, and of nothing where edges have no types.
func TestRelationsHaveBounds(t *testing.T) {
	g := typedGraph(t)
	names := g.Typed.Names
	for _, name := range []string{"multilevel", "ldg", "restream:5"} {
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
	hub := typedGraph(t)
	var src []int32
	for u := range int32(39) {
		src = append(src, u+1)
	}
	one, err := graph.FromEdges(40, src, make([]int32, 39), nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	hub.Adj, hub.Typed = one, graph.Relations{Names: []string{"cites"}, Adj: one}
	if _, err := Bounded(policy(t, "ldg"), Goal{Relations: 1.5}).Assign(hub, 4, 1); err == nil || !strings.Contains(err.Error(), `node 0 has 39 edges of relation "cites"`) {
		t.Error(err)
	}
	plain := path(4)
	if _, err := Bounded(policy(t, "ldg"), Goal{Relations: 1.5}).Assign(plain, 2, 1); err == nil || !strings.Contains(err.Error(), "edges have no types") {
		t.Error(err)
	}
}
