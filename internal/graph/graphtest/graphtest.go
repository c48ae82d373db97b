// Package graphtest makes small graphs for tests.
package graphtest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// Draw returns a small graph of any kind: directed or not, weighted or not, dense, sparse or no
// features, one label or several.
func Draw(t *rapid.T) *graph.Graph {
	n := rapid.IntRange(1, 14).Draw(t, "nodes")
	node := rapid.Int32Range(0, int32(n-1))
	src := rapid.SliceOfN(node, 0, 40).Draw(t, "src")
	dst := rapid.SliceOfN(node, len(src), len(src)).Draw(t, "dst")
	var weight []float32
	if rapid.Bool().Draw(t, "weighted") {
		weight = rapid.SliceOfN(rapid.Float32Range(0, 4), len(src), len(src)).Draw(t, "weight")
	}
	adj, err := graph.FromEdges(n, src, dst, weight, graph.Build{Directed: rapid.Bool().Draw(t, "directed")})
	if err != nil {
		t.Fatal(err)
	}
	g := &graph.Graph{Name: "drawn", Adj: adj, Split: make([]graph.Split, n), Encoding: []byte(`{"a":1}`)}
	for i := range g.Split {
		g.Split[i] = graph.Split(rapid.IntRange(0, 3).Draw(t, "split"))
	}
	switch rapid.IntRange(0, 2).Draw(t, "features") {
	case 1:
		g.X.Dense = mat.New(n, 3)
		for k := range g.X.Dense.Data {
			g.X.Dense.Data[k] = float32(k)
		}
	case 2:
		g.X = graph.Identity(n)
	}
	g.Labels.Classes = 2
	switch rapid.SampledFrom([]graph.TargetKind{graph.Single, graph.Several, graph.Numbers}).Draw(t, "labels") {
	case graph.Numbers: // all of them known: NaN does not equal itself
		g.Labels.Values = rapid.SliceOfN(rapid.Float32Range(-9, 9), 2*n, 2*n).Draw(t, "values")
	case graph.Several:
		g.Labels.Bits = rapid.SliceOfN(rapid.Uint8Range(0, 1), 2*n, 2*n).Draw(t, "bits")
	default:
		g.Labels.Class = rapid.SliceOfN(rapid.Int32Range(-1, 1), n, n).Draw(t, "class")
		g.Labels.Names = []string{"left", "right"}
	}
	if rapid.Bool().Draw(t, "ids") {
		for i := range n {
			g.IDs = append(g.IDs, fmt.Sprintf("node %d", i))
		}
	}
	return g
}

// DrawTyped returns a graph as Draw does that may have types of nodes, with their own features or
// shared ones, relations, and columns of edges.
func DrawTyped(t *rapid.T) *graph.Graph {
	g := Draw(t)
	n := g.N()
	if rapid.Bool().Draw(t, "types") {
		g.Types = graph.Types{Names: []string{"left", "right", "none"},
			Of: rapid.SliceOfN(rapid.Uint8Range(0, 2), n, n).Draw(t, "type")}
		if rapid.Bool().Draw(t, "apart") {
			Apart(g)
		}
	}
	if rapid.Bool().Draw(t, "relations") {
		even, odd := make([]graph.Split, n), make([]graph.Split, n)
		for i := range n {
			even[i], odd[i] = graph.Split(i%2), graph.Split((i+1)%2)
		}
		g.Typed = graph.Relations{Names: []string{"all", "odd", "even"},
			Adj: graph.Stack([]*graph.CSR{&g.Adj, g.Adj.Without(even, 0), g.Adj.Without(odd, 0)})}
	}
	if rapid.Bool().Draw(t, "edge columns") {
		x := mat.New(g.Adj.NumEdges()/2+1, 2)
		for k := range x.Data {
			x.Data[k] = float32(k) / 4
		}
		row := rapid.Int32Range(-1, int32(x.Rows-1))
		g.Adj.Edge = rapid.SliceOfN(row, g.Adj.NumEdges(), g.Adj.NumEdges()).Draw(t, "row")
		if g.Typed.Count() > 0 {
			g.Typed.Adj.Edge = rapid.SliceOfN(row, g.Typed.Adj.NumEdges(), g.Typed.Adj.NumEdges()).Draw(t, "typed row")
		}
		g.EdgeX, _ = g.Typed.CompactEdges(&g.Adj, x)
	}
	return g
}

// Apart gives each type of g's nodes its own columns: those that all types share now, once for each.
func Apart(g *graph.Graph) {
	cols, t := g.X.Cols(), &g.Types
	if cols == 0 {
		return
	}
	t.Ptr = []int64{0}
	for range t.Names {
		t.Ptr = append(t.Ptr, t.Ptr[len(t.Ptr)-1]+int64(cols))
	}
	out := &mat.Sparse{Rows: g.N(), Cols: cols * t.Count(), RowPtr: []int64{0}}
	for i := range g.N() {
		row := g.X.Select([]int32{int32(i)}).Matrix()
		for j, v := range row.Row(0) {
			if v != 0 {
				out.Col, out.Val = append(out.Col, int32(int(t.Ptr[t.Of[i]])+j)), append(out.Val, v)
			}
		}
		out.RowPtr = append(out.RowPtr, int64(len(out.Col)))
	}
	g.X = graph.Features{Sparse: out}
}

// Path returns the path of n nodes, of two sites that take turns.
func Path(n int) *graph.Graph {
	var src, dst []int32
	for i := range int32(n - 1) {
		src, dst = append(src, i), append(dst, i+1)
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "path", Adj: adj, X: graph.Features{Dense: mat.New(n, 2)}, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: 2, Class: make([]int32, n)}, Sites: []string{"north", "south"}}
	for i := range n {
		g.Site = append(g.Site, int32(i%2))
		g.Split[i] = graph.Split(i % 4)
	}
	return g
}

// Communities returns n nodes in groups, with `edges` edges a node. A share of them, inside, stays in the group, under
// IDs that reveal nothing.
func Communities(n, groups, edges int, inside float64, key rng.Key) *graph.Graph {
	name := key.FoldString("name").Perm(n)
	var src, dst []int32
	for k := range uint64(n * edges) {
		u := int(key.Float64(3*k) * float64(n))
		v := int(key.Float64(3*k+1) * float64(n))
		if key.Float64(3*k+2) < inside {
			v = v/groups*groups + u%groups
		}
		if v < n {
			src, dst = append(src, name[u]), append(dst, name[v])
		}
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "communities", Adj: adj, Split: make([]graph.Split, n),
		X: graph.Features{Sparse: &mat.Sparse{Rows: n, Cols: 9, RowPtr: make([]int64, n+1)}}}
	for i := range n {
		g.Split[i] = graph.Split(key.FoldString("split").Uint64(uint64(i)) % 4)
		for c := range int32(key.FoldString("row").Uint64(uint64(i)) % 9) {
			g.X.Sparse.Col, g.X.Sparse.Val = append(g.X.Sparse.Col, c), append(g.X.Sparse.Val, 1)
		}
		g.X.Sparse.RowPtr[i+1] = int64(len(g.X.Sparse.Col))
	}
	return g
}

// Reseal sets length and checksums of a section file to what it has, as far as it has them, so
// that the fuzzer reaches what is behind them.
func Reseal(b []byte) {
	le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
	if len(b) < 64 {
		return
	}
	le.PutUint64(b[16:], uint64(len(b)))
	if size := le.Uint64(b[24:]); size <= uint64(len(b)-64) {
		for at := uint64(64); at+24 <= 64+size; {
			entry := b[at:]
			if from, n := le.Uint64(entry[8:]), le.Uint64(entry[16:]); from <= uint64(len(b)) && n <= uint64(len(b))-
				from {
				le.PutUint32(entry, crc32.Checksum(b[from:from+n], table))
			}
			at += (24 + 8*uint64(entry[5]) + uint64(le.Uint16(entry[6:])) + 7) / 8 * 8
		}
		le.PutUint32(b[56:], crc32.Checksum(b[64:64+size], table))
	}
	le.PutUint32(b[60:], crc32.Checksum(b[:60], table))
}

// Typed returns 40 nodes with edges of two relations and their reverses.
func Typed(t testing.TB) *graph.Graph {
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
	g := &graph.Graph{Name: "typed", Adj: adj, Typed: graph.WithInverses([]string{"a", "b"}, list),
		Split: make([]graph.Split, n), Labels: graph.Labels{Class: make([]int32, n), Classes: 1}}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	return g
}

// Star returns a node, the 600th, with edges to `leaves` others.
func Star(leaves int) *graph.Graph {
	src, dst := make([]int32, leaves), make([]int32, leaves)
	for k := range src {
		src[k], dst[k] = 600, int32(k)
		if k >= 600 {
			dst[k]++
		}
	}
	adj, err := graph.FromEdges(leaves+1, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	return &graph.Graph{Adj: adj, Split: make([]graph.Split, leaves+1)}
}

// Skewed returns a graph without edges of three classes that overlap, in shares of 7, 2 and 1 of ten nodes. 20 nodes of
// each class train. 30 of each class validate or, if drawn is false, one in six of all others.
func Skewed(drawn bool) *graph.Graph {
	const n = 2000
	key, x := rng.New(9), mat.New(n, 6)
	adj, err := graph.FromEdges(n, nil, nil, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "skewed", Adj: adj, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: 3, Class: make([]int32, n)}}
	var seen [3]int
	for i := range n {
		class := []int32{0, 0, 0, 0, 0, 0, 0, 1, 1, 2}[i%10]
		g.Labels.Class[i] = class
		for j := range x.Cols {
			x.Set(i, j, 1+0.5*float32(key.Normal(uint64(i*x.Cols+j))))
		}
		x.Set(i, int(class), x.At(i, int(class))+0.7)
		switch seen[class]++; {
		case seen[class] <= 20:
			g.Split[i] = graph.Train
		case drawn && seen[class] <= 50, !drawn && key.Fold(1).Float64(uint64(i)) < 1.0/6:
			g.Split[i] = graph.Val
		default:
			g.Split[i] = graph.Test
		}
	}
	g.X = graph.Features{Dense: x}
	return g
}
