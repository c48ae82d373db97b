package graph

import (
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
)

func small() *Graph {
	adj, err := FromEdges(4, []int32{0, 1}, []int32{1, 2}, []float32{1, 2}, Build{})
	if err != nil {
		panic(err)
	}
	return &Graph{Name: "small", Adj: adj, X: Features{Dense: mat.New(4, 2)}, Split: make([]Split, 4),
		Labels: Labels{Classes: 2, Class: []int32{0, 1, -1, 0}, Names: []string{"a", "b"}},
		Site:   []int32{0, 0, 1, 1}, Sites: []string{"north", "south"}, IDs: []string{"w", "x", "y", "z"}}
}

func TestGraphValidNamesTheFault(t *testing.T) {
	if err := small().Valid(); err != nil {
		t.Fatal(err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name string
		edit func(*Graph)
		want string
	}{
		{"bipartite", func(g *Graph) { g.Adj.NumSrc = 9 },
			"destinations and sources must be the same nodes (got 4 and 9)"},
		{"row pointers", func(g *Graph) { g.Adj.RowPtr[1] = 99 }, "destination 0"},
		{"source", func(g *Graph) { g.Adj.Col[0] = 4 }, "source 4"},
		{"weight", func(g *Graph) { g.Adj.Weight[1] = nan },
			"weight of edge 1 must be a finite number, 0 or more (got NaN)"},
		{"rows", func(g *Graph) { g.X.Dense.Rows = 3 }, "3 rows of features"},
		{"dense NaN", func(g *Graph) { g.X.Dense.Set(2, 1, nan) },
			"feature at row 2, column 1 must be a finite number (got NaN)"},
		{"sparse Inf", func(g *Graph) { g.X = Identity(4); g.X.Sparse.Val[3] = inf },
			"feature at row 3, column 3 must be a finite number (got +Inf)"},
		{"label", func(g *Graph) { g.Labels.Class[3] = 2 },
			"label of node 3 must be -1 (none) or a class in [0, 2) (got 2)"},
		{"labels", func(g *Graph) { g.Labels.Class = g.Labels.Class[:3] }, "3 labels for 4 nodes"},
		{"names", func(g *Graph) { g.Labels.Names = []string{"a"} }, "1 class names for 2"},
		{"bit", func(g *Graph) { g.Labels.Class, g.Labels.Bits = nil, []uint8{0, 1, 0, 1, 0, 2, 0, 0} },
			"label of node 2 for class 1 must be 0 or 1 (got 2)"},
		{"bits", func(g *Graph) { g.Labels.Class, g.Labels.Bits = nil, make([]uint8, 7) }, "7 label bits"},
		{"no bits of no class", func(g *Graph) { g.Labels = Labels{Bits: make([]uint8, 4)} }, "4 label bits"},
		{"split", func(g *Graph) { g.Split[1] = 7 }, "split of node 1: split must be 0 (none) to 3 (test) (got 7)"},
		{"splits", func(g *Graph) { g.Split = nil }, "0 split marks"},
		{"site", func(g *Graph) { g.Site[2] = 2 }, "site of node 2 is 2"},
		{"ids", func(g *Graph) { g.IDs = g.IDs[:1] }, "1 names"},
	} {
		g := small()
		c.edit(g)
		if err := g.Valid(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	g := small()
	g.X = Features{}
	if err := g.Valid(); err != nil {
		t.Errorf("a graph without features: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	x := Identity(3)
	if err := x.Valid(); err != nil || x.Rows() != 3 || x.Cols() != 3 {
		t.Fatal(err, x)
	}
	d := x.Sparse.Dense()
	for i := range 3 {
		for j := range 3 {
			if want := float32(1 - min(1, (i-j)*(i-j))); d.At(i, j) != want {
				t.Errorf("(%d, %d) is %v", i, j, d.At(i, j))
			}
		}
	}
}
