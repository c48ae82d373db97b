package kernels

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// dataSets measures the neighbour sums of GCN on data sets under root; sets has their names, separated by commas. Their
// peak is reading the same rows in the same order.
func dataSets(root, sets string) (all []measure.Case, err error) {
	for _, name := range strings.FieldsFunc(sets, func(r rune) bool { return r == ',' }) {
		path := filepath.Join(root, name)
		g, err := dataset.Read(path, 0)
		if err != nil {
			return nil, err
		}
		adj := graph.Normalise(&g.Adj, g.Adj.Degrees(), graph.GCN)
		for _, n := range []int{16, 64, 128, 256} {
			var peak func(measure.Clock) float64
			if adj.NumSrc*n <= measure.Slab {
				peak = measure.Gather(adj.Col, 4*n)
			}
			all = append(all, measure.Case{
				Name: fmt.Sprintf("SpMM %s, %d wide", name, n),
				Unit: "GB/s", Work: float64(4 * n * len(adj.Col)), Peak: peak,
				Baseline: fmt.Sprintf("spmmof %s %d", filepath.Join(path, "graph.npz"), n),
				Prepare: func() func() {
					x, y := measure.Values(adj.NumSrc*n), kernels.Room(adj.NumDst*n)
					return func() { kernels.SpMM(adj.RowPtr, adj.Col, adj.Weight, n, x, n, y, n, false) }
				},
			})
		}
	}
	return all, nil
}
