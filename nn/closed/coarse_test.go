package closed

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// TestGrid: all numbers of a node together tell at most half of the bits that name its columns, and the fewer the
// values the less they tell.
func TestGrid(t *testing.T) {
	s := Layout{Coarse: 21}
	for values, before := 1, math.Inf(1); values < 700; values++ {
		grid := s.Grid(1433, values)
		if grid > before {
			t.Fatalf("%d values have a grid of %g, one less %g", values, grid, before)
		}
		before = grid
		if grid == 0 {
			if values < 20 {
				t.Errorf("%d values have no grid", values)
			}
			continue
		}
		name := 0.0 // bits: the binomial coefficient, factor by factor
		for k := range values {
			name += math.Log2(float64(1433-k) / float64(k+1))
		}
		if told := 21 * math.Log2(math.Sqrt(2*math.Pi*math.E)/grid); told > name/2*(1+1e-9) {
			t.Errorf("%d values: %g bits are told of %g", values, told, name)
		}
	}
	if grid := (Layout{}).Grid(1433, 3); grid != 0 {
		t.Errorf("a model whose rows are not coarse has a grid of %g", grid)
	}
}

// TestCoarsen: rows of few values become multiples of their grid, those of many and dense ones stay.
func TestCoarsen(t *testing.T) {
	s := Layout{Coarse: 6}
	x := &mat.Sparse{Rows: 2, Cols: 500, RowPtr: []int64{0, 3, 203}}
	for j := range int32(203) {
		x.Col, x.Val = append(x.Col, j*2%500), append(x.Val, 1)
	}
	x.Val[2] = 0 // is not a value
	before := mat.View(2, 3, []float32{0.3, -7.7, 40, 0.3, -7.7, 40})
	z := before.Clone()
	s.Coarsen(graph.Features{Sparse: x}, z)
	grid := s.Grid(500, 2)
	for c, v := range z.Row(0) {
		if k := float64(v) / grid; math.Abs(k-math.Round(k)) > 1e-6 || math.Abs(float64(v-before.At(0, c))) > grid/2+1e-6 {
			t.Errorf("%g becomes %g, of multiples of %g", before.At(0, c), v, grid)
		}
	}
	if !slices.Equal(z.Row(1), before.Row(1)) {
		t.Errorf("the row of 200 values becomes %v", z.Row(1))
	}
	z = before.Clone()
	if s.Coarsen(graph.Features{Dense: mat.New(2, 500)}, z); !slices.Equal(z.Data, before.Data) {
		t.Errorf("rows of dense features become %v", z.Data)
	}
}
