package infer

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
)

// nearest is how many of the attacker's own nodes are used to estimate the length of a row in the direction of a
// victim's.
const nearest = 10

// In larger sites this many boundary nodes are attacked, and this many of the attacker's own nodes compared.
const (
	mostBoundary = 1000
	mostOwn      = 3000
)

// Degrees estimates the degrees of a victim's boundary nodes from the length of their first rows, which the owner
// multiplies by 1/√(1 + degree). Without this factor rows of components have length 1, and rows of class means are
// about as long as the attacker's own rows of the same direction. From its own nodes the attacker also learns how the
// degree depends on the length and on the number of edges between the node and the other site, which both sites know.
// The findings are the rank correlation with the true degree and the share of exact guesses. Their baselines are the
// number of edges between the sites and the commonest degree.
func (run *Run) Degrees(victim int) ([]Finding, error) {
	before, _, err := run.crossing(victim)
	if err != nil {
		return nil, err
	}
	own, mine := run.Shards[victim], run.Shards[run.Attacker]
	boundary := own.Boundary[run.Attacker][:min(len(own.Boundary[run.Attacker]), mostBoundary)]
	form := run.Model.Closed
	if form != nil && form.Spec.Mean || form == nil && (run.Plan.Gradient().Model != "gcn" ||
		run.Plan.LayerWise.Encoder.Kind != "pca") || len(boundary) == 0 {
		return nil, ErrNothing
	}
	edges := edgesBetween(own, run.Attacker)
	guess := make([]float64, len(boundary))
	if form == nil {
		components := before[0].ColRange(0, run.Model.Encoder.Proj.W.Value.Cols)
		for i := range guess {
			guess[i] = math.Round(1/dot(components.Row(i), components.Row(i)) - 1)
		}
	} else {
		guess = run.byLength(mine, victim, beside(before), edges)
	}
	degree := own.Adj.Degrees()
	var truth []float64
	count, exact, commonest := make(map[float64]int), 0.0, 0
	for i, v := range boundary {
		d := float64(degree[v])
		truth = append(truth, d)
		count[d]++
		commonest = max(commonest, count[d])
		if math.Round(max(guess[i], edges[i])) == d {
			exact++
		}
	}
	n := float64(len(truth))
	const name, holder = "degrees of boundary nodes", "a reader of the rows"
	return []Finding{
		{name, holder, "rank correlation", correlation(guess, truth), correlation(edges[:len(truth)], truth),
			len(truth)},
		{name, holder, "exact", exact / n, float64(commonest) / n, len(truth)},
	}, nil
}

// byLength guesses degrees from the lengths of rows: the line that fits the attacker's own nodes best.
func (run *Run) byLength(mine *shard.Shard, victim int, rows mat.Dense, edges []float64) []float64 {
	own, length := run.unweighed(mine)
	usual := usualLength(own, length)
	boundary, degree := mine.Boundary[victim][:min(len(mine.Boundary[victim]), mostBoundary)], mine.Adj.Degrees()
	between := edgesBetween(mine, victim)
	x, y := mat.New(len(boundary), 3), make([]float64, len(boundary))
	line := func(to []float32, ratio, edges float64) {
		copy(to, []float32{1, float32(math.Log(max(ratio, 1e-6))), float32(math.Log1p(edges))})
	}
	for i, v := range boundary {
		d := float64(degree[v])
		line(x.Row(i), usual(own.Row(int(v)), int(v))/length[v]*math.Sqrt(1+d), between[i])
		y[i] = math.Log1p(d)
	}
	w := leastSquares(x, y)
	guess := make([]float64, min(rows.Rows, mostBoundary))
	one := make([]float32, 3)
	for i := range guess {
		line(one, usual(rows.Row(i), -1)/math.Sqrt(max(dot(rows.Row(i), rows.Row(i)), 1e-12)), edges[i])
		sum := 0.0
		for k, v := range one {
			sum += w[k] * float64(v)
		}
		guess[i] = math.Expm1(sum)
	}
	return guess
}

// edgesBetween returns how many edges each of a site's boundary nodes of a peer has to nodes of that peer.
func edgesBetween(own *shard.Shard, peer int) []float64 {
	n := make([]float64, len(own.Boundary[peer]))
	for i, v := range own.Boundary[peer] {
		near, _ := own.Adj.Row(int(v))
		for _, j := range near {
			if int(j) >= own.HaloPtr[peer] && int(j) < own.HaloPtr[peer+1] {
				n[i]++
			}
		}
	}
	return n
}

// beside returns the rows of all messages next to one another.
func beside(messages []mat.Dense) mat.Dense {
	cols, first := 0, 0
	for _, m := range messages {
		cols += m.Cols
	}
	x := mat.New(messages[0].Rows, cols)
	for _, m := range messages {
		x.ColRange(first, first+m.Cols).CopyFrom(m)
		first += m.Cols
	}
	return x
}

// unweighed returns the directions and lengths of the attacker's own rows before any factor.
func (run *Run) unweighed(mine *shard.Shard) (mat.Dense, []float64) {
	form := run.Model.Closed
	x := run.Model.Encoder.Input(mine.X)
	var all []mat.Dense
	for r := form.Spec.Alone; r < len(form.Means); r++ { // nothing of the layers before is sent
		_, z := form.Source(r, x, mat.Dense{})
		all = append(all, z)
	}
	own := beside(all)
	length := make([]float64, own.Rows)
	for i := range length {
		length[i] = math.Sqrt(max(dot(own.Row(i), own.Row(i)), 1e-12))
		shorten(own.Row(i))
	}
	return own, length
}

// usualLength returns a function that estimates the length of rows in a direction: the median of the nearest of own,
// without row self.
func usualLength(own mat.Dense, length []float64) func(row []float32, self int) float64 {
	type other struct{ cosine, length float64 }
	return func(row []float32, self int) float64 {
		near := make([]other, 0, own.Rows)
		for k := 0; k < own.Rows; k += 1 + own.Rows/mostOwn {
			if k != self {
				near = append(near, other{dot(own.Row(k), row), length[k]})
			}
		}
		slices.SortFunc(near, func(a, b other) int { return -cmpFloat(a.cosine, b.cosine) })
		near = near[:min(nearest, len(near))]
		slices.SortFunc(near, func(a, b other) int { return cmpFloat(a.length, b.length) })
		return near[len(near)/2].length
	}
}

// leastSquares returns the w that minimises ‖x·w − y‖², by the normal equations and Gauss's elimination.
func leastSquares(x mat.Dense, y []float64) []float64 {
	n := x.Cols
	a := make([][]float64, n)
	for k := range a {
		a[k] = make([]float64, n+1)
		a[k][k] = 1e-6
		for i := range x.Rows {
			for c := range n {
				a[k][c] += float64(x.At(i, k)) * float64(x.At(i, c))
			}
			a[k][n] += float64(x.At(i, k)) * y[i]
		}
	}
	for k := range n { // positive definite: without pivots
		for r := range n {
			if f := a[r][k] / a[k][k]; r != k {
				for c := k; c <= n; c++ {
					a[r][c] -= f * a[k][c]
				}
			}
		}
	}
	w := make([]float64, n)
	for k := range w {
		w[k] = a[k][n] / a[k][k]
	}
	return w
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// correlation is Spearman's, equal values at the mean of their ranks.
func correlation(a, b []float64) float64 {
	a, b = ranks(a), ranks(b)
	n := float64(len(a))
	var sa, sb, aa, bb, ab float64
	for i, x := range a {
		y := b[i]
		sa, sb, aa, bb, ab = sa+x, sb+y, aa+x*x, bb+y*y, ab+x*y
	}
	v := (aa - sa*sa/n) * (bb - sb*sb/n)
	if !(v > 0) {
		return 0
	}
	return (ab - sa*sb/n) / math.Sqrt(v)
}

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmpFloat(x[i], x[j]) })
	r := make([]float64, len(x))
	for lo := 0; lo < len(order); {
		hi := lo
		for hi < len(order) && x[order[hi]] == x[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			r[i] = float64(lo+hi-1) / 2
		}
		lo = hi
	}
	return r
}
