package links

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
)

// Batches divide the training links of an epoch among its steps. The seed, the epoch and the IDs of its ends decide at
// random on the step of a link, so that every peer of any number decides alike. A step has as many links as another on
// average.
type Batches struct {
	task  *Learner
	drawn rng.Key // of pairs
	of    []Left  // [step]
}

// StepPairs are the pairs of a step.
type StepPairs struct {
	Nodes []int32 // IDs of their ends, each once
	Pairs nn.PairGroups
}

// Left are the links that a step learns: no message runs along them, nor along their reverse.
type Left struct {
	cut   *Cut
	links []int32           // places of own links
	at    map[int32][]int32 // the same by own node
}

// Batches returns the batches of an epoch of `steps` steps.
func (t *Learner) Batches(epoch, steps int) *Batches {
	b := &Batches{task: t, drawn: negatives(t.seed, epoch), of: make([]Left, steps)}
	for k := range b.of {
		b.of[k] = Left{cut: t.cut, at: make(map[int32][]int32)}
	}
	key := rng.New(t.seed).FoldString("pairs").FoldString("steps").Fold(uint64(epoch))
	for i, l := range t.cut.Links {
		if l.Split == graph.Train {
			u, v := t.shard.Global[l.At], t.shard.Global[l.Other]
			x := key.Fold(uint64(l.Relation)).Fold(uint64(min(u, v))).Float64(uint64(max(u, v)))
			of := &b.of[int(x*float64(steps))]
			of.links, of.at[l.At] = append(of.links, int32(i)), append(of.at[l.At], int32(i))
		}
	}
	return b
}

// Left returns the links of step k.
func (b *Batches) Left(k int) Left { return b.of[k] }

// Of(node) reports whether an own node is an end of one of the links.
func (l Left) Of(node int32) bool { return len(l.at[node]) > 0 }

// Edge reports whether the edge from a source to own node at is one of the links or the reverse of one. relation is one
// of the graph's, or −1 for layers that read edges without types, which represent the edges of all relations.
func (l Left) Edge(relation, at, source int32) bool {
	for _, k := range l.at[at] {
		if one := l.cut.Links[k]; one.Other == source && (relation < 0 || l.cut.Of[relation] == one.Relation) {
			return true
		}
	}
	return false
}

// Batch draws the pairs of step k of own links.
func (b *Batches) Batch(k int) (StepPairs, error) {
	t := b.task
	one := StepPairs{Pairs: nn.PairGroups{Negatives: t.config.Negatives}}
	at := make(map[int64]int32)
	place := func(id int64) int32 {
		i, is := at[id]
		if !is {
			i = int32(len(one.Nodes))
			at[id], one.Nodes = i, append(one.Nodes, int32(id))
		}
		return i
	}
	err := t.against(b.drawn, func(yield func(Link) bool) {
		for _, i := range b.of[k].links {
			if !yield(t.cut.Links[i]) {
				return
			}
		}
	}, func(q askedPair) {
		one.Pairs.Pairs = append(one.Pairs.Pairs,
			nn.Pair{U: place(t.shard.Global[q.at]), V: place(q.other), Relation: q.relation})
	})
	return one, err
}
