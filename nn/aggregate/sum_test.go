package aggregate

import (
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// TestTransposeOfOtherWeights: two graphs may share their columns and differ in weights.
func TestTransposeOfOtherWeights(t *testing.T) {
	g := graph.CSR{NumDst: 1, NumSrc: 2, RowPtr: []int64{0, 2}, Col: []int32{0, 1}, Weight: []float32{1, 2}}
	other := g
	other.Weight = []float32{3, 4}
	var ps tape.Patterns
	for _, g := range []*graph.CSR{&g, &other, &g} {
		dz := mat.View(2, 1, []float32{5, 6}) // overwritten
		sumGrad(dz, g, mat.View(1, 1, []float32{1}), &ps, false)
		if dz.Data[0] != g.Weight[0] || dz.Data[1] != g.Weight[1] {
			t.Errorf("gradient is %v, want the weights %v", dz.Data, g.Weight)
		}
	}
}
