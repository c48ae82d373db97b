package recorded

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/privacy/attack"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/rng"
)

// Effort bounds an attack on rows of class means.
type Effort struct {
	Rows  int // attacked at most, of the fewest values first
	Tries int // sets of columns that are compared, for each row
	Least int // values of a row that is attacked
}

// ClassRows attacks the rows that a victim sends with encoder "classes". The rows of all rounds of the model together
// are some 20 rounded measurements of a node's features. Bag.Search looks for a set of columns that agrees with all of
// them. The attacker is given more than a receiver knows for sure: the number of the node's values, its class and its
// soft labels in every round. If peers send only logits, the attacker also gets the columns that give these logits. A
// node's features must be zeros and one other value.
func (run *Run) ClassRows(ctx context.Context, victim int, e Effort) (Recovery, error) {
	var sum Recovery
	if run.Model.Closed == nil {
		return sum, errors.New("encoder must be classes")
	}
	a, err := run.rowsOf(victim)
	if err != nil {
		return sum, err
	}
	if err := a.Know(run.Shards); err != nil {
		return sum, err
	}
	a.give(run, run.Shards[victim])
	type target struct{ at, k int }
	var targets []target
	for i, v := range a.Nodes {
		if col, val := attack.NonZeros(a.Raw, v); len(col) >= max(e.Least, 1) && slices.Max(val) == slices.Min(val) {
			targets = append(targets, target{i, len(col)})
		}
	}
	slices.SortStableFunc(targets, func(x, y target) int { return x.k - y.k })
	for _, t := range targets[:min(e.Rows, len(targets))] {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		bag := a.Bag(t.at, t.k)
		if bag == nil { // the row was withheld
			sum.score(a.Raw, a.Nodes[t.at], attack.Guess{}, false)
			continue
		}
		found := bag.Search(e.Tries, rng.New(run.Plan.Seed).FoldString("attack").Fold(uint64(t.at)))
		sum.score(a.Raw, a.Nodes[t.at], attack.Evenly(found.Set), found.Consistent)
		sum.Base += a.hits(t.at, likeliest(bag.Prior, t.k))
		sum.Linear += a.hits(t.at, likeliest(bestLinear(bag), t.k))
	}
	return sum, nil
}

// ClassColumns guesses the columns of at most `most` rows that a victim sends with encoder "classes", evenly from the
// fewest values to the most. The attacker has all rows of a node, the model, the public sums, and the features and rows
// of its own nodes. It is given the node's true class, its degree and its number of values; soft labels are sent only
// with residuals. It guesses by bestLinear, and also by what it learns from its own nodes (decoder). The baseline has
// all of this except the rows. It guesses the columns most frequent in the class, and learns from its own nodes how
// they depend on the number of values and the degree. With encoder "pca:K+classes" the rows are the columns of classes,
// and the decoder also has the components.
func (run *Run) ClassColumns(ctx context.Context, victim, most int) (Recovery, error) {
	var sum Recovery
	if run.form() == nil {
		return sum, errors.New("encoder must be classes, or pca:K+classes")
	}
	a, err := run.rowsOf(victim)
	if err != nil {
		return sum, err
	}
	own, err := run.rowsOf(run.Attacker)
	if err != nil {
		return sum, err
	}
	for _, x := range []*classAttack{a, own} {
		if err := x.Know(run.Shards); err != nil {
			return sum, err
		}
		x.guessSoftLabels()
	}
	inside, err := learn(ctx, received(own))
	if err != nil {
		return sum, err
	}
	outside, err := learn(ctx, own.outside())
	if err != nil {
		return sum, err
	}
	rows, without := received(a), a.outside()
	for _, i := range attack.Spread(len(a.Nodes))[:min(most, len(a.Nodes))] {
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

// form is the closed form whose rows were sent: the model, or the part that makes the columns of classes next to
// components (nil = none).
func (run *Run) form() *closed.Form {
	if run.Model.Closed != nil {
		return run.Model.Closed
	}
	return run.Model.Encoder.Classes
}

// classAttack is what the attacker has of a victim's rows, and what it is given.
type classAttack struct {
	attack.View
	told   mat.Dense // N×D: all numbers that were sent, of each node
	degree []float32
}

// likeliest returns the k columns of highest prior, ascending.
func likeliest(prior []float64, k int) []int32 {
	order := make([]int32, len(prior))
	for j := range order {
		order[j] = int32(j)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(prior[b], prior[a]), int(a-b)) })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// rowsOf returns the rows that a victim sent the attacker, or that the attacker sent others.
func (run *Run) rowsOf(member int) (*classAttack, error) {
	own := run.Shards[member]
	if own.Labels.Kind() != graph.Single {
		return nil, errors.New("nodes must have one class each")
	}
	a := &classAttack{View: attack.View{Form: run.form(), Encoder: run.Model.Encoder, Raw: own.X, Global: own.Global}}
	var err error
	if member != run.Attacker {
		a.Nodes = own.Boundary[run.Attacker]
		err = a.read(run, run.Record.Received(member, comm.Halo))
	} else {
		err = a.readSent(run)
	}
	if err != nil {
		return nil, err
	}
	// only the owner has them: they are given
	if _, source := graph.Factors(own.Adj.Degrees(), a.Form.Spec.Edges()); source != nil {
		for _, v := range a.Nodes {
			a.Factor = append(a.Factor, source[v])
		}
	}
	degree := own.Adj.Degrees()
	for _, v := range a.Nodes {
		a.Class, a.degree = append(a.Class, max(own.Labels.Class[v], 0)), append(a.degree, degree[v])
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
		b := &classAttack{View: attack.View{Form: a.Form, Nodes: nodes}}
		if err := b.read(run, run.Record.Sent(peer, comm.Halo)); err != nil {
			return err
		}
		var fresh []int32
		for i, v := range nodes {
			if !seen[v] {
				seen[v] = true
				fresh, a.Nodes = append(fresh, int32(i)), append(a.Nodes, v)
			}
		}
		a.told = under(a.told, b.told.Select(fresh))
		for r, z := range b.Rows {
			if len(a.Rows) <= r {
				a.Rows, a.Step = append(a.Rows, mat.Dense{}), append(a.Step, b.Step[r])
			}
			a.Rows[r] = under(a.Rows[r], z.Select(fresh))
		}
	}
	if len(a.Nodes) == 0 {
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

// read reads the rows of a.Nodes in messages.
func (a *classAttack) read(run *Run, messages []Message) error {
	spec := a.Form.Spec
	width := spec.MapWidth(spec.Alone, run.Shards[0].Labels.Classes)
	rows, err := run.RowsIn(messages, len(a.Nodes), width)
	if err != nil {
		return err
	}
	var told []graph.Features
	if beside := run.Model.Encoder.Classes; beside != nil { // components are sent, too: the decoder has them
		first, err := run.RowsIn(messages, len(a.Nodes), run.Model.Encoder.Spec.Out)
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
		if spec.HopsOf(r) == 0 { // nothing of its columns is sent
			a.Rows, a.Step = append(a.Rows, mat.New(len(a.Nodes), width)), append(a.Step, make([]float64, width))
			continue
		}
		if at >= len(rows) {
			return errors.New("rows of a round did not come: exchange must be halo")
		}
		a.Rows = append(a.Rows, rows[at])
		a.Step = append(a.Step, attack.Steps(run.Plan.Rows, rows[at]))
		at += spec.HopsOf(r)
	}
	return nil
}

// give gives the attacker the columns of all rounds, rounded as they are at home, if only logits made of them are sent.
// A search by the columns finds all that a search by the logits could.
func (a *classAttack) give(run *Run, own *shard.Shard) {
	spec := a.Form.Spec
	if spec.Hops > 0 || spec.LogitHops == 0 {
		return
	}
	x := a.Encoder.Input(own.X.Select(a.Nodes))
	for r := range a.Rows {
		a.Rows[r] = a.Sent(r, x)
		a.Step[r] = attack.Steps(run.Plan.Rows, a.Rows[r])
	}
}

// values returns how many values node i has.
func (a *classAttack) values(i int) int {
	col, _ := attack.NonZeros(a.Raw, a.Nodes[i])
	return len(col)
}

// guessSoftLabels replaces the soft labels by the guess of an attacker that knows the class: nearly 1 for that class.
// The first round has no guess, since its soft labels come from training nodes.
func (a *classAttack) guessSoftLabels() {
	if a.Soft == nil {
		return
	}
	for r := range a.Rows {
		guess := mat.New(len(a.Nodes), a.Form.Counts[r].Value.Cols)
		if r > 0 && !a.Form.Spec.Residual {
			for i, c := range a.Class {
				guess.Set(i, int(c), math.Nextafter32(1, 0)) // as of a node without a label
			}
		}
		a.Soft[r] = guess
	}
}

// hits counts columns of a guess that boundary node i has.
func (a *classAttack) hits(i int, set []int32) (n int) {
	col, _ := attack.NonZeros(a.Raw, a.Nodes[i])
	for _, j := range set {
		if _, found := slices.BinarySearch(col, j); found {
			n++
		}
	}
	return n
}
