package fullbatch

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// ring returns a graph whose node i has the neighbours i ± o, with the same random offsets o for all nodes. Each
// part of any partition reads nearly every node. All nodes train.
func ring(n, degree, features, classes int) *graph.Graph {
	key := rng.New(1)
	offsets := make([]int32, 0, degree)
	for _, o := range key.Perm((n - 1) / 2)[:degree/2] {
		offsets = append(offsets, o+1, int32(n)-o-1)
	}
	g := &graph.Graph{Name: "ring", Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1),
		Col: make([]int32, 0, n*len(offsets))}}
	row := make([]int32, len(offsets))
	for i := range n {
		for k, o := range offsets {
			row[k] = int32((i + int(o)) % n)
		}
		slices.Sort(row)
		g.Adj.Col = append(g.Adj.Col, row...)
		g.Adj.RowPtr[i+1] = int64(len(g.Adj.Col))
	}
	g.X.Dense = mat.New(n, features)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.Float64(uint64(k))) - 0.5
	}
	g.Labels.Classes = classes
	g.Labels.Class = make([]int32, n)
	g.Split = make([]graph.Split, n)
	for i := range n {
		g.Labels.Class[i], g.Split[i] = int32(key.FoldString("y").Uint64(uint64(i))%uint64(classes)), graph.Train
	}
	return g
}
