package eval

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Tally is the layout of what some rows add to a metric and a mean loss, as float32 numbers that peers sum:
// Σ loss, labels, then the parts of Counts.
type Tally struct {
	metric Metric
	none   graph.Labels // of no row: says how many classes there are
	bins   int
	size   int
}

// NewTally returns the tally of metric m over rows labelled like labels; bins is the resolution of a metric that ranks.
func NewTally(m Metric, labels graph.Labels, bins int) Tally {
	t := Tally{metric: m, none: labels.Select(nil)}
	if m.Ranks() {
		t.bins = bins
	}
	zero := t.zero()
	t.size = 2 + len(zero.Vector())
	return t
}

func (t Tally) zero() Counts { return CountBins(mat.Dense{}, t.none, nil, t.bins) }

// Size is how many numbers Write writes.
func (t Tally) Size() int { return t.size }

// Write writes to v the loss of the rows of scores, summed over count labels, and their counts.
func (t Tally) Write(v []float32, loss, count float64, scores mat.Dense, labels graph.Labels) {
	v[0], v[1] = float32(loss), float32(count)
	c := CountBins(scores, labels, nil, t.bins)
	copy(v[2:t.size], c.Vector())
}

// Read turns a sum of tallies into the metric and the mean loss: NaN where nothing was labelled.
func (t Tally) Read(v []float32) (metric, loss float64, err error) {
	if v[1] == 0 {
		return math.NaN(), math.NaN(), nil
	}
	c := t.zero()
	if err := c.FromVector(v[2:t.size]); err != nil {
		return 0, 0, fmt.Errorf("the summed counts of all peers: %w", err)
	}
	return t.metric.Of(&c), float64(v[0]) / float64(v[1]), nil
}
