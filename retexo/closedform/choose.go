package closedform

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/task"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/linear"
	"github.com/heddle-gnn/heddle/train/recovery"
)

// candidate is one regression: which columns it has, from 1, and its weights with the constant last.
type candidate struct {
	columns []int
	random  bool // the columns behind those of all rounds are the head's random features
	weights mat.Dense
}

// choice is the candidate of a round that validates best.
type choice struct {
	candidate
	val, loss float64 // NaN without validation nodes
	margin    float64 // half a standard error of val
}

// solve solves the head of round r for every penalty and for several sets of columns, all from the
// same equations, and makes the best by validation the head's weights.
func (t *Trainer) solve(ctx context.Context, r int, y mat.Dense, weight []float32) (choice, error) {
	head := t.model.Closed.Heads[r]
	equations, columns := t.normal, t.full.columns
	if head.Freq != nil {
		for j := range head.Mean.Value.Cols {
			mean, deviation := t.normal.Moments(j + 1)
			head.Mean.Value.Data[j], head.Scale.Value.Data[j] = float32(mean), 0
			if deviation > 1e-7*math.Abs(mean) {
				head.Scale.Value.Data[j] = float32(1 / deviation)
			}
		}
		var err error
		if equations, columns, err = t.withRandom(ctx, r, y, weight); err != nil {
			return choice{}, err
		}
	}
	var all []candidate
	lambdas := t.config.Lambdas
	if t.config.Metric.Ranks() || t.config.numbers() { // a candidate takes the counts of a curve, a thousand bytes for each peer and class
		lambdas = everySecond(lambdas)
	}
	for _, set := range t.sets(r, equations.Columns()) {
		solved, err := equations.Solve(ctx, set.columns, lambdas)
		if err != nil {
			return choice{}, err
		}
		for _, w := range solved {
			all = append(all, candidate{set.columns, set.random, w})
		}
	}
	best, err := t.validate(ctx, r, all, columns)
	if err != nil {
		return choice{}, err
	}
	w := head.Weight.Value
	w.Zero()
	for k, j := range best.columns {
		copy(w.Row(j-1), best.weights.Row(k))
	}
	copy(head.Bias.Value.Data, best.weights.Row(len(best.columns)))
	if t.model.Closed.Spec.Multi {
		for k := range head.Bias.Value.Data {
			head.Bias.Value.Data[k] -= closed.Half
		}
	}
	return best, nil
}

// withRandom returns the normal equations with the head's random features behind the columns of all
// rounds, and all columns of own nodes.
func (t *Trainer) withRandom(ctx context.Context, r int, y mat.Dense, weight []float32) (linear.Normal, mat.Dense, error) {
	head := t.model.Closed.Heads[r]
	beside := func(columns mat.Dense) mat.Dense {
		return graph.Columns([]graph.Features{{Dense: columns}, {Dense: head.RandomFeatures(withoutConstant(columns))}}).Dense
	}
	full := beside(t.full.columns)
	base := full
	if t.base != t.full {
		base = beside(t.base.columns)
	}
	// Standardised columns and random features all have products of about the same size, so that one
	// grid serves them.
	random, d := head.Freq.Value.Cols, t.normal.Columns()
	mean, scale := head.Mean.Value.Data, head.Scale.Value.Data
	even, labels, of := t.trainingRows(r, base, y, weight)
	for i := range even.Rows {
		row := even.Row(i)[1:d]
		for j := range row {
			row[j] = (row[j] - mean[j]) * scale[j]
		}
	}
	own, k := linear.Part(even, random, labels, of), t.joint()
	c := &comm.Contribution{ID: t.id("normal equations of random features", r, 0), Update: slices.Clone(own),
		UpdateLimit: t.randomLimit(d, random, k)}
	if t.bits() > 0 {
		c.Bits = 16
	}
	said, err := t.reducer.Reduce(ctx, c)
	if err != nil {
		return linear.Normal{}, mat.Dense{}, err
	}
	equations, err := t.withColumns(t.normal, c.Update, random, head)
	if err != nil {
		return linear.Normal{}, mat.Dense{}, err
	}
	mine, err := t.withColumns(t.own, own, random, head)
	if err != nil {
		return linear.Normal{}, mat.Dense{}, err
	}
	k.From, k.Apart = d, largest(said.Error)
	return equations, full, t.checkEquations(ctx, r, equations, mine, k)
}

// withColumns extends n by so many random features, from sums of products with standardised columns.
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

// sets returns the sets of columns to try, of so many: those of this round, of the last two, and of
// all, with random features where there are any.
func (t *Trainer) sets(r, columns int) (all []candidate) {
	starts := []int{1} // first column of each round
	for k := range r + 1 {
		starts = append(starts, starts[k]+t.model.Spec.Closed.Columns(k, t.config.Classes))
	}
	end := starts[r+1]
	for from := r; from >= 0; from-- {
		if from == r || from == r-1 || from == 0 {
			all = append(all, candidate{columns: span(starts[from], end)})
		}
	}
	if columns > end {
		all = append(all, candidate{columns: span(1, columns), random: true})
	}
	return all
}

// everySecond returns the first, third, … of x.
func everySecond(x []float64) (some []float64) {
	for k := 0; k < len(x); k += 2 {
		some = append(some, x[k])
	}
	return some
}

// span returns lo to hi−1.
func span(lo, hi int) (all []int) {
	for i := lo; i < hi; i++ {
		all = append(all, i)
	}
	return all
}

// selectionBins is the resolution of AUC and AP while candidates are compared, all in one sum.
const selectionBins = 64

// validate sums the metric of every candidate over the validation nodes of all peers and returns the
// best; without validation nodes the one with the penalty in the middle and all columns.
func (t *Trainer) validate(ctx context.Context, r int, all []candidate, columns mat.Dense) (choice, error) {
	rows := t.shard.NodesIn(graph.Val)
	labels, of := t.shard.Labels.Select(rows), columns.Select(rows)
	accuracy := t.config.Metric == "accuracy" && !labels.Multi()
	a := eval.NewAccumulator(t.config.Metric, t.shard.Labels, selectionBins)
	size := a.Size()
	if accuracy {
		size = 1 // nodes that are right
	}
	c := &comm.Contribution{ID: t.id("validation", r, 0), Counts: make([]int64, len(all)*size+1)}
	for k, one := range all {
		logits := t.logits(one, of)
		v := c.Counts[k*size:]
		if accuracy {
			counts := eval.Count(logits, labels, nil)
			v[0] = counts.Vector()[1]
			continue
		}
		loss, count := task.Loss{}.Of(mat.Dense{}, logits, labels, nil)
		a.Write(v, loss, count, logits, labels)
	}
	c.Counts[len(all)*size] = int64(labels.Labelled())
	own, rest := slices.Clone(c.Counts), int64(t.labels.Validating())-t.ownValidating()
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
	reduced, err := t.reducer.Reduce(ctx, c)
	if err != nil {
		return choice{}, err
	}
	if err := t.agree(ctx, r, reduced.Meta, all); err != nil {
		return choice{}, err
	}
	if known := int64(t.labels.Validating()); c.Counts[len(all)*size] != known && !t.Leaves {
		return choice{}, comm.Refused("the labelled validation nodes must be %d, as was counted before (got %d)", known, c.Counts[len(all)*size])
	}
	n := float64(c.Counts[len(all)*size])
	if n == 0 {
		same := all[len(all)-1].columns
		first := slices.IndexFunc(all, func(one candidate) bool { return len(one.columns) == len(same) })
		return choice{all[(first+len(all))/2], math.NaN(), math.NaN(), 0}, nil
	}
	best := choice{val: math.NaN()}
	for k, one := range all {
		val := float64(c.Counts[k*size]) / n
		if !accuracy {
			if err := checkMetric(a, c.Counts[k*size:], own[k*size:(k+1)*size], rest); err != nil && !t.Leaves {
				return choice{}, err
			}
			if val, _, _, err = a.Read(c.Counts[k*size:]); err != nil {
				return choice{}, err
			}
		}
		if val == val && !(t.config.Metric.Gain(val, best.val) <= 0) {
			best = choice{candidate: one, val: val}
		}
	}
	if best.candidate.columns == nil {
		return choice{}, errors.New("no candidate validates: training has diverged; scale the features")
	}
	best.margin = t.config.Metric.StandardError(best.val, n) / 2
	return best, nil
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
	from, most := 0, 0
	for q := range digests {
		votes := 0
		for _, d := range digests {
			if bytes.Equal(d, digests[q]) {
				votes++
			}
		}
		if votes > most {
			from, most = q, votes
		}
	}
	if most == len(digests) {
		return nil
	}
	e := train.Event{Kind: train.Resync, Round: r, Peer: from, Other: t.shard.Rank, Differed: !bytes.Equal(digests[from], digests[t.shard.Rank])}
	for _, one := range all {
		fetched := slices.Clone(one.weights.Data)
		if err := t.group.Broadcast(ctx, comm.Control, from, fetched); err != nil {
			return err
		}
		if distance := recovery.Distance(fetched, one.weights.Data); !(distance <= recovery.MostApart) {
			return &comm.PeerError{Rank: from, Op: "weights", Err: fmt.Errorf("its solution differs from this peer's by %.2g of its length, "+
				"more than the %g that rounding explains: the memory of one is at fault, or it sends false ones", distance, recovery.MostApart)}
		} else if e.Distance < distance {
			e.Distance = distance
		}
		copy(one.weights.Data, fetched)
	}
	t.report(e)
	return nil
}

// logits returns those of a candidate for rows of columns, the constant first.
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
	kernels.GemmNN(columns.Rows, w.Cols, columns.Cols, columns.Data, columns.Stride, w.Data, w.Stride, y.Data, y.Stride, false)
	return y
}
