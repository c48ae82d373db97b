package links

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// known are the neighbours of nodes as far as the edges of own nodes name them, without edges that are held out.
// Directions and relations are not distinguished.
type known struct {
	index map[int64]int32 // global IDs of own nodes and the halo
	near  [][]int32       // [Owned+halo] ascending
	mark  []bool          // [Owned+halo] scratch of score
}

// newKnown returns what the peer of t knows.
func newKnown(t *Learner) *known {
	s := t.cut.Messages
	k := &known{index: make(map[int64]int32, len(s.Global)), near: make([][]int32, len(s.Global)),
		mark: make([]bool, len(s.Global))}
	for i, id := range s.Global {
		k.index[id] = int32(i)
	}
	for i := range s.Owned {
		others, _ := s.Adj.Row(i)
		for _, j := range others {
			if int(j) != i {
				k.near[i], k.near[j] = append(k.near[i], j), append(k.near[j], int32(i))
			}
		}
	}
	for i := range k.near {
		slices.Sort(k.near[i])
		k.near[i] = slices.Compact(k.near[i])
	}
	return k
}

// scores scores own node at with each of some others: how many neighbours both have, and the sum of 1/log of the
// neighbours' degrees (Adamic and Adar, 2003).
func (k *known) scores(at int32, others []int64) (common, weighted []float32) {
	for _, w := range k.near[at] {
		k.mark[w] = true
	}
	common, weighted = make([]float32, len(others)), make([]float32, len(others))
	for i, id := range others {
		other, ok := k.index[id]
		if !ok {
			continue
		}
		sum := 0.0
		for _, w := range k.near[other] {
			if k.mark[w] {
				common[i]++
				sum += 1 / math.Log(float64(max(2, len(k.near[w]))))
			}
		}
		weighted[i] = float32(sum)
	}
	for _, w := range k.near[at] {
		k.mark[w] = false
	}
	return common, weighted
}

// Known returns where own links of a split rank by common neighbours and by Adamic–Adar, which learn nothing: what a
// model has to beat.
func (t *Learner) Known(split graph.Split) (common, weighted eval.Ranks, err error) {
	k := newKnown(t)
	by := [2]*eval.Ranking{eval.NewRanking(eval.DefaultBins), eval.NewRanking(eval.DefaultBins)}
	for _, l := range t.cut.Links {
		if l.Split != split {
			continue
		}
		others := t.drawer.Rivals([]int64{t.shard.Global[l.Other]}, HeldOut(t.seed), l, Rivals)
		one, other := k.scores(l.At, others)
		by[0].Add(one[0], one[1:])
		by[1].Add(other[0], other[1:])
	}
	if common, err = by[0].Read(by[0].Vector()); err == nil {
		weighted, err = by[1].Read(by[1].Vector())
	}
	return common, weighted, err
}
