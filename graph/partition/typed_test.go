package partition

import (
	"bytes"
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
