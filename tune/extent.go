package tune

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph/target"
	"github.com/heddle-gnn/heddle/train/labels"
)

// Extent is what the bytes of runs and the choice among them depend on besides their configurations. Its sum over all
// peers is that of a contest.
type Extent struct {
	Peers  int64
	Nodes  int64   // owned
	Halo   int64   // rows received from other peers in one exchange
	Labels []int64 // labels.Numbers
	Barred []int64 // by candidate: peers that cannot train by it
}

// Numbers returns the values of e, to be summed over the peers.
func (e Extent) Numbers() []int64 {
	return slices.Concat([]int64{e.Peers, e.Nodes, e.Halo}, e.Labels, e.Barred)
}

// Of returns the extent of such values, of as many labels as e has.
func (e Extent) Of(sums []int64) Extent {
	return Extent{sums[0], sums[1], sums[2], sums[3:][:len(e.Labels)], sums[3+len(e.Labels):]}
}

// Plus returns the sum of e and other.
func (e Extent) Plus(other Extent) Extent {
	sums := e.Numbers()
	for k, n := range other.Numbers() {
		sums[k] += n
	}
	return e.Of(sums)
}

// Counts returns the label counts of a run of that seed, of labels of kind k.
func (e Extent) Counts(k target.Kind, seed uint64) labels.Counts {
	sums := make([]float64, len(e.Labels))
	for k, n := range e.Labels {
		sums[k] = float64(n)
	}
	return labels.Read(sums, k, labels.Draw{Seed: seed})
}
