package closed

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Bounds on the bits that all rows of a node may have in total: a fraction of the bits that name the columns of its
// values, and at most perValue for each value, except for nodes with few values. Our attacks and validation nodes
// determined them (docs/measurements/attacks.md).
const (
	secret        = 0.5
	perValue      = 1.6
	secretExact   = 0.3 // with OwnExact: the owner's exact columns compensate for both
	perValueExact = 1.2
	fewest        = 5 // number of values up to which so few bits would leave nothing of a row
)

// Rounded reports whether rows of nodes with few values are rounded.
func (s Layout) Rounded() bool { return s.Coarse > 0 }

// WithoutEdges returns s for sites that no edge connects: they send no row, so none is rounded.
func (s Layout) WithoutEdges() Layout {
	if s.Rounded() {
		s.Coarse, s.OwnExact, s.Unconnected = 0, false, true
	}
	return s
}

// Coarsen returns the columns that are aggregated, given the columns z that round r computes from the features x,
// N×Width: it rounds them to multiples of Grid. Otherwise a node with few values could be identified by enumeration.
// With OwnExact z does not change. Dense features, which have many values, and models without Coarse keep their
// columns. The columns of rounds Alone are not sent; with Own no columns are sent, and ClassRows are rounded instead.
func (s Layout) Coarsen(r int, x graph.Features, z mat.Dense) mat.Dense {
	if s.coarseIn(r) && x.Sparse != nil {
		if s.OwnExact {
			z = z.Clone()
		}
		s.coarsen(x, z, 1, 0)
	}
	return z
}

// coarseIn reports whether the columns of round r are rounded: if they are sent, or if logits that depend on them are.
func (s Layout) coarseIn(r int) bool {
	return s.Rounded() && s.Own == 0 && (r >= s.Alone || s.LogitHops > 0)
}

// coarsen is Coarsen for columns with that deviation; no grid is finer than fine.
func (s Layout) coarsen(x graph.Features, z mat.Dense, deviation, fine float64) {
	if !s.Rounded() || x.Sparse == nil {
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
			grid = deviation * max(s.Grid(x.Sparse.Cols, values), fine)
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

// Grid returns the step to which the columns of a node with the given number of nonzero values are rounded (0 = no
// rounding). A column has deviation 1. With normally distributed columns, a multiple of a step would have about
// log₂(√(2πe)/step) bits; all columns of all rounds together have at most the bits that toldBits returns.
func (s Layout) Grid(features, values int) float64 {
	if s.Coarse == 0 || values == 0 || values > features {
		return 0
	}
	grid := math.Sqrt(2*math.Pi*math.E) * math.Exp2(-s.toldBits(features, values)/float64(s.Coarse))
	if grid < finest {
		return 0
	}
	return grid
}

// toldBits returns the most bits that all columns of a node may have. Naming its values takes log₂ of the binomial
// coefficient of features and values. If values are neighbours, one bit for each would leave too little: Own protects
// edges.
func (s Layout) toldBits(features, values int) float64 {
	name := func(values int) float64 {
		lgamma := func(n int) float64 {
			v, _ := math.Lgamma(float64(n + 1))
			return v
		}
		return (lgamma(features) - lgamma(values) - lgamma(features-values)) / math.Ln2
	}
	part, each := secret, perValue
	if s.OwnExact {
		part, each = secretExact, perValueExact
	}
	if s.Adjacent > 0 {
		return part * name(values)
	}
	return min(part*name(values), max(part*name(min(values, fewest)), each*float64(values)))
}

// finest is the finest grid, in deviations of a column: int8 rows have this precision anyway.
const finest = 1.0 / 64
