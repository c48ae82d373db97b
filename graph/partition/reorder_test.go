package partition

import (
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

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
	adj := shuffled(graphtest.Path(200))
	if b := bandwidth(adj, mat.EveryRow(200)); b < 50 {
		t.Fatalf("bandwidth %d of a shuffled path", b)
	}
	if b := bandwidth(adj, rcm(adj)); b != 1 {
		t.Errorf("RCM gives a path bandwidth %d, must be 1", b)
	}
	grid := shuffled(&graph.Graph{Adj: lattice(t, 12, 40)})
	if b := bandwidth(grid, rcm(grid)); b > 14 {
		t.Errorf("RCM gives a 12 × 40 lattice bandwidth %d, must be at most 14", b)
	}
	// Fifty communities of 64: what an edge inside one reads lies within one cluster's length or
	// so.
	g := graphtest.Communities(3200, 50, 10, 0.95, rng.New(2))
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
	if before, after := near(mat.EveryRow(3200)), near(ClusterOrder(c)); after < 3*before || after < c.NumEdges()*3/4 {
		t.Errorf("%d of %d edges are near by cluster, %d before", after, c.NumEdges(), before)
	}
	for name, by := range map[string]func(*graph.CSR) []int32{"rcm": rcm, "cluster": ClusterOrder} {
		for _, g := range []*graph.CSR{{RowPtr: []int64{0}}, {NumDst: 3, NumSrc: 3, RowPtr: []int64{0, 0, 0, 0}}, c} {
			if order := by(g); !slices.Equal(slices.Sorted(slices.Values(order)), mat.EveryRow(g.NumDst)) {
				t.Errorf("%s: %v is no order of %d nodes", name, order, g.NumDst)
			}
		}
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
