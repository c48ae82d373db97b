// Package labels counts the labels of all peers, and finds the nodes that validate where none are marked for it.
package labels

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Counts are the labels of all peers, by which a run learns and validates. Where no peer has a validation node with
// a label, a tenth of the training nodes validate in their place: which ones follows from the seed and each node's ID,
// so it does not depend on the partition. A class that this would leave without a training node keeps all of its nodes.
type Counts struct {
	Classes  []float64 // [C] training nodes that have each class
	Labelled float64   // training nodes that have any label
	HeldOut  float64   // labelled nodes of the training split that validate; 0: none do
	Sums     []float64 // [Len] as the peers sum them, from which Read makes the same again

	validated bool // by nodes of the validation split
	multi     bool
	seed      uint64
}

// heldOutShare is the share of training nodes that validate where there are no validation nodes.
const heldOutShare = 0.1

// Len is the length of Sums for that many classes.
func Len(classes int) int { return 2*classes + 3 }

// Count counts the labels of all peers; s holds those of this one. Every peer must train on HoldOut of its shard. Counts
// that no labels have are comm.ErrRefused.
func Count(ctx context.Context, r comm.Reducer, id comm.ReduceID, s *shard.Shard, seed uint64) (Counts, error) {
	own := Numbers(s, seed)
	sums := slices.Clone(own)
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: id, Counts: sums, CountLimit: limit(s),
		CountBits: comm.CountBits(s.Nodes)}); err != nil {
		return Counts{}, err
	}
	if err := check(sums, own, s); err != nil {
		return Counts{}, err
	}
	all := make([]float64, len(sums))
	for k, n := range sums {
		all[k] = float64(n)
	}
	return Read(all, s.Labels.Multi(), seed), nil
}

// Numbers returns the Len numbers that the holder of s adds to Sums.
func Numbers(s *shard.Shard, seed uint64) []int64 {
	var parts [2][]int32 // training nodes that train in any case, and those that validate if there is need
	draw := heldOut(seed)
	for _, i := range s.NodesIn(graph.Train) {
		k := 0
		if draw(s.Global[i]) {
			k = 1
		}
		parts[k] = append(parts[k], i)
	}
	classes := s.Labels.Classes
	sums := make([]int64, Len(classes))
	for k, nodes := range parts {
		some := s.Labels.Select(nodes)
		for c, n := range some.Count() {
			sums[k*classes+c] = int64(n)
		}
		sums[2*classes+k] = int64(some.Labelled())
	}
	validation := s.Labels.Select(s.NodesIn(graph.Val))
	sums[2*classes+2] = int64(validation.Labelled())
	return sums
}

// heldOut returns whether the node of that ID validates where there are no validation nodes.
func heldOut(seed uint64) func(node int64) bool {
	key := rng.New(seed).FoldString("held out")
	return func(node int64) bool { return key.Float64(uint64(node)) < heldOutShare }
}

// Read returns the counts whose Sums those are. multi says that a node may have several classes.
func Read(sums []float64, multi bool, seed uint64) Counts {
	classes := (len(sums) - 3) / 2
	stay, held, count := sums[:classes], sums[classes:2*classes], sums[2*classes:]
	c := Counts{Classes: slices.Clone(stay), Labelled: count[0] + count[1], Sums: sums, validated: count[2] > 0, multi: multi, seed: seed}
	for k, n := range held {
		if c.spares(k) {
			c.Classes[k] += n
		} else if !multi {
			c.HeldOut += n
		}
	}
	if multi && !c.spares(0) {
		c.HeldOut = count[1]
	}
	c.Labelled -= c.HeldOut
	return c
}

// spares reports whether the nodes of class k all train. A node of several classes has no class of its own: then all
// nodes train, or those of all classes validate.
func (c Counts) spares(k int) bool {
	classes := (len(c.Sums) - 3) / 2
	if c.multi {
		return c.validated || c.Sums[2*classes] == 0
	}
	return c.validated || c.Sums[k] == 0
}

// HoldOut returns s with the split to train by: s itself unless training nodes validate.
func (c Counts) HoldOut(s *shard.Shard) *shard.Shard {
	if c.HeldOut == 0 {
		return s
	}
	some, draw := *s, heldOut(c.seed)
	some.Split = slices.Clone(s.Split)
	for i, split := range s.Split {
		if split != graph.Train || !draw(s.Global[i]) {
			continue
		}
		if c.multi || s.Labels.Class[i] >= 0 && !c.spares(int(s.Labels.Class[i])) {
			some.Split[i] = graph.Val
		}
	}
	return &some
}

// Validating returns how many labelled nodes validate.
func (c Counts) Validating() float64 {
	if c.validated {
		return c.Sums[len(c.Sums)-1]
	}
	return c.HeldOut
}

// Warning says how a run validates without validation nodes; empty: it has some.
func (c Counts) Warning() string {
	switch {
	case c.validated:
		return ""
	case c.HeldOut == 0:
		return fmt.Sprintf("no peer has a validation node, and %g labelled training nodes are too few to hold some out: the last round is taken", c.Labelled)
	}
	return fmt.Sprintf("no peer has a validation node: %g of the %g labelled training nodes, drawn by the seed, validate and are not learned from",
		c.HeldOut, c.HeldOut+c.Labelled)
}
