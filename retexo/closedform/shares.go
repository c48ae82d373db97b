package closedform

import (
	"context"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/labels"
)

// Training nodes that were drawn by class, the same number of each, do not tell how frequent the classes are, and a model of
// them takes all for equally frequent. Where they are not, its logits should be moved: with softmax(8·logits) as
// probabilities of classes of shares p, those of shares q have logits + log(q/p)/8 (Saerens, Latinne and Decaestecker, Neural
// Computation 14, 2002). The shares are those of the validation nodes; where these were drawn by class, too, they are the
// most likely ones by the classes that the model gives to nodes without a label (the same; Lipton, Wang and Smola, ICML
// 2018). Validation nodes choose how much of the move is made.

const (
	// mostShares is up to how many classes logits are moved: validation nodes say which classes are mistaken for which.
	mostShares = 50
	// shiftGrid is the unit of a move: what processors round apart is far less.
	shiftGrid = 1.0 / 4096
)

// moves are the parts of the whole move from which validation nodes choose.
var moves = []float64{0, 0.25, 0.5, 0.75, 1}

// ShareCounts returns how many counts the two sums have by which logits are moved to the classes' shares; 0: they never are.
func (c Config) ShareCounts() (first, second int) {
	if c.Task != target.Single.String() || c.Metric != "accuracy" || c.Epsilon > 0 || c.LabelEpsilon > 0 || c.Balanced || c.ClassWeights != nil ||
		c.Classes < 2 || c.Classes > mostShares {
		return 0, 0
	}
	return c.Classes * (c.Classes + 1), len(moves) * c.Classes
}

// drawnByClass reports whether all classes have as many training nodes, and validation can choose a move.
func (t *Trainer) drawnByClass() bool {
	n, _ := t.config.ShareCounts()
	return n > 0 && !t.Leaves && t.labels.Validating() > 0 && slices.Min(t.labels.Classes) == slices.Max(t.labels.Classes)
}

// moved returns what is added to the logits of each class; nil: nothing.
func (t *Trainer) moved(ctx context.Context) ([]float32, error) {
	if !t.drawnByClass() {
		return nil, nil
	}
	confusion, given, err := t.predicted(ctx)
	if err != nil {
		return nil, err
	}
	classes := t.config.Classes
	validating := make([]float64, classes) // nodes of each class
	all := 0.0
	for k, row := range confusion {
		for _, n := range row {
			validating[k] += n
			all += n
		}
	}
	shares, weight := slices.Clone(validating), slices.Repeat([]float64{1}, classes)
	if drawn := slices.Min(validating) == slices.Max(validating); drawn {
		shares = labels.ShiftedShares(confusion, given)
		for k, q := range shares {
			weight[k] = q / validating[k]
		}
	} else {
		for k, n := range validating {
			shares[k] = (n + 1) / (all + float64(classes))
		}
	}
	by := make([]float64, classes)
	for k, q := range shares {
		by[k] = math.Log(q*float64(classes)) / closed.Sharpness
	}
	right, err := t.right(ctx, by, confusion)
	if err != nil {
		return nil, err
	}
	best, most := 0, math.Inf(-1)
	for m, counts := range right {
		sum := 0.0
		for k, n := range counts {
			sum += float64(weight[k] * n)
		}
		if sum > most*(1+1e-9) {
			best, most = m, sum
		}
	}
	if best == 0 {
		return nil, nil
	}
	t.note(train.Note, "all classes have %g training nodes; their shares of all nodes seem to be %.1f to %.1f %%, and %g %% of that are in the logits",
		t.labels.Classes[0], 100*slices.Min(shares), 100*slices.Max(shares), 100*moves[best])
	return move(by, moves[best]), nil
}

// move returns part of by, in whole units.
func move(by []float64, part float64) []float32 {
	to := make([]float32, len(by))
	for k, v := range by {
		to[k] = float32(shiftGrid * math.RoundToEven(part*v/shiftGrid))
	}
	return to
}

// predicted sums which classes the model gives: to validation nodes, by their class, and to nodes without a label.
func (t *Trainer) predicted(ctx context.Context) (confusion [][]float64, given []float64, err error) {
	classes, logits := t.config.Classes, t.best()
	size, _ := t.config.ShareCounts()
	c := &comm.Contribution{ID: t.id("predicted classes", 0, 0), Counts: make([]int64, size), CountBits: comm.CountBits(t.shard.Nodes)}
	for _, i := range t.shard.NodesIn(graph.Val) {
		if k := t.shard.Labels.Class[i]; k >= 0 {
			c.Counts[int(k)*classes+eval.ArgMax(logits.Row(int(i)))]++
		}
	}
	for _, i := range t.others {
		if t.shard.Split[i] != graph.Val {
			c.Counts[classes*classes+eval.ArgMax(logits.Row(int(i)))]++
		}
	}
	own, rest := slices.Clone(c.Counts), int64(t.labels.Validating())-t.ownValidating()
	c.CountLimit = func(i int) comm.Limit {
		if i < classes*classes {
			return comm.Limit{What: "a count of validation nodes", Least: 0, Most: float64(rest)}
		}
		return comm.Limit{What: "a count of nodes without a label", Least: 0, Most: float64(t.shard.Nodes - int64(t.shard.Owned))}
	}
	if _, err := t.reducer.Reduce(ctx, c); err != nil {
		return nil, nil, err
	}
	n := int64(0)
	for i, all := range c.Counts[:classes*classes] {
		n += all - own[i]
	}
	if n != rest {
		return nil, nil, comm.Refused("the labelled validation nodes of the other peers must be %d, as was counted before (got %d)", rest, n)
	}
	for k := range classes + 1 {
		row := make([]float64, classes)
		for j, n := range c.Counts[k*classes : (k+1)*classes] {
			row[j] = float64(n)
		}
		confusion = append(confusion, row)
	}
	return confusion[:classes], confusion[classes], nil
}

// right sums how many validation nodes of each class are right after each of the moves by part of by.
func (t *Trainer) right(ctx context.Context, by []float64, confusion [][]float64) (all [][]float64, err error) {
	classes, logits := t.config.Classes, t.best()
	_, size := t.config.ShareCounts()
	c := &comm.Contribution{ID: t.id("moved logits", 0, 0), Counts: make([]int64, size), CountBits: comm.CountBits(t.shard.Nodes)}
	own, row := make([]float64, classes), make([]float32, classes)
	for _, i := range t.shard.NodesIn(graph.Val) {
		k := t.shard.Labels.Class[i]
		if k < 0 {
			continue
		}
		own[k]++
		for m, part := range moves {
			copy(row, logits.Row(int(i)))
			for j, v := range move(by, part) {
				row[j] += v
			}
			if eval.ArgMax(row) == int(k) {
				c.Counts[m*classes+int(k)]++
			}
		}
	}
	c.CountLimit = func(i int) comm.Limit {
		k, n := i%classes, 0.0
		for _, v := range confusion[k] {
			n += v
		}
		return comm.Limit{What: "a count of validation nodes", Least: 0, Most: n - own[k]}
	}
	if _, err := t.reducer.Reduce(ctx, c); err != nil {
		return nil, err
	}
	for m := range moves {
		counts := make([]float64, classes)
		for k, n := range c.Counts[m*classes : (m+1)*classes] {
			counts[k] = float64(n)
			if m == 0 && counts[k] != confusion[k][k] {
				return nil, comm.Refused("the right validation nodes of class %d must be %g, as was counted before (got %d)", k, confusion[k][k], n)
			}
		}
		all = append(all, counts)
	}
	return all, nil
}
