package closed

import (
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// TestGrid: all numbers of a node together tell at most half of the bits that name its columns, and above five values
// at most as many as of five, or 1.6 bits a value, 1.2 where own columns are exact; the fewer the values the less they
// tell.
func TestGrid(t *testing.T) {
	grids(t, Layout{Coarse: 21}, 1.6)
	grids(t, Layout{Coarse: 21, OwnExact: true}, 1.2)
	if grid := (Layout{}).Grid(1433, 3); grid != 0 {
		t.Errorf("a model whose rows are not coarse has a grid of %g", grid)
	}
}

// grids checks the grids of s, whose numbers may tell so many bits a value.
func grids(t *testing.T, s Layout, each float64) {
	five := 0.0
	for values, before := 1, math.Inf(1); values < 700; values++ {
		grid := s.Grid(1433, values)
		if grid > before {
			t.Fatalf("%d values have a grid of %g, one less %g", values, grid, before)
		}
		before = grid
		name := 0.0 // bits: the binomial coefficient, factor by factor
		for k := range values {
			name += math.Log2(float64(1433-k) / float64(k+1))
		}
		if values == 5 {
			five = name / 2
		}
		if grid == 0 {
			if values < 100 {
				t.Errorf("%d values have no grid", values)
			}
			continue
		}
		most := name / 2
		if values > 5 {
			most = min(most, max(five, each*float64(values)))
		}
		if told := 21 * math.Log2(math.Sqrt(2*math.Pi*math.E)/grid); told > most*(1+1e-9) {
			t.Errorf("bits of %d values must be at most %g (got %g)", values, most, told)
		}
	}
}

// TestCoarsen: rows of few values become multiples of their grid, those of many and dense ones stay. With OwnExact
// those at home stay, too.
func TestCoarsen(t *testing.T) {
	s := Layout{Coarse: 6}
	x := &mat.Sparse{Rows: 2, Cols: 500, RowPtr: []int64{0, 3, 203}}
	for j := range int32(203) {
		x.Col, x.Val = append(x.Col, j*2%500), append(x.Val, 1)
	}
	x.Val[2] = 0 // is not a value
	before := mat.View(2, 3, []float32{0.3, -7.7, 40, 0.3, -7.7, 40})
	z := before.Clone()
	s.Coarsen(0, graph.Features{Sparse: x}, z)
	grid := s.Grid(500, 2)
	for c, v := range z.Row(0) {
		if k := float64(v) / grid; math.Abs(k-math.Round(k)) > 1e-6 ||
			math.Abs(float64(v-before.At(0, c))) > grid/2+1e-6 {
			t.Errorf("%g becomes %g, of multiples of %g", before.At(0, c), v, grid)
		}
	}
	if !slices.Equal(z.Row(1), before.Row(1)) {
		t.Errorf("the row of 200 values becomes %v", z.Row(1))
	}
	z = before.Clone()
	s.AllHops, s.OwnExact = true, true
	if crossing := s.Coarsen(0, graph.Features{Sparse: x}, z); !slices.Equal(z.Data, before.Data) ||
		slices.Equal(crossing.Row(0), z.Row(0)) {
		t.Errorf("rows at home become %v and must stay, those that cross are %v", z.Data, crossing.Data)
	}
	if s.Coarsen(0, graph.Features{Dense: mat.New(2, 500)}, z); !slices.Equal(z.Data, before.Data) {
		t.Errorf("rows of dense features become %v", z.Data)
	}
}

// TestCoarseRounds: the columns of a round are rounded if they are sent, or logits of them.
func TestCoarseRounds(t *testing.T) {
	x := &mat.Sparse{Rows: 1, Cols: 500, RowPtr: []int64{0, 2}, Col: []int32{1, 2}, Val: []float32{1, 1}}
	for _, c := range []struct {
		s       Layout
		round   int
		rounded bool
	}{
		{Layout{Coarse: 6, Alone: 2}, 1, false},
		{Layout{Coarse: 6, Alone: 2}, 2, true},
		{Layout{Coarse: 6, Alone: 2, LogitHops: 1}, 0, true},
		{Layout{Coarse: 6, Own: 1, LogitHops: 1}, 0, false},
	} {
		z := c.s.Coarsen(c.round, graph.Features{Sparse: x}, mat.View(1, 1, []float32{0.123}))
		if got := z.At(0, 0) != 0.123; got != c.rounded {
			t.Errorf("%+v: round %d is rounded: %t, must be %t", c.s, c.round, got, c.rounded)
		}
	}
}

// TestClassRows: class rows have length 1 and no mean. With Coarse those of few values become multiples of a
// wide grid, and all others of the finest; the columns, which do not cross, stay.
func TestClassRows(t *testing.T) {
	x := &mat.Sparse{Rows: 2, Cols: 500, RowPtr: []int64{0, 2, 202}}
	for j := range int32(202) {
		x.Col, x.Val = append(x.Col, j*2%500), append(x.Val, 1)
	}
	of := graph.Features{Sparse: x}
	logits := mat.View(2, 4, []float32{0.5, 0.2, 0.1, 0.2, 0.5, 0.2, 0.1, 0.2})
	rows := Layout{Own: 1}.ClassRows(of, logits)
	length, sum := 0.0, 0.0
	for _, v := range rows.Row(0) {
		length, sum = length+float64(v)*float64(v), sum+float64(v)
	}
	if math.Abs(length-1) > 1e-6 || math.Abs(sum) > 1e-6 || !slices.Equal(rows.Row(0), rows.Row(1)) {
		t.Errorf("rows %v of length %g and sum %g", rows.Data, length, sum)
	}
	s := Layout{Own: 1, Coarse: 4}
	coarse := s.ClassRows(of, logits)
	for i, grid := range []float64{s.Grid(500, 2) / 2, finest / 2} {
		for c, v := range coarse.Row(i) {
			if k := float64(v) / grid; math.Abs(k-math.Round(k)) > 1e-4 ||
				math.Abs(float64(v-rows.At(i, c))) > grid/2+1e-6 {
				t.Errorf("row %d: %g becomes %g, of multiples of %g", i, rows.At(i, c), v, grid)
			}
		}
	}
	z := mat.View(2, 1, []float32{0.123, 0.456})
	if s.Coarsen(0, of, z); z.At(0, 0) != 0.123 {
		t.Errorf("a column that does not cross becomes %v", z.Data)
	}
}
