package train

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
)

// LabelCounts are the counts of labels of all peers, for training and validation. If no peer has a labelled validation
// node, a tenth of the training nodes validate instead, unless the Draw has LastRound. The seed and each node's ID
// choose them, so the choice does not depend on the partition. A class that would lose all of its training nodes keeps
// all of them.
type LabelCounts struct {
	Classes  []float64 // [C] training nodes that have each class, or number
	Labelled float64   // training nodes that have any label
	HeldOut  float64   // labelled nodes of the training split that validate (0 = none)
	Sums     []float64 // [LabelsLen] as the peers sum them, from which ReadLabels makes the same again

	// Units are the mean and the deviation of each column of numbers over the training nodes: models learn and predict
	// in these units. They are nil if labels are classes.
	Units []graph.Unit

	validated bool // by nodes of the validation split
	kind      graph.TargetKind
	draw      Draw
}

// A Draw chooses training nodes that validate if there are no validation nodes, and the positive class.
type Draw struct {
	Seed      uint64
	LastRound bool // none of them: the plan takes the last round, so that they would choose nothing
	Positive  int  // of two classes, counted from 1 (0 = the rarer one)
}

// heldOutShare is the share of training nodes that validate if there are no validation nodes.
const heldOutShare = 0.1

// LabelsLen is the length of Sums for a number of classes, or of columns of numbers.
func LabelsLen(k graph.TargetKind, classes int) int {
	if k == graph.Numbers {
		return 2*moments*classes + 3
	}
	return 2*classes + 3
}

// LabelReals is how many of these, from the first on, are parts of real numbers (eval.PutReal), which may be larger
// than the number of nodes.
func LabelReals(k graph.TargetKind, classes int) int {
	if k == graph.Numbers {
		return 2 * moments * classes
	}
	return 0
}

// CountLabels counts the labels of all peers; s is this peer's shard. Every peer must train on HoldOut of its shard.
// Counts that no labels can have are comm.ErrRefused.
func CountLabels(ctx context.Context, r comm.Reducer, id comm.ReduceID, s *shard.Shard,
	draw Draw) (LabelCounts, error) {
	own := LabelNumbers(s, draw)
	sums := slices.Clone(own)
	reals := LabelReals(s.Labels.Kind(), s.Labels.Classes)
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: sums, CountLimit: labelLimit(s, reals),
		CountBits: comm.CountBits(s.Nodes), Wide: func(i int) bool { return i < reals }}); err != nil {
		return LabelCounts{}, err
	}
	if err := checkLabels(sums, own, s); err != nil {
		return LabelCounts{}, err
	}
	all := make([]float64, len(sums))
	for k, n := range sums {
		all[k] = float64(n)
	}
	return ReadLabels(all, s.Labels.Kind(), draw), nil
}

// LocalLabels returns the counts of the labels of these shards, one or more, only.
func LocalLabels(shards ...*shard.Shard) LabelCounts {
	kind, sums := shards[0].Labels.Kind(), make([]float64, LabelsLen(shards[0].Labels.Kind(), shards[0].Labels.Classes))
	for _, s := range shards {
		for k, n := range LabelNumbers(s, Draw{}) {
			sums[k] += float64(n)
		}
	}
	return ReadLabels(sums, kind, Draw{})
}

// LabelNumbers returns the LabelsLen numbers that the holder of s adds to Sums.
func LabelNumbers(s *shard.Shard, draw Draw) []int64 {
	var parts [2][]int32 // training nodes that train in any case, and those that validate if there is need
	held := draw.heldOut()
	for _, i := range s.NodesIn(graph.Train) {
		k := 0
		if held(s.Global[i]) {
			k = 1
		}
		parts[k] = append(parts[k], i)
	}
	kind, classes := s.Labels.Kind(), s.Labels.Classes
	sums := make([]int64, LabelsLen(kind, classes))
	counts := sums[len(sums)-3:]
	for k, nodes := range parts {
		some := s.Labels.Select(nodes)
		if kind == graph.Numbers {
			writeMoments(sums[k*moments*classes:], some)
		} else {
			for c, n := range some.Count() {
				sums[k*classes+c] = int64(n)
			}
		}
		counts[k] = int64(some.Labelled())
	}
	validation := s.Labels.Select(s.NodesIn(graph.Val))
	counts[2] = int64(validation.Labelled())
	return sums
}

// heldOut returns a function that reports whether a node, given its ID, validates if there are no validation nodes.
func (d Draw) heldOut() func(node int64) bool {
	key := rng.New(d.Seed).FoldString("held out")
	return func(node int64) bool { return !d.LastRound && key.Float64(uint64(node)) < heldOutShare }
}

// ReadLabels returns the counts whose Sums those are, of labels of kind k.
func ReadLabels(sums []float64, k graph.TargetKind, draw Draw) LabelCounts {
	last := len(sums) - 3
	stay, held, count := sums[:last/2], sums[last/2:last], sums[last:]
	c := LabelCounts{Labelled: count[0] + count[1], Sums: sums, validated: count[2] > 0, kind: k, draw: draw}
	if k != graph.Single && !c.spares(0) {
		c.HeldOut = count[1]
	}
	if k == graph.Numbers {
		c.Labelled -= c.HeldOut
		c.readMoments(stay, held)
		return c
	}
	c.Classes = slices.Clone(stay)
	for class, n := range held {
		if c.spares(class) {
			c.Classes[class] += n
		} else if k == graph.Single {
			c.HeldOut += n
		}
	}
	c.Labelled -= c.HeldOut
	return c
}

// spares reports whether the nodes of class k all train. A node with several classes or with numbers has no single
// class: then all such nodes train, or the chosen ones validate.
func (c LabelCounts) spares(k int) bool {
	if c.kind != graph.Single {
		return c.validated || c.Sums[len(c.Sums)-3] == 0
	}
	return c.validated || c.Sums[k] == 0
}

// Rare returns which of two classes fewer training nodes of all peers have, those that validate among them, and their
// fraction; of equally frequent ones the second. class is −1 unless each node has one of two classes.
func (c LabelCounts) Rare() (class int, share float64) {
	if c.kind != graph.Single || len(c.Classes) != 2 {
		return -1, math.NaN()
	}
	first, second := c.Sums[0]+c.Sums[2], c.Sums[1]+c.Sums[3]
	if first < second {
		return 0, first / (first + second)
	}
	return 1, second / (first + second)
}

// Positive returns the class of two that figures of one class measure (−1 = there are not two).
func (c LabelCounts) Positive() int {
	class, _ := c.Rare()
	if class >= 0 && c.draw.Positive > 0 {
		return c.draw.Positive - 1
	}
	return class
}

// PositiveName returns the positive class among these names (empty = there are not two classes).
func (c LabelCounts) PositiveName(names []string) string {
	if k := c.Positive(); k >= 0 {
		return graph.Labels{Names: names}.Name(k)
	}
	return ""
}

// rareShare is the share of the training labels below which a class of two is rare: always naming the other one is then
// right for more than three of four nodes.
const rareShare = 0.25

// Metric returns m, or the metric that eval.Auto selects for these labels, whose classes have these names; text
// explains why it is not accuracy.
func (c LabelCounts) Metric(m eval.Metric, names []string) (chosen eval.Metric, text string) {
	if m != eval.Auto {
		return m, ""
	}
	if class, share := c.Rare(); share < rareShare {
		l := graph.Labels{Names: names}
		return "auc", fmt.Sprintf("the metric is AUC, not accuracy: always naming %s is right for %.1f %% of the "+
			"training nodes, since %s is rare (metric sets another)",
			l.Name(1-class), 100*(1-share), l.Name(class))
	}
	return "accuracy", ""
}

// HoldOut returns s with the split and the labels to train by: numbers are standardised, the positive class of two is
// set, and nothing else is changed unless training nodes validate.
func (c LabelCounts) HoldOut(s *shard.Shard) *shard.Shard {
	if c.Positive() == 0 {
		in := *s
		in.Labels.First = true
		s = &in
	}
	if c.Units != nil {
		in := *s
		in.Labels = s.Labels.Standardised(c.Units)
		s = &in
	}
	if c.HeldOut == 0 {
		return s
	}
	some, held := *s, c.draw.heldOut()
	some.Split = slices.Clone(s.Split)
	for i, split := range s.Split {
		if split != graph.Train || !held(s.Global[i]) {
			continue
		}
		if s.Labels.Has(i) && (c.kind != graph.Single || !c.spares(int(s.Labels.Class[i]))) {
			some.Split[i] = graph.Val
		}
	}
	return &some
}

// Validating returns how many labelled nodes validate.
func (c LabelCounts) Validating() float64 {
	if c.validated {
		return c.Sums[len(c.Sums)-1]
	}
	return c.HeldOut
}

// Warning explains how a run without validation nodes validates; it is empty if there are some.
func (c LabelCounts) Warning() string {
	switch {
	case c.validated:
		return ""
	case c.draw.LastRound:
		return fmt.Sprintf("no peer has a validation node, and the plan takes the last round: all %g labelled "+
			"training nodes are learned from", c.Labelled)
	case c.HeldOut == 0:
		return fmt.Sprintf("no peer has a validation node, and %g labelled training nodes are too few to hold some "+
			"out: the last round is taken", c.Labelled)
	}
	return fmt.Sprintf("no peer has a validation node: %g of the %g labelled training nodes, sampled by the seed, "+
		"validate and are not learned from", c.HeldOut, c.HeldOut+c.Labelled)
}
