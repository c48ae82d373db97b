package attack

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
)

// Effort bounds an attack on rows of class means.
type Effort struct {
	Rows  int // attacked at most, of the fewest values first
	Tries int // sets of columns that are compared, for each row
	Least int // values of a row that is attacked
}

// ClassRows attacks the rows that a victim sends by encoder classes: those of all rounds of the model together
// are some 20 rounded measurements of a node's features. Bag.Search looks for a set of columns that all of them
// agree with. The attacker is given more than a receiver knows for sure: the number of the node's values, its
// class and its soft labels of each round. The features must be zeros and one other value for each node.
func (run *Run) ClassRows(ctx context.Context, victim int, e Effort) (Recovery, error) {
	var sum Recovery
	if run.Model.Closed == nil {
		return sum, errors.New("encoder must be classes")
	}
	a, err := run.classAttack(victim)
	if err != nil {
		return sum, err
	}
	type target struct{ at, k int }
	var targets []target
	for i, v := range a.boundary {
		if col, val := nonZeros(a.raw, v); len(col) >= max(e.Least, 1) && slices.Max(val) == slices.Min(val) {
			targets = append(targets, target{i, len(col)})
		}
	}
	slices.SortStableFunc(targets, func(x, y target) int { return x.k - y.k })
	for _, t := range targets[:min(e.Rows, len(targets))] {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		bag := a.bag(t.at, t.k)
		if bag == nil { // the row was withheld
			sum.score(a.raw, a.boundary[t.at], Guess{}, false)
			continue
		}
		found := bag.Search(e.Tries, rng.New(run.Plan.Seed).FoldString("attack").Fold(uint64(t.at)))
		sum.score(a.raw, a.boundary[t.at], evenly(found.Set), found.Consistent)
		sum.Base += a.hits(t.at, likeliest(bag.Prior, t.k))
		sum.Linear += a.hits(t.at, likeliest(bag.Linear(), t.k))
	}
	return sum, nil
}

// ClassColumns guesses the columns of so many rows that a victim sends by encoder classes, evenly from those with the
// fewest values to those with the most: Bag.Linear, beside guesses by the columns' means of the node's class. The
// attacker is given what ClassRows is.
func (run *Run) ClassColumns(ctx context.Context, victim, most int) (Recovery, error) {
	var sum Recovery
	if run.Model.Closed == nil {
		return sum, errors.New("encoder must be classes")
	}
	a, err := run.classAttack(victim)
	if err != nil {
		return sum, err
	}
	for _, i := range spread(len(a.boundary))[:min(most, len(a.boundary))] {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		col, _ := nonZeros(a.raw, a.boundary[i])
		bag := a.bag(i, len(col))
		if bag == nil || len(col) == 0 {
			continue
		}
		sum.Tried++
		sum.Values += len(col)
		sum.Base += a.hits(i, likeliest(bag.Prior, len(col)))
		sum.Linear += a.hits(i, likeliest(bag.Linear(), len(col)))
	}
	return sum, nil
}

// evenly returns a guess of the same value in each column.
func evenly(set []int32) Guess {
	g := Guess{Col: set, Value: make([]float64, len(set))}
	for i := range g.Value {
		g.Value[i] = 1
	}
	return g
}

// likeliest returns the k columns of highest prior, ascending.
func likeliest(prior []float64, k int) []int32 {
	order := make([]int32, len(prior))
	for j := range order {
		order[j] = int32(j)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmpFloat(prior[b], prior[a]) })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// classAttack is what the attacker has of a victim's rows, and what it is given.
type classAttack struct {
	form     *closed.Form
	encoder  *nn.Encoder
	raw      graph.Features // the victim's: the truth
	boundary []int32
	z        []mat.Dense // by round: the boundary rows before any hop, as they came
	step     [][]float64 // by round and column
	soft     []mat.Dense // by round: how much each boundary node counts to each class; nil: nothing is left out
	last     mat.Dense   // of all nodes, in the last round; empty: nothing is left out
	prior    mat.Dense   // C×F: how often a node of each class has a column
	class    []int32     // of each boundary node
	factor   []float64   // by which each boundary node's rows are multiplied for their aggregates; nil: 1
}

// classAttack reads the rows and what every member has.
func (run *Run) classAttack(victim int) (*classAttack, error) {
	own, form := run.Shards[victim], run.Model.Closed
	a := &classAttack{form: form, encoder: run.Model.Encoder, raw: own.X, boundary: own.Boundary[run.Attacker]}
	classes := own.Labels.Classes
	width := form.Spec.Width(classes)
	at := 0
	for r := range form.Spec.Rounds {
		cols := width
		if r == 0 {
			cols += form.Spec.Components
		}
		rows, err := run.rows(victim, cols)
		if err != nil {
			return nil, err
		}
		if r > 0 {
			at += form.Spec.LogitHops
		}
		if form.Spec.Components > 0 { // messages of the first round have another width
			return nil, errors.New("components beside class means are attacked by ComponentRows of a run with encoder pca")
		}
		if at >= len(rows) {
			return nil, errors.New("rows of a round did not come: exchange must be halo")
		}
		a.z = append(a.z, rows[at])
		a.step = append(a.step, run.steps(rows[at]))
		at += form.Spec.Hops
	}
	if err := a.softLabels(run, own.Global); err != nil {
		return nil, err
	}
	a.priors(run)
	if _, source := graph.Factors(own.Adj.Degrees(), form.Spec.Edges()); source != nil { // only the victim has them: they are given
		for _, v := range a.boundary {
			a.factor = append(a.factor, source[v])
		}
	}
	for _, v := range a.boundary {
		a.class = append(a.class, own.Labels.Class[v])
	}
	return a, nil
}

// steps returns the grid of each column of a message: its largest magnitude is 127 steps of int8, 7 of int4.
func (run *Run) steps(z mat.Dense) []float64 {
	levels := map[string]float64{"int8": 127, "int4": 7, "bf16": 512, "float32": 1 << 20}[run.Plan.Rows]
	step := make([]float64, z.Cols)
	for i := range z.Rows {
		for c, v := range z.Row(i) {
			step[c] = max(step[c], math.Abs(float64(v))/levels)
		}
	}
	return step
}

// softLabels computes what the boundary nodes count in each round, which the attacker is given.
func (a *classAttack) softLabels(run *Run, global []int64) error {
	spec := a.form.Spec
	if !spec.LeaveOut {
		return nil
	}
	all, err := shard.Merge(run.Shards, 1)
	if err != nil {
		return err
	}
	g := &graph.Graph{Adj: all.Adj, X: all.X, Labels: all.Labels, Split: all.Split}
	x := run.Model.Encoder.Input(g.X)
	train, others := spec.Present(g.Split, g.Labels)
	y := g.Labels.Rows(train)
	nodes := make([]int32, len(a.boundary))
	for i, v := range a.boundary {
		nodes[i] = int32(global[v])
	}
	for r := range spec.Rounds {
		logits := mat.New(g.N(), g.Labels.Classes)
		if r > 0 {
			logits = a.form.UpTo(r).Infer(g, x)
		} else if spec.Residual {
			logits = spec.Prior(g.N(), a.form.Counts[0].Value.Row(0))
		}
		a.last = spec.Targets(r, train, others, y, logits)
		a.soft = append(a.soft, a.last.Select(nodes))
	}
	return nil
}

// priors estimates how often a node of each class has a column as the model tells it: its class means are over
// all nodes, weighed by the soft labels of the last round. Where there are none, and beside them with a small weight,
// training nodes and the frequency over all nodes count.
func (a *classAttack) priors(run *Run) {
	classes := run.Shards[0].Labels.Classes
	f := a.raw.Cols()
	sum, count := make([]float64, classes*f), make([]float64, classes)
	all, n := make([]float64, f), 0.0
	weigh := func(s *shard.Shard, i, c int) float64 {
		if !a.last.Empty() && !a.form.Spec.Residual {
			return float64(a.last.At(int(s.Global[i]), c))
		}
		if s.Split[i] == graph.Train && int(s.Labels.Class[i]) == c {
			return 1
		}
		return 0
	}
	for _, s := range run.Shards {
		n += float64(s.Owned)
		for i := range s.Owned {
			col, _ := nonZeros(s.X, int32(i))
			for c := range classes {
				w := weigh(s, i, c)
				count[c] += w
				for _, j := range col {
					sum[c*f+int(j)] += w
				}
			}
			for _, j := range col {
				all[j]++
			}
		}
	}
	const weight = 5 // nodes that the frequency over all nodes counts as
	a.prior = mat.New(classes, f)
	for c := range classes {
		for j := range f {
			p := (sum[c*f+j] + weight*all[j]/n) / (count[c] + weight)
			a.prior.Set(c, j, float32(min(max(p, 1e-6), 0.999)))
		}
	}
}

// bag returns the problem of finding the k values of boundary node i; nil: its row says nothing.
func (a *classAttack) bag(i, k int) *Bag {
	f := a.raw.Cols()
	b := &Bag{K: k, Prior: make([]float64, f)}
	for j := range f {
		p := float64(a.prior.At(int(a.class[i]), j))
		b.Prior[j] = math.Log(p / (1 - p))
	}
	type column struct{ round, at int }
	factor := 1.0
	if a.factor != nil {
		factor = a.factor[i]
	}
	grid := 0.0 // the sender's rounding, of rows of so many values
	if a.raw.Sparse != nil {
		grid = a.form.Spec.Grid(f, k)
	}
	var columns []column
	silent := true
	for r, z := range a.z {
		for c, s := range a.step[r] {
			if s > 0 {
				columns = append(columns, column{r, c})
				b.Target = append(b.Target, float64(z.At(i, c))/(s+factor*grid))
				silent = silent && z.At(i, c) == 0
			}
		}
	}
	if silent {
		return nil
	}
	b.Atom = make([]float64, f*len(columns))
	value := a.value(k)
	for t, at := range columns {
		means, s := a.form.Means[at.round].Value, a.step[at.round][at.at]
		part, scale := a.own(i, at.round, at.at)
		for j := range f {
			u := (1 + part) * value * float64(means.At(j, at.at))
			if part > 0 {
				inverse := float64(a.form.Inverse.Value.Data[j])
				u += part * scale * inverse * value * (float64(a.form.Centre.Value.Data[j]) - value)
			}
			b.Atom[j*len(columns)+t] = factor * u / (s + factor*grid)
		}
	}
	return b
}

// value is that of each of a bag's k columns, as the encoder sees them.
func (a *classAttack) value(k int) float64 {
	row := mat.New(1, k)
	for j := range k {
		row.Data[j] = 1
	}
	return float64(a.encoded(row).Data[0])
}

func (a *classAttack) encoded(row mat.Dense) mat.Dense {
	return a.encoder.Input(graph.Features{Dense: row}).Dense
}

// own returns how much of a row's own part was taken out of a mean (closed.Form.LeaveOwn), and the mean's scale.
func (a *classAttack) own(i, r, c int) (part, scale float64) {
	if a.soft == nil || a.form.Spec.Residual {
		return 0, 1
	}
	p, n := float64(a.soft[r].At(i, c)), float64(a.form.Counts[r].Value.At(0, c))
	scale = float64(a.form.Counts[r].Value.At(1, c))
	switch {
	case p <= 0 || n <= 0:
		return 0, scale
	case n-p > p:
		return p / (n - p), scale
	}
	return 1, scale
}

// hits counts columns of a guess that boundary node i has.
func (a *classAttack) hits(i int, set []int32) (n int) {
	col, _ := nonZeros(a.raw, a.boundary[i])
	for _, j := range set {
		if _, found := slices.BinarySearch(col, j); found {
			n++
		}
	}
	return n
}
