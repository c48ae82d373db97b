package infer

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// FewColumns infers the columns of a victim's boundary nodes, which have few numeric columns, from all numbers that are
// sent of them: of all rounds and hops, as received. The attacker learns a linear map from the rows of its own nodes
// that it sends the victim, whose columns it has, so it needs no maps of the model. It is given class and degree, and
// so is the baseline, which has no row. Shares of variance are over boundary nodes (R², 0 = no better than the mean
// over the attacker's own nodes); AUC measures whether a value is above that mean. In the last findings the attacker
// knows all columns except one. It also tries values for that column, until the model's maps give the received rows.
// The better of its two guesses of a column counts.
func (run *Run) FewColumns(victim int) (all []Finding, err error) {
	theirs, yours, err := run.scenes(victim)
	if err != nil {
		return nil, err
	}
	var each []int
	for j := range theirs.x.Cols {
		each = append(each, j)
	}
	all = theirs.findings(yours, theirs.x, yours.x, each, nil, "a reader of the rows, given class and degree")
	search, err := run.searched(victim, theirs)
	if err != nil {
		return nil, err
	}
	return append(all, theirs.findings(yours, theirs.x, yours.x, each, search, "the same, given all other columns")...),
		nil
}

// Attribute infers a number of each node that is in no table of the run from the rows of a victim's boundary nodes. of
// returns it, by the node's number in the whole graph.
func (run *Run) Attribute(victim int, of func(node int64) float32) ([]Finding, error) {
	theirs, yours, err := run.scenes(victim)
	if err != nil {
		return nil, err
	}
	values := func(s scene) mat.Dense {
		x := mat.New(len(s.nodes), 1)
		for i, v := range s.nodes {
			x.Data[i] = of(s.own.Global[v])
		}
		return x
	}
	return theirs.findings(yours, values(theirs), values(yours), []int{0}, nil,
		"a reader of the rows, given class and degree"), nil
}

// Sent returns how many numbers of each node rows have before any hop, in all rounds of the run.
func (run *Run) Sent(victim int) (n int, err error) {
	before, _, err := run.crossing(victim)
	for _, x := range before {
		n += x.Cols
	}
	return n, err
}

// scenes are what the attacker has of a victim's nodes and of its own that the victim reads.
func (run *Run) scenes(victim int) (theirs, yours scene, err error) {
	own, mine := run.Shards[victim], run.Shards[run.Attacker]
	nodes, read := own.Boundary[run.Attacker], mine.Boundary[victim]
	if own.X.Dense.Empty() || own.X.Cols() > classmeans.MostFew || len(nodes) == 0 || run.Plan.Hops() == 0 {
		return theirs, yours, ErrNothing
	}
	width := run.Model.Encoder.Spec.Out
	if form := run.Model.Closed; form != nil {
		width = form.Spec.MapWidth(form.Spec.Alone, own.Labels.Classes)
	}
	got, err := run.Rows(victim, width)
	if err != nil {
		return theirs, yours, err
	}
	sent, err := run.RowsIn(run.Record.Sent(victim, comm.Halo), len(read), width)
	theirs = scene{own, nodes, own.X.Dense.Select(nodes), beside(got)}
	yours = scene{mine, read, mine.X.Dense.Select(read), beside(sent)}
	return theirs, yours, err
}

// searched returns a guess of column j of each of a victim's nodes by the maps of the model, their first rows and all
// other columns. It is the value between the attacker's smallest and largest whose rows are nearest to the received
// ones.
func (run *Run) searched(victim int, s scene) (func(j int, like []float64) []float64, error) {
	form := run.Model.Closed
	if form == nil {
		return func(int, []float64) []float64 { return make([]float64, len(s.nodes)) }, nil
	}
	first, _, err := run.crossing(victim)
	if err != nil {
		return nil, err
	}
	var maps []mat.Dense // of rounds that the model has
	for _, m := range form.Means[min(form.Spec.Alone, len(form.Means)):] {
		maps = append(maps, m.Value)
	}
	return func(j int, like []float64) []float64 {
		guess := make([]float64, len(s.nodes))
		if len(maps) == 0 {
			return guess
		}
		const steps = 1000
		least, most := slices.Min(like), slices.Max(like)
		one := mat.New(steps+1, s.x.Cols)
		for i := range guess {
			for k := range one.Rows {
				copy(one.Row(k), s.x.Row(i))
				one.Set(k, j, float32(least+(most-least)*float64(k)/steps))
			}
			x := run.Model.Encoder.Input(graph.Features{Dense: one})
			far := make([]float64, one.Rows)
			for r, m := range maps {
				z := closed.Times(x, m)
				for k := range far {
					for c, v := range z.Row(k) {
						d := float64(v - first[r].At(i, c))
						far[k] += d * d
					}
				}
			}
			k := slices.Index(far, slices.Min(far))
			guess[i] = float64(one.At(k, j))
		}
		return guess
	}, nil
}

// findings guesses some columns of x by what `of` knows of its own nodes, whose columns are y. With search a guess also
// has all other columns.
func (s scene) findings(
	of scene, x, y mat.Dense, columns []int, search func(j int, like []float64) []float64, holder string,
) []Finding {
	// with rows and without: of the mean column, and of that with the largest gap
	var share, area, most, best [2]float64
	for _, j := range columns {
		r2, auc := [2]float64{}, [2]float64{}
		for k, rows := range []bool{true, false} {
			given, truth := search != nil, columnOf(x, j)
			r2[k], auc[k] = scored(guessed(of.input(j, rows, given), s.input(j, rows, given), columnOf(y, j)),
				truth, columnOf(y, j))
			if given && rows {
				if share, area := scored(search(j, columnOf(y, j)), truth, columnOf(y, j)); share > r2[k] {
					r2[k], auc[k] = share, area
				}
			}
			share[k], area[k] = share[k]+r2[k]/float64(len(columns)), area[k]+auc[k]/float64(len(columns))
		}
		if r2[0]-r2[1] > most[0]-most[1] {
			most = r2
		}
		if auc[0]-auc[1] > best[0]-best[1] {
			best = auc
		}
	}
	const name = "columns in rows"
	all := []Finding{{name, holder, "share of variance", share[0], share[1], len(s.nodes)},
		{name, holder, "AUC above the mean", area[0], area[1], len(s.nodes)}}
	if len(columns) > 1 {
		all = append(all, Finding{name, holder, "share of variance, of the column that rows tell most of", most[0],
			most[1], len(s.nodes)},
			Finding{name, holder, "AUC above the mean, of the column that rows tell most of", best[0], best[1],
				len(s.nodes)})
	}
	return all
}

// scene is what is known of the nodes of a site that another one reads: all numbers that were sent of them.
type scene struct {
	own   *shard.Shard
	nodes []int32
	x     mat.Dense // their columns
	sent  mat.Dense
}

// input returns the predictors of column j: a constant, class and degree and, if they are given, rows and all other
// columns.
func (s scene) input(j int, rows, others bool) mat.Dense {
	degree := s.own.Adj.Degrees()
	parts := []mat.Dense{mat.New(len(s.nodes), 2+s.own.Labels.Classes)}
	for i, v := range s.nodes {
		parts[0].Set(i, 0, 1)
		parts[0].Set(i, 1, float32(math.Log1p(float64(degree[v]))))
		if s.own.Labels.Kind() == graph.Single && s.own.Labels.Class[v] >= 0 {
			parts[0].Set(i, 2+int(s.own.Labels.Class[v]), 1)
		}
	}
	if rows {
		parts = append(parts, s.sent)
	}
	if others {
		x := s.x.Clone()
		for i := range x.Rows {
			x.Set(i, j, 0)
		}
		parts = append(parts, x)
	}
	return beside(parts)
}

// columnOf returns column j of x.
func columnOf(x mat.Dense, j int) (all []float64) {
	for i := range x.Rows {
		all = append(all, float64(x.At(i, j)))
	}
	return all
}

// guessed guesses numbers by z, as y follow from x.
func guessed(x, z mat.Dense, y []float64) []float64 {
	mean, deviation := moments(y)
	guess := slices.Repeat([]float64{mean}, z.Rows)
	if deviation == 0 {
		return guess
	}
	for c := 1; c < x.Cols; c++ {
		m, d := moments(columnOf(x, c))
		for _, side := range []mat.Dense{x, z} {
			for i := range side.Rows {
				if side.Set(i, c, side.At(i, c)-float32(m)); d > 0 {
					side.Set(i, c, side.At(i, c)/float32(d))
				}
			}
		}
	}
	w := leastSquares(x, y)
	for i := range guess {
		guess[i] = 0
		for c, f := range z.Row(i) {
			guess[i] += w[c] * float64(f)
		}
	}
	return guess
}

// scored returns how much of the variance of truth a guess explains, about the mean of like, and the area under the ROC
// curve of values above it.
func scored(guess, truth, like []float64) (share, area float64) {
	mean, _ := moments(like)
	var above, below []float64
	left, all := 0.0, 0.0
	for i, v := range truth {
		left, all = left+(v-guess[i])*(v-guess[i]), all+(v-mean)*(v-mean)
		if v > mean {
			above = append(above, guess[i])
		} else {
			below = append(below, guess[i])
		}
	}
	if all <= 1e-12*float64(len(truth)) { // a constant
		return 0, 0.5
	}
	return max(1-left/all, 0), Area(above, below)
}

func moments(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(max(len(x), 1))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(max(len(x), 1))
	}
	return mean, math.Sqrt(deviation)
}
