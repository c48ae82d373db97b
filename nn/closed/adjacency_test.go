package closed

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
)

// TestAdjacencyRows: with a column for each number rows are exact; with fewer their products are, on average over
// pairs.
func TestAdjacencyRows(t *testing.T) {
	adj := &graph.CSR{NumDst: 2, NumSrc: 4, RowPtr: []int64{0, 2, 3}, Col: []int32{1, 3, 2}}
	x := AdjacencyRows(adj, []int64{5, 0, 2, 7}, 8, 8).Sparse // node 5 with 0 and 7, node 0 with 2
	if !slices.Equal(x.RowPtr, []int64{0, 3, 5}) || !slices.Equal(x.Col, []int32{0, 5, 7, 0, 2}) ||
		!slices.Equal(x.Val, []float32{1, 1, 1, 1, 1}) {
		t.Errorf("%+v", x)
	}

	const n, degree, columns = 2000, 20, 64
	var src, dst []int32
	for i := range int32(n) {
		for k := range int32(degree) {
			src, dst = append(src, (i*(k+3)+11*k*k)%n), append(dst, i)
		}
	}
	large, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	numbers, _ := graph.Identity(n).Numbers()
	exact, hashed := AdjacencyRows(&large, numbers, n, n), AdjacencyRows(&large, numbers, n, columns)
	product := func(x graph.Features, i, j int) (sum float64) {
		row := map[int32]float32{}
		col, val := x.Sparse.Row(i)
		for k, c := range col {
			row[c] = val[k]
		}
		col, val = x.Sparse.Row(j)
		for k, c := range col {
			sum += float64(val[k] * row[c])
		}
		return sum
	}
	var bias, spread float64
	for i := range n {
		d := product(hashed, i, (i+1)%n) - product(exact, i, (i+1)%n)
		bias, spread = bias+d/n, spread+d*d/n
	}
	if expected := degree * degree / float64(columns); math.Abs(bias) > 0.5 || spread > 2*expected {
		t.Errorf("products of hashed rows are off by %.3f on average, variance %.1f, must be 0 and about %.1f", bias,
			spread, expected)
	}
	if err := hashed.Sparse.Valid(); err != nil {
		t.Error(err)
	}
}
