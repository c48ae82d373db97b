package partition

import (
	"reflect"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"pgregory.net/rapid"
)

// TestReorderIsTheSamePartition draws any shards: reordered they are valid, fit together, and are the same graph with
// the same owners.
func TestReorderIsTheSamePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, shards := drawCut(t)
		name := rapid.SampledFrom([]string{"degree", "rcm", "cluster"}).Draw(t, "order")
		by, err := ParseOrder(name)
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(shards[0].Global)
		out := Reorder(shards, by)
		if err := Consistent(out); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for p, s := range out {
			if err := s.Valid(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			own := slices.Sorted(slices.Values(s.Global[:s.Owned]))
			if !slices.Equal(own, shards[p].Global[:s.Owned]) || !slices.Equal(s.HaloPtr, shards[p].HaloPtr) {
				t.Fatalf("%s: part %d owns %v, want %v", name, p, own, shards[p].Global[:s.Owned])
			}
			if again, err := decode(encode(t, s.sections())); err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("%s: part %d reads back as %+v, want %+v (%v)", name, p, again, s, err)
			}
		}
		if got := together(t, out); !reflect.DeepEqual(got, together(t, shards)) || got.N() != g.N() {
			t.Fatalf("%s: together %+v, want %+v", name, got, g)
		}
		if out[0].Fingerprint == shards[0].Fingerprint || !slices.Equal(before, shards[0].Global) {
			t.Fatalf("%s: fingerprint %x as before, or the shards changed", name, out[0].Fingerprint)
		}
	})
}

// bandwidth is the longest way from a row to one that it reads.
func bandwidth(adj *graph.CSR, order []int32) (most int) {
	place := make([]int, len(order))
	for k, i := range order {
		place[i] = k
	}
	for i := range adj.NumDst {
		col, _ := adj.Row(i)
		for _, j := range col {
			most = max(most, place[i]-place[j])
		}
	}
	return most
}

// shuffled gives the nodes other numbers.
func shuffled(g *graph.Graph) *graph.CSR {
	perm := rng.New(5).Perm(g.N())
	to := make([]int32, g.N())
	order := make([]int32, g.N())
	for k, i := range perm {
		order[k], to[i] = int32(i), int32(k)
	}
	return g.Adj.Relabel(order, to, g.N())
}

func TestOrders(t *testing.T) {
	adj := shuffled(path(200))
	if b := bandwidth(adj, count(200)); b < 50 {
		t.Fatalf("bandwidth %d of a shuffled path", b)
	}
	if b := bandwidth(adj, RCM(adj)); b != 1 {
		t.Errorf("RCM gives a path bandwidth %d, want 1", b)
	}
	grid := shuffled(&graph.Graph{Adj: lattice(t, 12, 40)})
	if b := bandwidth(grid, RCM(grid)); b > 14 {
		t.Errorf("RCM gives a 12 × 40 lattice bandwidth %d, want at most 14", b)
	}
	by := ByDegree(&graph.CSR{NumDst: 5, NumSrc: 5, RowPtr: []int64{0, 1, 3, 4, 8, 8}, Col: []int32{3, 2, 3, 1, 0, 1, 2, 4}})
	if want := []int32{3, 1, 0, 2, 4}; !slices.Equal(by, want) {
		t.Errorf("by degree %v, want %v", by, want)
	}
	// Fifty communities of 64: what an edge inside one reads lies within one cluster's length or so.
	g := communities(3200, 50, 10, 0.95, rng.New(2))
	c := shuffled(g)
	near := func(order []int32) (n int) {
		place := make([]int, len(order))
		for k, i := range order {
			place[i] = k
		}
		for i := range c.NumDst {
			col, _ := c.Row(i)
			for _, j := range col {
				if d := place[i] - place[j]; -64 <= d && d <= 64 {
					n++
				}
			}
		}
		return n
	}
	if before, after := near(count(3200)), near(ByCluster(c)); after < 3*before || after < c.NumEdges()*3/4 {
		t.Errorf("%d of %d edges are near by cluster, %d before", after, c.NumEdges(), before)
	}
	for name, by := range orders {
		for _, g := range []*graph.CSR{{RowPtr: []int64{0}}, {NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 0, 0, 0}}, c} {
			if order := by(g); !slices.Equal(slices.Sorted(slices.Values(order)), count(g.NumDst)) {
				t.Errorf("%s: %v is no order of %d nodes", name, order, g.NumDst)
			}
		}
	}
	if _, err := ParseOrder("random"); err == nil {
		t.Error("order random is taken")
	}
}

// lattice returns a grid of a × b nodes.
func lattice(t *testing.T, a, b int) graph.CSR {
	var src, dst []int32
	for i := range a {
		for j := range b {
			if i+1 < a {
				src, dst = append(src, int32(i*b+j)), append(dst, int32(i*b+j+b))
			}
			if j+1 < b {
				src, dst = append(src, int32(i*b+j)), append(dst, int32(i*b+j+1))
			}
		}
	}
	adj, err := graph.FromEdges(a*b, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	return adj
}
