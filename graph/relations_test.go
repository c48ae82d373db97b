package graph

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/section"
)

// triangle is three nodes that are all joined, and relations of them: a directed ring, and its edge
// 0 → 1 again.
func triangle(t *testing.T) *Graph {
	t.Helper()
	ring, err := FromEdges(3, []int32{0, 1, 2}, []int32{1, 2, 0}, nil, Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	one, err := FromEdges(3, []int32{0}, []int32{1}, nil, Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	g := &Graph{Name: "triangle", Split: make([]Split, 3), Labels: Labels{Class: []int32{-1, -1, -1}}}
	if g.Adj, err = FromEdges(3, []int32{0, 1, 2}, []int32{1, 2, 0}, nil, Build{}); err != nil {
		t.Fatal(err)
	}
	g.Typed = WithInverses([]string{"ring", "one"}, []*CSR{&ring, &one})
	return g
}

func TestWithInverses(t *testing.T) {
	g := triangle(t)
	if want := []string{"ring", "one", "ring (inverse)", "one (inverse)"}; !reflect.DeepEqual(g.Typed.Names, want) {
		t.Fatalf("relations %q, want %q", g.Typed.Names, want)
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	var list []*CSR
	for r := range 4 {
		list = append(list, g.Typed.Adj.Relation(r, 4))
	}
	for r := range 2 {
		if !reflect.DeepEqual(list[r+2], list[r].Transpose(nil)) {
			t.Errorf("relation %d is %+v, want the reverse of %+v", r+2, list[r+2], list[r])
		}
	}
	if again := Stack(list); !reflect.DeepEqual(again, g.Typed.Adj) {
		t.Errorf("stacked again %+v, was %+v", again, g.Typed.Adj)
	}
	if closed := WithInverses(g.Typed.Names, list); closed.Count() != 4 {
		t.Errorf("%d relations of a set that has all reverses, want the same 4", closed.Count())
	}
}

// TestRelationsWithout: edges of held-out nodes are gone from every relation, and nothing else.
func TestRelationsWithout(t *testing.T) {
	g := triangle(t)
	out := g.Typed.Without([]Split{None, Test, None}, Test)
	for row := range out.NumDst {
		got, _ := out.Row(row)
		var want []int32
		all, _ := g.Typed.Adj.Row(row)
		for _, j := range all {
			if row%3 != 1 && j != 1 {
				want = append(want, j)
			}
		}
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("row %d is %v, want %v", row, got, want)
		}
	}
}

func TestRelationsInSections(t *testing.T) {
	g := triangle(t)
	var b bytes.Buffer
	if err := section.Encode(&b, GraphKind, g.Sections()); err != nil {
		t.Fatal(err)
	}
	f, err := section.Decode("file", GraphKind, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var typed Relations
	if err := typed.read(f, &g.Adj); err != nil || !reflect.DeepEqual(typed, g.Typed) {
		t.Fatalf("read %+v, %v, want %+v", typed, err, g.Typed)
	}
	plain := *g
	plain.Typed = Relations{}
	if plain.Digest() == g.Digest() {
		t.Error("relations do not change the digest")
	}
	for what, change := range map[string]func(*Relations){
		"joins source":    func(r *Relations) { r.Adj.Col[0] = int32(r.Adj.NumDst/4) - 3 }, // 0 → 0
		"1 relations":     func(r *Relations) { r.Names = r.Names[:1] },
		"of no relation":  func(r *Relations) { r.Names = nil },
		"strictly ascend": func(r *Relations) { r.Adj.RowPtr[1], r.Adj.RowPtr[2], r.Adj.Col[1] = 2, 2, r.Adj.Col[0] },
		"weight of edge 0 must be a finite number, 0 or more (got -1)": func(r *Relations) {
			r.Adj.Weight = []float32{-1, 1, 1, 1, 1, 1, 1, 1}
		},
	} {
		h := triangle(t)
		change(&h.Typed)
		if err := h.Valid(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error is %v, want one that says %q", err, what)
		}
	}
}
