package classmeans

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/linear"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
)

// candidate is one regression: which columns it has, from 1, and its weights with the constant last.
type candidate struct {
	columns []int
	random  bool // columns after all rounds' are the head's random features
	penalty float64
	weights mat.Dense
	scales  []eval.Scale // of the bins of its AUC
}

// choice is what validation nodes say of a round's candidates. The mean of their weights is the head's (ADR 76).
type choice struct {
	all       []candidate
	counts    []float64    // how much each of them counts to the mean
	val, loss float64      // mean of theirs; NaN without validation nodes
	margin    float64      // half a standard error of the best
	scales    []eval.Scale // of the bins of the mean's AUC
}

// leastPenalty is the smallest penalty of a solution that counts in the mean. Smaller ones give large weights that
// cancel each other, and would pass on the rounding errors of sums, which depend on their order.
const leastPenalty = 0.01

// rate returns the rate of the exponential weights if n nodes validate: a candidate's count falls by e^rate for each
// node that it gets wrong and the best one gets right. The fewer nodes validate, the less evidence is one of them. The
// rate was chosen on validation nodes that took no part (ADR 76).
func rate(n float64) float64 { return min(0.3*max(n/500, 1), 1) }

// countGrid is the unit of the counts of a mean: far more than processors round apart.
const countGrid = 1.0 / 4096

// solve solves the head of round r for every penalty and for several sets of columns, all from the
// same equations, and makes the mean of the best by validation the head's weights.
func (t *Trainer) solve(ctx context.Context, r int, y mat.Dense, weight []float32) (choice, error) {
	head := t.model.Closed.Heads[r]
	equations := t.normal
	if head.Freq != nil {
		for j := range head.Mean.Value.Cols {
			mean, deviation := t.normal.Moments(j + 1)
			head.Mean.Value.Data[j], head.Scale.Value.Data[j] = float32(mean), 0
			if deviation > 1e-7*math.Abs(mean) {
				head.Scale.Value.Data[j] = float32(1 / deviation)
			}
		}
		var err error
		if equations, err = t.withRandom(ctx, r, y, weight); err != nil {
			return choice{}, err
		}
	}
	var all []candidate
	sets, lambdas := t.sets(r, equations.Columns()), t.config.lambdas()
	if len(sets)*len(lambdas) > mostCandidates {
		lambdas = secondOf(lambdas)
	}
	for _, set := range sets {
		solved, err := equations.Solve(ctx, set.columns, lambdas)
		if err != nil {
			return choice{}, err
		}
		for i, w := range solved {
			one := candidate{columns: set.columns, random: set.random, penalty: lambdas[i], weights: w}
			if t.config.Metric == "auc" {
				one.scales = t.scalesOf(equations.Predicted(one.columns, w))
			}
			all = append(all, one)
		}
	}
	best, err := t.validate(ctx, r, all)
	if err != nil {
		return choice{}, err
	}
	best.mean(head)
	if t.config.Metric == "auc" {
		w := mat.New(head.Weight.Value.Rows+1, t.config.Classes)
		copy(w.Data, head.Weight.Value.Clone().Data)
		copy(w.Row(w.Rows-1), head.Bias.Value.Data)
		best.scales = t.scalesOf(equations.Predicted(span(1, w.Rows), w))
	}
	if t.model.Closed.Spec.Multi {
		for k := range head.Bias.Value.Data {
			head.Bias.Value.Data[k] -= closed.Half
		}
	}
	return best, nil
}

// mean sets the weights of head to the mean of the candidates' weights.
func (c choice) mean(head *closed.Head) {
	columns, weights := make([][]int, len(c.all)), make([]mat.Dense, len(c.all))
	for i, one := range c.all {
		columns[i], weights[i] = one.columns, one.weights
	}
	head.Average(columns, weights, c.counts)
}

// withRandom returns the normal equations with the head's random features behind the columns of all rounds.
func (t *Trainer) withRandom(ctx context.Context, r int, y mat.Dense, weight []float32) (linear.Normal, error) {
	head := t.model.Closed.Heads[r]
	// Standardised columns and random features all have products of about the same size, so that one
	// grid serves them.
	random, d := head.Freq.Value.Cols, t.normal.Columns()
	own, k := t.part(r, random, y, weight, head), t.joint()
	c := &comm.Contribution{ID: t.id("normal equations of random features", r, 0), Update: slices.Clone(own),
		Bits: t.config.RandomBits(t.shard.Parts, t.Labels.Labelled), UpdateLimit: t.randomLimit(d, random, k)}
	said, err := t.Reducer.Reduce(ctx, c)
	if err != nil {
		return linear.Normal{}, err
	}
	equations, err := t.withColumns(t.normal, c.Update, random, head)
	if err != nil {
		return linear.Normal{}, err
	}
	mine, err := t.withColumns(t.own, own, random, head)
	if err != nil {
		return linear.Normal{}, err
	}
	k.From, k.Apart = d, largest(said.Error)
	return equations, t.checkEquations(ctx, r, equations, mine, k)
}

// withColumns extends n by the random features, from sums of their products with standardised columns.
func (t *Trainer) withColumns(n linear.Normal, sums []float32, random int, head *closed.Head) (linear.Normal, error) {
	mean, scale := head.Mean.Value.Data, head.Scale.Value.Data
	d, all := n.Columns(), sums
	for i := range random {
		for j := range d - 1 {
			if scale[j] > 0 { // rounded twice on every processor: one that fuses the two would solve other equations
				sums[1+j] = sums[1+j]/scale[j] + float32(mean[j]*sums[0])
			} else {
				sums[1+j] = mean[j] * sums[0]
			}
		}
		sums = sums[d+i+1:]
	}
	return n.Extend(all, random, t.config.Classes)
}

// sets returns the sets to try of the first `columns` columns: this round's, the last two rounds', all, all with only
// the last hop, all rounds before any hop, and all with random features if there are any.
func (t *Trainer) sets(r, columns int) (all []candidate) {
	spec := t.model.Spec.Closed
	starts := []int{1} // first column of each round
	for k := range r + 1 {
		starts = append(starts, starts[k]+spec.Columns(k, t.config.Classes))
	}
	end := starts[r+1]
	for from := r; from >= 0; from-- {
		if from == r || from == r-1 || from == 0 {
			all = append(all, candidate{columns: span(starts[from], end)})
			if spec.AllHops && spec.HopsOf(r) > 1 && !t.config.Few && from != r-1 {
				all = append(all, candidate{columns: t.oneHop(from, r, starts, closed.Layout.HopsOf)})
			}
		}
	}
	if spec.AllHops && spec.HopsOf(r) > 0 {
		own := t.oneHop(0, r, starts, func(closed.Layout, int) int { return 0 })
		own = append(own, span(starts[1]-spec.OwnFeatures, starts[1])...)
		slices.Sort(own)
		all = append(all, candidate{columns: own})
	}
	if columns > end {
		all = append(all, candidate{columns: span(1, columns), random: true})
	}
	return all
}

// oneHop returns the columns of the maps of rounds from to r after as many hops as of returns for each.
func (t *Trainer) oneHop(from, r int, starts []int, of func(closed.Layout, int) int) (columns []int) {
	spec := t.model.Spec.Closed
	for k := from; k <= r; k++ {
		width := spec.MapWidth(k, t.config.Classes)
		at := starts[k] + of(*spec, k)*width
		if k > 0 {
			at += spec.LogitHopsOf(k) * spec.Width(t.config.Classes)
		}
		columns = append(columns, span(at, at+width)...)
	}
	return columns
}

// lambdas returns the penalties to try: where a candidate takes the counts of a curve, or of sums, every second.
func (c Config) lambdas() []float64 {
	if !c.Metric.Ranks() && !c.numbers() {
		return c.Lambdas
	}
	return secondOf(c.Lambdas)
}

// secondOf returns every second penalty.
func secondOf(all []float64) (some []float64) {
	for k := 0; k < len(all); k += 2 {
		some = append(some, all[k])
	}
	return some
}

// mostCandidates is how many regressions one sum compares, of at most mostSets sets of columns.
const (
	mostCandidates = 64
	mostSets       = 7
)

// span returns lo to hi−1.
func span(lo, hi int) (all []int) {
	for i := lo; i < hi; i++ {
		all = append(all, i)
	}
	return all
}

// selectionBins is the resolution of AP while candidates are compared, all in one sum, and scaledBins the resolution of
// AUC, whose bins follow a candidate's log-odds.
const (
	selectionBins = 64
	scaledBins    = 16
)

// accumulator returns what counts the metric: AP in `bins` bins, AUC in `scaled` scaled ones, any other metric without
// bins.
func (c Config) accumulator(labels graph.Labels, bins, scaled int) eval.Accumulator {
	if c.Metric == "auc" || c.Metric == eval.Auto {
		bins = scaled
	}
	return eval.NewAccumulator(c.Metric, labels, bins)
}

// compared returns what candidates are compared by.
func (c Config) compared(labels graph.Labels) eval.Accumulator {
	return c.accumulator(labels, selectionBins, scaledBins).Alone()
}

// Compared returns how many counts all candidates of a round take together at most, and how many of them are wide.
func (c Config) Compared() (counts, wide int) {
	counts = min(mostSets*len(c.lambdas()), mostCandidates)
	if c.Metric == "accuracy" && c.Task == graph.Single.String() {
		return counts, 0
	}
	size, wide := sized(c.compared(c.none()))
	return counts * size, counts * wide
}

// Measured returns how many counts the metric of the result takes for each of two splits, and how many of them are
// wide.
func (c Config) Measured() (counts, wide int) { return sized(c.measured(c.none())) }

// none returns the labels of no node.
func (c Config) none() graph.Labels {
	kind, _ := graph.KindNamed(c.Task)
	return graph.Labels{Classes: c.Classes}.None(kind, 0)
}

// sized returns how many counts a has, and how many of them are wide.
func sized(a eval.Accumulator) (counts, wide int) {
	for i := range a.Size() {
		if a.Wide(i) {
			wide++
		}
	}
	return a.Size(), wide
}

// scalesOf returns where the log-odds of each ranking lie, by mean and deviation of the outputs of a regression on each
// class. Outputs of exclusive classes add up to 1. So log-odds of two are 2s − 1 for an output of s; of more classes,
// whose outputs are near one another, they follow about the same line in s as if all others were equal.
func (t *Trainer) scalesOf(mean, deviation []float64) (all []eval.Scale) {
	if t.config.Task == graph.Several.String() {
		for k, m := range mean {
			all = append(all, eval.Scale{Centre: m - closed.Half, Width: deviation[k]})
		}
		return all
	}
	others := float64(len(mean) - 1)
	factor := 1 + 1/others
	for k, m := range mean {
		all = append(all,
			eval.Scale{Centre: float64(factor*m) - 1/others - math.Log(others), Width: factor * deviation[k]})
	}
	if len(all) == 2 {
		positive := t.Labels.Positive()
		return all[positive:][:1]
	}
	return all
}

// validate sums the metric of every candidate over the validation nodes of all peers and returns those that are alike
// the best; without validation nodes the one with the penalty in the middle and all columns.
func (t *Trainer) validate(ctx context.Context, r int, all []candidate) (choice, error) {
	validating := t.shard.NodesIn(graph.Val)
	labels := t.shard.Labels.Select(validating)
	accuracy := t.config.Metric == "accuracy" && !labels.Multi()
	a := t.config.compared(t.shard.Labels)
	size := a.Size()
	if accuracy {
		size = 1 // nodes that are right
	}
	c := &comm.Contribution{ID: t.id("validation", r, 0), Counts: make([]int64, len(all)*size+1)}
	// Counts of some nodes add up, whatever the metric: they are whole numbers, as the counts of several peers are.
	var space closed.Columns
	for nodes := range slices.Chunk(validating, rowsAtOnce) {
		columns, of := t.full.rows(&space, r, nodes, t.model.Closed.Heads[r]), t.shard.Labels.Select(nodes)
		some := make([]int64, size)
		for k, one := range all {
			logits := t.logits(one, columns)
			if accuracy {
				counts := eval.Count(logits, of, nil)
				some[0] = counts.Vector()[1]
			} else {
				a.On(one.scales).Write(some, 0, 0, logits, of)
			}
			for i, n := range some {
				c.Counts[k*size+i] += n
			}
		}
	}
	c.Counts[len(all)*size] = int64(labels.Labelled())
	own, rest := slices.Clone(c.Counts), int64(t.Labels.Validating())-t.ownValidating()
	c.CountLimit = func(i int) comm.Limit {
		most := rest
		if !accuracy && i < len(all)*size {
			most = a.Most(i, rest)
		}
		return comm.Limit{What: "a count of validation nodes", Least: 0, Most: float64(most)}
	}
	c.CountBits = comm.CountBits(t.shard.Nodes)
	c.Wide = func(i int) bool { return !accuracy && i < len(all)*size && a.Wide(i) }
	c.Meta = digestOf(all)
	reduced, err := t.Reducer.Reduce(ctx, c)
	if err != nil {
		return choice{}, err
	}
	if err := t.agree(ctx, r, reduced.Meta, all); err != nil {
		return choice{}, err
	}
	if known := int64(t.Labels.Validating()); c.Counts[len(all)*size] != known && !t.Leaves {
		return choice{}, comm.Refused("the labelled validation nodes must be %d, as was counted before (got %d)", known,
			c.Counts[len(all)*size])
	}
	n := float64(c.Counts[len(all)*size])
	if n == 0 {
		return inTheMiddle(all), nil
	}
	vals := make([]float64, len(all))
	for k := range all {
		vals[k] = float64(c.Counts[k*size]) / n
		if accuracy {
			continue
		}
		if err := checkMetric(a, c.Counts[k*size:], own[k*size:(k+1)*size], rest); err != nil && !t.Leaves {
			return choice{}, err
		}
		if vals[k], _, _, err = a.Read(c.Counts[k*size:]); err != nil {
			return choice{}, err
		}
	}
	return chosen(t.config.Metric, all, vals, n, a.Sides(c.Counts)...)
}

// inTheMiddle is the choice if nothing validates.
func inTheMiddle(all []candidate) choice {
	same := all[len(all)-1].columns
	first := slices.IndexFunc(all, func(one candidate) bool { return len(one.columns) == len(same) })
	return choice{all: all[(first+len(all))/2:][:1], counts: []float64{1}, val: math.NaN(), loss: math.NaN()}
}

// chosen returns the choice between candidates with validation metrics vals on n nodes; sides are the positives and
// negatives of each ranking. A NaN in vals: the candidate gives no numbers, or the metric is undefined for all.
// Candidates count in the mean with exponential weights of that rate (Dalalyan and Tsybakov, Machine Learning 72,
// 2008). If few nodes validate, the best is often the luckiest and the mean of many is steadier; if many do, the best
// dominates. Metrics of numbers have the target's unit: then the best is taken.
func chosen(m eval.Metric, all []candidate, vals []float64, n float64, sides ...[2]float64) (c choice, err error) {
	at := -1 // the best one, with the largest penalty of those that are
	for k, v := range vals {
		if v == v && (at < 0 || m.Gain(v, vals[at]) > 0 || v == vals[at] && all[k].penalty > all[at].penalty) {
			at = k
		}
	}
	switch {
	case at < 0 && (m.Ranks() || m == "r2" && finite(all[0].weights.Data)):
		// no node of one of the classes, or one number
		return inTheMiddle(all), nil
	case at < 0:
		return c, errors.New("no candidate validates: training has diverged; scale the features")
	}
	best := vals[at]
	c = choice{all: all, counts: make([]float64, len(all)), margin: m.StandardError(best, n, sides...) / 2}
	sum := 0.0
	for k, v := range vals {
		if gap := m.Gain(best, v); k == at || gap >= 0 && !m.OfNumbers() && all[k].penalty >= leastPenalty {
			c.counts[k] = math.RoundToEven(math.Exp(-rate(n)*n*gap)/countGrid) * countGrid
			sum, c.val = sum+c.counts[k], c.val+float64(c.counts[k]*v)
		}
	}
	c.val /= sum
	return c, nil
}

// digestOf returns a checksum of the weights of all candidates: the sums are the same bits at all
// peers, but each of them solves by itself, and processors may round apart.
func digestOf(all []candidate) []byte {
	var x []float32
	for _, one := range all {
		x = append(x, one.weights.Data...)
	}
	return binary.LittleEndian.AppendUint32(nil, train.Digest(x))
}

// agree gives every peer the weights that most peers have, where their digests differ.
func (t *Trainer) agree(ctx context.Context, r int, digests [][]byte, all []candidate) error {
	weights := make([][]float32, len(all))
	for i, one := range all {
		weights[i] = one.weights.Data
	}
	from, distance, err := train.TakeOfMost(ctx, t.Group, digests, weights)
	if err == nil && from >= 0 {
		t.Report(train.Event{Kind: train.Resync, Round: r, Peer: from, Other: t.shard.Rank,
			Differed: !bytes.Equal(digests[from], digests[t.shard.Rank]), Distance: distance})
	}
	return err
}

// logits returns a candidate's logits for rows of columns, the constant first.
func (t *Trainer) logits(one candidate, columns mat.Dense) mat.Dense {
	d := len(one.columns)
	w := mat.New(columns.Cols, one.weights.Cols)
	copy(w.Row(0), one.weights.Row(d))
	if t.model.Closed.Spec.Multi {
		for k := range w.Row(0) {
			w.Row(0)[k] -= closed.Half
		}
	}
	for k, j := range one.columns {
		copy(w.Row(j), one.weights.Row(k))
	}
	y := mat.New(columns.Rows, w.Cols)
	kernels.GemmNN(columns.Rows, w.Cols, columns.Cols, columns.Data, columns.Stride, w.Data, w.Stride, y.Data, y.Stride,
		false)
	return y
}
