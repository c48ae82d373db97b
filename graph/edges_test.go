package graph_test

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// drawColumned returns a graph of n nodes in which the edge between i and j has row i·n+j of a
// table, i < j unless it is directed.
func drawColumned(t *rapid.T) (g graph.CSR, row func(dst, src int32) int32) {
	n := rapid.IntRange(1, 12).Draw(t, "nodes")
	b := graph.Build{Directed: rapid.Bool().Draw(t, "directed")}
	row = func(dst, src int32) int32 {
		if !b.Directed {
			dst, src = max(dst, src), min(dst, src)
		}
		return src*int32(n) + dst
	}
	node := rapid.Int32Range(0, int32(n-1))
	src := rapid.SliceOfN(node, 0, 30).Draw(t, "src")
	dst := rapid.SliceOfN(node, len(src), len(src)).Draw(t, "dst")
	b.Edge = []int32{}
	for k := range src {
		b.Edge = append(b.Edge, row(dst[k], src[k]))
	}
	var weight []float32
	if rapid.Bool().Draw(t, "weighted") {
		weight = make([]float32, len(src))
		for k := range weight {
			weight[k] = float32(b.Edge[k])
		}
	}
	g, err := graph.FromEdges(n, src, dst, weight, b)
	if err != nil {
		t.Fatal(err)
	}
	return g, row
}

// TestEdgeRowsFollow: whatever becomes of an adjacency, an edge keeps its row (and its weight, which
// is the same number here).
func TestEdgeRowsFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, row := drawColumned(t)
		n := g.NumDst
		same := func(i int) int32 { return int32(i) }
		check := func(what string, g *graph.CSR, dst, src func(int) int32) {
			if err := g.Valid(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if g.Edge == nil {
				t.Fatalf("%s: the rows are lost", what)
			}
			for i := range g.NumDst {
				col, weight := g.Row(i)
				for k, e := range g.EdgeRows(i) {
					want := row(dst(i), src(int(col[k])))
					if dst(i) == src(int(col[k])) {
						want = -1 // a self-loop that a norm has added
					}
					if e != want || weight != nil && want >= 0 && strings.HasPrefix(what, "same") &&
						weight[k] != float32(want) {
						t.Fatalf("%s: edge %d of destination %d has row %d, must be %d", what, k, i, e, want)
					}
				}
			}
		}
		check("same", &g, same, same)
		back := g.Transpose(nil)
		if again := back.Transpose(nil); !reflect.DeepEqual(*again, g) {
			t.Fatalf("transposed twice it is %+v, must be %+v", *again, g)
		}
		split :=
			rapid.SliceOfN(rapid.Custom(func(t *rapid.T) graph.Split {
				return graph.Split(rapid.IntRange(0, 3).Draw(t, "mark"))
			}), n, n).Draw(t, "split")
		check("same without", g.Without(split, graph.Val, graph.Test), same, same)
		half := rapid.IntRange(0, n).Draw(t, "half")
		check("same within", g.Within(half), same, same)
		check("same first", g.First(half), same, same)
		var dst []int32
		for i := range int32(n) {
			if split[i] != graph.None {
				dst = append(dst, i)
			}
		}
		block, sources := graph.Block(&g, dst)
		check("same block", block, func(i int) int32 { return dst[i] }, func(j int) int32 { return sources[j] })
		for _, norm := range []graph.Norm{graph.Loops, graph.GCN, graph.Mean} {
			check("normalised", graph.Normalise(&g, g.Degrees(), norm), same, same)
		}
		low, high := make([]int32, n), make([]int32, n) // sources from half on are left out, and the others
		for j := range int32(n) {
			low[j], high[j] = j, -1
			if int(j) >= half {
				low[j], high[j] = -1, j
			}
		}
		all := make([]int32, n)
		for i := range all {
			all[i] = int32(i)
		}
		if union := graph.Union(g.Relabel(all, low, n), g.Relabel(all, high, n)); !reflect.DeepEqual(*union, g) {
			t.Fatalf("the union of two parts is %+v, must be %+v", *union, g)
		}
		stack := graph.Stack([]*graph.CSR{&g, &g})
		check("same stacked", stack.Relation(1, 2), same, same)
		bare := graph.CSR{NumDst: n, NumSrc: n, RowPtr: g.RowPtr, Col: g.Col}
		mixed := graph.Stack([]*graph.CSR{&bare, &g})
		check("same below edges without columns", mixed.Relation(1, 2), same, same)
		for k, e := range mixed.Relation(0, 2).Edge {
			if e != -1 || mixed.Weight != nil && mixed.Weight[k] != 1 {
				t.Fatalf("edge %d without columns has row %d, weights %v", k, e, mixed.Weight)
			}
		}
	})
}

// TestCompactEdges: the rows that are left are those of the edges, in their order.
func TestCompactEdges(t *testing.T) {
	g, err := graph.FromEdges(4, []int32{0, 2, 1, 3}, []int32{1, 2, 3, 1}, nil, graph.Build{Edge: []int32{3, 2, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	x, rows := (&graph.Relations{}).CompactEdges(&g, mat.View(4, 1, []float32{10, 11, 12, 13}))
	if !reflect.DeepEqual(rows, []int32{0, 3}) || !reflect.DeepEqual(x, mat.View(2, 1, []float32{10, 13})) {
		t.Fatalf("rows %v: %v", rows, x)
	}
	// 1 and 3 are joined twice: their lowest row stays.
	if want := []int32{1, 1, 0, 0}; !reflect.DeepEqual(g.Edge, want) {
		t.Fatalf("edges have rows %v, must have %v", g.Edge, want)
	}
	if err := (&graph.Relations{}).ValidEdges(&g, x); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []mat.Dense{{}, mat.New(1, 1)} {
		if err := (&graph.Relations{}).ValidEdges(&g, wrong); err == nil {
			t.Errorf("rows of a table of %d×%d are valid", wrong.Rows, wrong.Cols)
		}
	}
}

// TestTypesValid: a type's nodes have values in its own columns alone, dense or sparse.
func TestTypesValid(t *testing.T) {
	types := graph.Types{Names: []string{"a", "b"}, Of: []uint8{1, 0, 1}}
	shared := mat.View(3, 2, []float32{1, 2, 3, 0, 0, 4})
	if err := types.Valid(3, graph.Features{Dense: shared}); err != nil {
		t.Fatal(err)
	}
	own := types
	own.Ptr = []int64{0, 2, 4}
	apart := mat.View(3, 4, []float32{0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 4})
	for _, x := range []graph.Features{{Dense: apart}, sparse(apart)} {
		if err := own.Valid(3, x); err != nil {
			t.Fatal(err)
		}
		other := own
		other.Of = []uint8{1, 1, 1}
		if err := other.Valid(3, x); err == nil ||
			!strings.Contains(err.Error(), "node 1 of type b must have values in columns 2 to 3 only") {
			t.Errorf("a value of another type: %v", err)
		}
	}
	for _, wrong := range []graph.Types{
		{Names: []string{"a", "a"}, Of: types.Of}, {Names: []string{"a", ""}, Of: types.Of},
		{Names: types.Names, Of: types.Of[:2]}, {Names: types.Names[:1], Of: types.Of}, {Of: types.Of},
		{Names: types.Names, Of: types.Of, Ptr: []int64{0, 1}},
		{Names: types.Names, Of: types.Of, Ptr: []int64{0, 2, 1}},
	} {
		if err := wrong.Valid(3, graph.Features{Dense: shared}); err == nil {
			t.Errorf("%+v is valid", wrong)
		}
	}
}

func sparse(d mat.Dense) graph.Features {
	s := &mat.Sparse{Rows: d.Rows, Cols: d.Cols, RowPtr: []int64{0}}
	for i := range d.Rows {
		for j, v := range d.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return graph.Features{Sparse: s}
}
