package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// secret is how much of what it takes to name the columns of a node's values may be in its rows. At a
// quarter our attacks find no less than at half, and DBLP loses four points of validation accuracy.
const secret = 0.5

// Coarsen rounds the columns z that a round maps the features x to, N×Width, to multiples of Grid: a node with few
// values could be found from them by enumeration. Dense features, which have no few values, and models
// without Coarse keep their columns; with Own they do not cross, and ClassRows are rounded in their place.
func (s Layout) Coarsen(x graph.Features, z mat.Dense) {
	if s.Own == 0 {
		s.coarsen(x, z, 1, 0)
	}
}

// coarsen is Coarsen of columns of that deviation; no grid is finer than least.
func (s Layout) coarsen(x graph.Features, z mat.Dense, deviation, least float64) {
	if s.Coarse == 0 || x.Sparse == nil {
		return
	}
	grids := make(map[int]float64)
	for i := range z.Rows {
		_, val := x.Sparse.Row(i)
		values := 0
		for _, v := range val {
			if v != 0 {
				values++
			}
		}
		grid, known := grids[values]
		if !known {
			grid = deviation * max(s.Grid(x.Sparse.Cols, values), least)
			grids[values] = grid
		}
		if grid == 0 {
			continue
		}
		row := z.Row(i)
		for c, v := range row {
			row[c] = float32(math.RoundToEven(float64(v)/grid) * grid)
		}
	}
}

// Grid returns the step to which the columns of a node are rounded that has so many values other than 0; 0: they
// are not. Naming its columns takes log₂ of the binomial coefficient of features and values. A column has
// deviation 1, so that a multiple of a step takes about log₂(√(2πe)/step) bits, were it of a normal
// distribution: all columns of all rounds take half of the former, at most.
func (s Layout) Grid(features, values int) float64 {
	if s.Coarse == 0 || values == 0 || values > features {
		return 0
	}
	lgamma := func(n int) float64 {
		v, _ := math.Lgamma(float64(n + 1))
		return v
	}
	name := (lgamma(features) - lgamma(values) - lgamma(features-values)) / math.Ln2
	grid := math.Sqrt(2*math.Pi*math.E) * math.Exp2(-secret*name/float64(s.Coarse))
	if grid < finest {
		return 0
	}
	return grid
}

// finest is the least grid, in deviations of a column: int8 rows are as coarse by themselves.
const finest = 1.0 / 64
