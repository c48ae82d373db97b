package compare

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/mat"
)

const (
	narrow   = 64  // up to this many columns are also read as ranks and steps
	steps    = 256 // of all columns together
	patience = 50  // epochs
)

// onFeatures trains on the features of g without edges. First come linear models on standardized columns, on columns as
// they are and on rows of unit length, and on the best of these with other penalties. Then come hidden layers, on ranks
// and steps if columns are few. It returns the model that validates best, the seconds of all and the columns of that
// model. A further layer must gain at least a standard error. shards are the parts of g.
func onFeatures(
	ctx context.Context, p heddle.Plan, g *graph.Graph, shards []*shard.Shard, event func(heddle.Event),
) (best heddle.Outcome, columns *graph.Graph, err error) {
	base, few, seconds := pooledPlan(p, "mlp"), g.X.Cols() <= narrow, 0.0
	linear := base
	linear.RowNorm, linear.Gradient().Layers, linear.Gradient().Dropout, linear.Gradient().LR,
		linear.Gradient().Decay = "none", 1, 0, 0.05, 0.005
	fit := func(q heddle.Plan, of *graph.Graph) error {
		all, err := trained(ctx, of, shards, heddle.Trial{Name: "features only", Plan: q, Pooled: true, OnEvent: event})
		if err != nil {
			return err
		}
		one, least := all.Runs[0], 0.0
		if seconds += all.Seconds; best.Runs != nil {
			last := best.Runs[0]
			if q.Gradient().Layers > last.Plan.Gradient().Layers && last.Figures != nil {
				least = last.Metric.StandardError(last.Val, float64(last.Figures.Val.Rows))
			}
			if !(one.Metric.Gain(one.Val, last.Val) > least) {
				return nil
			}
		}
		best, columns = all, of
		return nil
	}
	for k := range 7 {
		q, of := linear, g
		switch {
		case k == 0:
			of = standardized(g, false)
		case k == 2:
			q.RowNorm = "l2"
		case k == 3 || k == 4:
			q, of = best.Runs[0].Plan, columns
			q.Gradient().Decay = [...]float32{0.0005, 0.05}[k-3]
		case k > 4 && few:
			q.Gradient().LR, q.Gradient().Dropout, q.Gradient().Layers, of = base.Gradient().LR, 0.1, k-3,
				standardized(g, true)
		case k == 5:
			q, of = base, columns
			q.RowNorm = best.Runs[0].Plan.RowNorm
		case k == 6:
			continue
		}
		if err := fit(q, of); err != nil {
			return best, nil, err
		}
	}
	best.Seconds = seconds
	return best, columns, nil
}

// standardized returns g with columns of mean 0 and deviation 1, and with ranks also their ranks and whether they are
// above quantiles. Nodes that neither validate nor test decide these. Many sparse columns stay sparse: their mean
// square becomes 1.
func standardized(g *graph.Graph, ranks bool) *graph.Graph {
	one := *g
	var seen []int32
	for i, s := range g.Split {
		if s != graph.Val && s != graph.Test {
			seen = append(seen, int32(i))
		}
	}
	x := g.X.Dense
	if s := g.X.Sparse; s != nil && s.Cols > narrow {
		one.X = graph.Features{Sparse: unitSquares(s, seen)}
		return &one
	} else if s != nil {
		x = s.Dense()
	}
	var columns [][]float32
	sorted := make([]float64, len(seen))
	for j := range x.Cols {
		add := func(value func(v float64) float64) {
			column := make([]float32, x.Rows)
			for i := range column {
				column[i] = float32(value(float64(x.At(i, j))))
			}
			columns = append(columns, column)
		}
		for k, i := range seen {
			sorted[k] = float64(x.At(int(i), j))
		}
		mean, deviation := cli.Spread(sorted)
		if !(deviation > 1e-7*math.Abs(mean)) {
			continue
		}
		add(func(v float64) float64 { return (v - mean) / deviation })
		if !ranks {
			continue
		}
		slices.Sort(sorted)
		addRanks(add, sorted, max(1, steps/x.Cols))
	}
	if len(columns) == 0 {
		return g
	}
	one.X = graph.Features{Dense: mat.New(x.Rows, len(columns))}
	for j, column := range columns {
		for i, v := range column {
			one.X.Dense.Set(i, j, v)
		}
	}
	return &one
}

// unitSquares returns x with columns divided so that their mean square over the nodes seen is 1.
func unitSquares(x *mat.Sparse, seen []int32) *mat.Sparse {
	y, squares := *x, make([]float64, x.Cols)
	for _, i := range seen {
		col, val := x.Row(int(i))
		for k, j := range col {
			squares[j] += float64(val[k]) * float64(val[k])
		}
	}
	y.Val = slices.Clone(x.Val)
	for k, j := range x.Col {
		if squares[j] > 0 {
			y.Val[k] /= float32(math.Sqrt(squares[j] / float64(len(seen))))
		}
	}
	return &y
}

// addRanks adds the ranks of a column as a column, and columns that mark values above quantiles, at most `each` of
// them. sorted has the values of the column at the nodes seen.
func addRanks(add func(value func(v float64) float64), sorted []float64, each int) {
	n := float64(len(sorted))
	above := func(v float64) float64 { // share
		return 1 - float64(sort.SearchFloat64s(sorted, math.Nextafter(v, math.Inf(1))))/n
	}
	add(func(v float64) float64 {
		return math.Sqrt(3) * (float64(sort.SearchFloat64s(sorted, v))/n - above(v))
	})
	var cuts []float64
	for k := range each {
		if cut := sorted[(k+1)*len(sorted)/(each+1)]; above(cut) > 0 {
			cuts = append(cuts, cut)
		}
	}
	cuts = slices.Compact(cuts)
	for _, cut := range cuts {
		share := above(cut)
		scale := 1 / math.Sqrt(share*(1-share)*float64(len(cuts)))
		add(func(v float64) float64 {
			if v > cut {
				return (1 - share) * scale
			}
			return -share * scale
		})
	}
}
