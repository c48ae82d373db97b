// Package infer has our own attacks on single nodes and edges of a site. They look for membership in training, edges,
// labels, degrees, and rows of training nodes in sums. They use what a member of a run receives (recorded.Record) and
// the sums that it takes part in, or the model. The truth only scores them.
package infer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
)

// Finding is the result of one attack on a run, next to a baseline: the same attack without the run.
type Finding struct {
	Attack  string // name of the attack
	Holder  string // what the attacker has
	Measure string // of Value and Base
	Value   float64
	Base    float64 // the baseline
	Tried   int     // nodes, pairs or rows
}

// String implements fmt.Stringer.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s %.3g, without the run %.3g (%d tried)", f.Attack, f.Measure, f.Value, f.Base, f.Tried)
}

// ErrNothing is why an attack has no finding: the run sends nothing that it could use.
var ErrNothing = errors.New("the run has nothing that this attack reads")

// Run adds to a recorded run every sum that the attacker contributed to.
type Run struct {
	*recorded.Run
	sums []sum
}

// sum is the update and the counts of a reduction: the attacker's own part, and what all members got.
type sum struct {
	id        comm.ReduceID
	own, all  []float32
	mine, our []int64
}

// keeper is a reducer that keeps each sum.
type keeper struct {
	comm.Reducer
	run  *Run
	kept int // sums of trained rounds so far
}

// mostRounds is how many sums of trained rounds are kept.
const mostRounds = 16

// Reduce implements comm.Reducer.
func (k *keeper) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	one := sum{id: c.ID, own: slices.Clone(c.Update), mine: slices.Clone(c.Counts)}
	r, err := k.Reducer.Reduce(ctx, c)
	if err != nil {
		return r, err
	}
	if c.ID.Kind == ofRound {
		if k.kept++; k.kept > mostRounds {
			return r, nil
		}
	}
	one.all, one.our = slices.Clone(c.Update), slices.Clone(c.Counts)
	k.run.sums = append(k.run.sums, one)
	return r, nil
}

// Kinds of reductions (comm.ReduceID), as the trainers name them.
const (
	ofRound  = "round"
	ofLabels = "label counts"
	ofMeans  = "class means"
)

// Train calls recorded.Train and keeps the sums that the attacker receives.
func Train(ctx context.Context, p plan.Plan, shards []*shard.Shard, attacker int) (*Run, error) {
	run := new(Run)
	var err error
	if p.Task.Links() { // no attack on links reads a sum
		run.Run, err = recorded.Train(ctx, p, shards, attacker)
		return run, err
	}
	run.Run, err = recorded.TrainOver(ctx, p, shards, attacker,
		func(r comm.Reducer) comm.Reducer { return &keeper{Reducer: r, run: run} })
	return run, err
}

// whole returns the graph of all shards together.
func whole(shards []*shard.Shard) (*graph.Graph, error) {
	if len(shards) == 1 {
		return shards[0].Alone(), nil
	}
	all, err := shard.Merge(shards, 1)
	if err != nil {
		return nil, err
	}
	return all.Alone(), nil
}

// Area returns the area under the ROC curve of a score: the probability that one of with is larger than one of without,
// with equal scores counted half. 0.5 is chance.
func Area(with, without []float64) float64 {
	if len(with) == 0 || len(without) == 0 {
		return 0.5
	}
	without = slices.Sorted(slices.Values(without))
	better := 0.0
	for _, v := range with {
		below, _ := slices.BinarySearch(without, v)
		equal := below
		for equal < len(without) && without[equal] == v {
			equal++
		}
		better += float64(below) + float64(equal-below)/2
	}
	return better / float64(len(with)) / float64(len(without))
}

// Caught returns the fraction of with above the threshold that at most a fraction alarms of without exceeds.
func Caught(with, without []float64, alarms float64) float64 {
	if len(with) == 0 || len(without) == 0 {
		return 0
	}
	without = slices.SortedFunc(slices.Values(without), func(a, b float64) int { return cmp.Compare(b, a) })
	limit := without[min(int(alarms*float64(len(without))), len(without)-1)]
	n := 0
	for _, v := range with {
		if v > limit {
			n++
		}
	}
	return float64(n) / float64(len(with))
}
