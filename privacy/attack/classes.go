package attack

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/graph/target"
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
// class and its soft labels of each round and, where logits alone cross, the columns that these are made of. The features must
// be zeros and one other value for each node.
func (run *Run) ClassRows(ctx context.Context, victim int, e Effort) (Recovery, error) {
	return ClassRows(ctx, []*Run{run}, victim, e)
}

// ClassRows attacks the rows that a victim sends in several runs over the same shards, such as those of the plans that
// preset auto tries: the measurements of all of them together.
func ClassRows(ctx context.Context, runs []*Run, victim int, e Effort) (Recovery, error) {
	var sum Recovery
	var views []*classAttack
	for _, run := range runs {
		if run.Model.Closed == nil {
			return sum, errors.New("encoder must be classes")
		}
		a, err := run.rowsOf(victim)
		if err != nil {
			return sum, err
		}
		if err := a.softLabels(run); err != nil {
			return sum, err
		}
		a.priors(run)
		a.give(run, run.Shards[victim])
		views = append(views, a)
	}
	run, a := runs[0], views[0]
	type target struct{ at, k int }
	var targets []target
	for i, v := range a.nodes {
		if col, val := nonZeros(a.raw, v); len(col) >= max(e.Least, 1) && slices.Max(val) == slices.Min(val) {
			targets = append(targets, target{i, len(col)})
		}
	}
	slices.SortStableFunc(targets, func(x, y target) int { return x.k - y.k })
	for _, t := range targets[:min(e.Rows, len(targets))] {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		bag := rowBag(views, t.at, t.k)
		if bag == nil { // the row was withheld
			sum.score(a.raw, a.nodes[t.at], Guess{}, false)
			continue
		}
		found := bag.Search(e.Tries, rng.New(run.Plan.Seed).FoldString("attack").Fold(uint64(t.at)))
		sum.score(a.raw, a.nodes[t.at], evenly(found.Set), found.Consistent)
		sum.Base += a.hits(t.at, likeliest(bag.Prior, t.k))
		sum.Linear += a.hits(t.at, likeliest(bag.Linear(), t.k))
	}
	return sum, nil
}

// ClassColumns guesses the columns of so many rows that a victim sends by encoder classes, evenly from those with the
// fewest values to those with the most. The attacker has all rows of a node, the model, the public sums, and the features
// and rows of its own nodes. It is given the node's true class, its degree and its number of values; soft labels cross
// with residuals alone. It guesses by Bag.Linear, and by what it learns of its own nodes beside (decoder). The
// baseline has all of this but the rows: it guesses the columns most frequent in the class, and likewise learns of its
// own nodes how they depend on the number of values and the degree. By encoder pca:K+classes the rows are those of the columns of
// classes, and the decoder has those of the components beside.
func (run *Run) ClassColumns(ctx context.Context, victim, most int) (Recovery, error) {
	return ClassColumns(ctx, []*Run{run}, victim, most)
}

// ClassColumns guesses columns by the rows of several runs over the same shards together, such as those of the plans that
// preset auto tries.
func ClassColumns(ctx context.Context, runs []*Run, victim, most int) (Recovery, error) {
	var sum Recovery
	var theirs, own []*classAttack
	// The last soft labels, which residuals have not, say how often a class has a column: the first view tells that.
	runs = slices.SortedStableFunc(slices.Values(runs), func(a, b *Run) int { return a.residuals() - b.residuals() })
	for _, run := range runs {
		if run.form() == nil {
			return sum, errors.New("encoder must be classes, or pca:K+classes")
		}
		a, err := run.rowsOf(victim)
		if err != nil {
			return sum, err
		}
		b, err := run.rowsOf(run.Attacker)
		if err != nil {
			return sum, err
		}
		for _, x := range []*classAttack{a, b} {
			if err := x.softLabels(run); err != nil {
				return sum, err
			}
			x.priors(run)
			x.guessSoftLabels()
		}
		theirs, own = append(theirs, a), append(own, b)
	}
	inside, err := learn(ctx, received(own))
	if err != nil {
		return sum, err
	}
	outside, err := learn(ctx, own[0].outside())
	if err != nil {
		return sum, err
	}
	a, rows, without := theirs[0], received(theirs), theirs[0].outside()
	for _, i := range spread(len(a.nodes))[:min(most, len(a.nodes))] {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		estimate := rows.estimate(i)
		if estimate == nil {
			continue
		}
		k := a.values(i)
		sum.Tried++
		sum.Values += k
		g := guessed{k, a.hits(i, likeliest(estimate, k)), a.hits(i, inside.guess(rows, i)),
			a.hits(i, likeliest(without.estimate(i), k)), a.hits(i, outside.guess(without, i))}
		sum.guesses = append(sum.guesses, g)
		sum.Linear, sum.Learned = sum.Linear+g.linear, sum.Learned+g.learned
		sum.Base, sum.BaseLearned = sum.Base+g.base, sum.BaseLearned+g.baseLearned
	}
	return sum, nil
}

// form is the closed form whose rows crossed: the model, or what makes the columns of classes beside components; nil: none did.
func (run *Run) form() *closed.Form {
	if run.Model.Closed != nil {
		return run.Model.Closed
	}
	return run.Model.Encoder.Classes
}

// residuals is 1 where a run's rounds learn from residuals, else 0.
func (run *Run) residuals() int {
	if run.form().Spec.Residual {
		return 1
	}
	return 0
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
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmpFloat(prior[b], prior[a]), int(a-b)) })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// classAttack is what the attacker has of a victim's rows, and what it is given.
type classAttack struct {
	form    *closed.Form
	encoder *nn.Encoder
	raw     graph.Features // the victim's: the truth
	nodes   []int32
	global  []int64     // of each node of its site
	told    mat.Dense   // N×D: all numbers that crossed, of each node
	z       []mat.Dense // by round: the rows before any hop, as they came
	step    [][]float64 // by round and column
	soft    []mat.Dense // by round: how much each boundary node counts to each class; nil: nothing is left out
	last    mat.Dense   // of all nodes, in the last round; empty: nothing is left out
	prior   mat.Dense   // C×F: how often a node of each class has a column
	class   []int32     // of each node
	degree  []float32
	factor  []float64 // by which each boundary node's rows are multiplied for their aggregates; nil: 1
}

// rowsOf returns the rows of a member: those that a victim sent the attacker, or those that the attacker sent others.
func (run *Run) rowsOf(member int) (*classAttack, error) {
	own := run.Shards[member]
	if own.Labels.Kind() != target.Single {
		return nil, errors.New("nodes must have one class each")
	}
	a := &classAttack{form: run.form(), encoder: run.Model.Encoder, raw: own.X, global: own.Global}
	var err error
	if member != run.Attacker {
		a.nodes = own.Boundary[run.Attacker]
		err = a.read(run, run.Record.Received(member, comm.Halo))
	} else {
		err = a.readSent(run)
	}
	if err != nil {
		return nil, err
	}
	if _, source := graph.Factors(own.Adj.Degrees(), a.form.Spec.Edges()); source != nil { // only the owner has them: they are given
		for _, v := range a.nodes {
			a.factor = append(a.factor, source[v])
		}
	}
	degree := own.Adj.Degrees()
	for _, v := range a.nodes {
		a.class, a.degree = append(a.class, max(own.Labels.Class[v], 0)), append(a.degree, degree[v])
	}
	return a, nil
}

// readSent reads what the attacker sent of its own nodes, each to one peer.
func (a *classAttack) readSent(run *Run) error {
	seen := make(map[int32]bool)
	for peer, nodes := range run.Shards[run.Attacker].Boundary {
		if len(nodes) == 0 {
			continue
		}
		b := &classAttack{form: a.form, nodes: nodes}
		if err := b.read(run, run.Record.Sent(peer, comm.Halo)); err != nil {
			return err
		}
		var fresh []int32
		for i, v := range nodes {
			if !seen[v] {
				seen[v] = true
				fresh, a.nodes = append(fresh, int32(i)), append(a.nodes, v)
			}
		}
		a.told = under(a.told, b.told.Select(fresh))
		for r, z := range b.z {
			if len(a.z) <= r {
				a.z, a.step = append(a.z, mat.Dense{}), append(a.step, b.step[r])
			}
			a.z[r] = under(a.z[r], z.Select(fresh))
		}
	}
	if len(a.nodes) == 0 {
		return errors.New("the attacker must have nodes that others read")
	}
	return nil
}

// under returns y under x.
func under(x, y mat.Dense) mat.Dense {
	if x.Rows == 0 {
		return y
	}
	z := mat.New(x.Rows+y.Rows, y.Cols)
	z.RowRange(0, x.Rows).CopyFrom(x)
	z.RowRange(x.Rows, z.Rows).CopyFrom(y)
	return z
}

// read reads the rows of a.nodes in messages. Those of the first round have the components beside.
func (a *classAttack) read(run *Run, messages []Message) error {
	spec := a.form.Spec
	width := spec.Width(run.Shards[0].Labels.Classes)
	rows, err := run.rows(messages, len(a.nodes), width)
	if err != nil {
		return err
	}
	if spec.Components > 0 {
		first, err := run.rows(messages, len(a.nodes), width+spec.Components)
		if err != nil {
			return err
		}
		rows = append(first, rows...)
	}
	var told []graph.Features
	if beside := run.Model.Encoder.Classes; beside != nil { // components cross, too: the decoder has them
		first, err := run.rows(messages, len(a.nodes), run.Model.Encoder.Spec.Out)
		if err != nil {
			return err
		}
		told = append(told, graph.Features{Dense: first[0]})
	}
	for _, z := range rows {
		told = append(told, graph.Features{Dense: z})
	}
	a.told = graph.Columns(told).Dense
	at := 0
	for r := range spec.Rounds {
		at += spec.LogitHopsOf(r)
		if spec.HopsOf(r) == 0 { // nothing of its columns crosses
			a.z, a.step = append(a.z, mat.New(len(a.nodes), width)), append(a.step, make([]float64, width))
			continue
		}
		if at >= len(rows) {
			return errors.New("rows of a round did not come: exchange must be halo")
		}
		a.z = append(a.z, rows[at])
		a.step = append(a.step, run.steps(rows[at]))
		at += spec.HopsOf(r)
	}
	return nil
}

// give gives the attacker the columns of all rounds, rounded as they are at home, where logits that are made of them cross and
// they do not: whoever searches by them finds what any search by the logits could.
func (a *classAttack) give(run *Run, own *shard.Shard) {
	spec := a.form.Spec
	if spec.Hops > 0 || spec.LogitHops == 0 {
		return
	}
	x := a.encoder.Input(own.X.Select(a.nodes))
	for r := range a.z {
		a.z[r] = a.sent(r, x)
		a.step[r] = run.steps(a.z[r])
	}
}

// values returns how many values node i has.
func (a *classAttack) values(i int) int {
	col, _ := nonZeros(a.raw, a.nodes[i])
	return len(col)
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

// softLabels computes what the nodes count in each round.
func (a *classAttack) softLabels(run *Run) error {
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
	nodes := make([]int32, len(a.nodes))
	for i, v := range a.nodes {
		nodes[i] = int32(a.global[v])
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

// guessSoftLabels puts in place of the soft labels what an attacker guesses that knows the class: it counts fully, but
// in the first round, where only training nodes do.
func (a *classAttack) guessSoftLabels() {
	if a.soft == nil {
		return
	}
	for r := range a.z {
		guess := mat.New(len(a.nodes), a.form.Counts[r].Value.Cols)
		if r > 0 && !a.form.Spec.Residual {
			for i, c := range a.class {
				guess.Set(i, int(c), math.Nextafter32(1, 0)) // as of a node without a label
			}
		}
		a.soft[r] = guess
	}
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

// bag returns the problem of finding the k values of node i; nil: its row says nothing.
func (a *classAttack) bag(i, k int) *Bag {
	f := a.raw.Cols()
	b := &Bag{K: k, Prior: make([]float64, f)}
	for j := range f {
		p := float64(a.prior.At(int(a.class[i]), j))
		b.Prior[j] = math.Log(p / (1 - p))
	}
	type column struct {
		round, at int
		step      float64
	}
	factor := 1.0
	if a.factor != nil {
		factor = a.factor[i]
	}
	var columns []column
	silent := true
	for r, z := range a.z {
		for c, s := range a.step[r] {
			if s == 0 {
				continue
			}
			v, step := float64(z.At(i, c))+factor*a.lead(i, r, c), s+factor*a.grid(r, c, k)
			silent = silent && z.At(i, c) == 0
			columns = append(columns, column{r, c, step})
			b.Target = append(b.Target, v/step)
		}
	}
	if silent || len(columns) == 0 {
		return nil
	}
	b.Atom = make([]float64, f*len(columns))
	value := a.value(k)
	for t, at := range columns {
		means, c := a.maps(at.round, at.at)
		part, scale := a.own(i, at.round, at.at)
		for j := range f {
			u := (1 + part) * value * float64(means.At(j, c))
			if part > 0 {
				inverse := float64(a.form.Inverse.Value.Data[j])
				u += part * scale * inverse * value * (float64(a.form.Centre.Value.Data[j]) - value)
			}
			b.Atom[j*len(columns)+t] = factor * u / at.step
		}
	}
	return b
}

// grid returns the sender's rounding of column c of round r, of a row of k values: components are not coarse.
func (a *classAttack) grid(r, c, k int) float64 {
	if a.raw.Sparse == nil || r == 0 && c < a.form.Spec.Components {
		return 0
	}
	return a.form.Spec.Grid(a.raw.Cols(), k)
}

// maps returns the map of column c of round r and the column that it is of it: components come before class means.
func (a *classAttack) maps(r, c int) (mat.Dense, int) {
	if r > 0 {
		return a.form.Means[r].Value, c
	}
	if k := a.form.Spec.Components; c >= k {
		return a.form.Means[0].Value, c - k
	}
	return a.form.Proj.Value, c
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
	if r == 0 {
		if c -= a.form.Spec.Components; c < 0 {
			return 0, 1
		}
	}
	return a.form.OwnPart(r, c, a.soft[r].At(i, c)), float64(a.form.Counts[r].Value.At(1, c))
}

// lead returns by how much less the column is for a training node.
func (a *classAttack) lead(i, r, c int) float64 {
	if a.soft == nil || r == 0 {
		return 0
	}
	return float64(a.form.Lead(r, c, a.soft[r].At(i, c)))
}

// hits counts columns of a guess that boundary node i has.
func (a *classAttack) hits(i int, set []int32) (n int) {
	col, _ := nonZeros(a.raw, a.nodes[i])
	for _, j := range set {
		if _, found := slices.BinarySearch(col, j); found {
			n++
		}
	}
	return n
}
