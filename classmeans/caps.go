package classmeans

import (
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// A column moves the row of a node that has it by at most mostShift, over all numbers of a map together, each in
// deviations over all nodes; or, where nodes have few columns, by leastShare times what it moves if all columns weigh
// the same. Chosen by our attack and validation nodes (docs/measurements/attacks.md).
const (
	mostShift   = 1.5
	leastShare  = 1.2
	limitPasses = 20 // at most: deviations fall with the columns that are scaled down
)

// limitColumns scales down the rows of map u, F×C, of columns that move a node's row too far, and returns the factors:
// a member that gives a few of its nodes in a class one rare column makes the class mean mostly this column, and the
// rows of others would reveal which of their nodes have it. All peers find the same factors, as these follow from sums:
// stats are the sum and the sum of squares of each column over that many nodes.
func limitColumns(u, stats mat.Dense, nodes float64) []float32 {
	factors, variance, value := make([]float32, u.Rows), make([]float64, u.Rows), make([]float64, u.Rows)
	length, columns := 0.0, 0.0 // mean square of a row, and how many columns a node has
	for j := range u.Rows {
		length += float64(stats.At(j, 1)) / nodes
	}
	for j := range u.Rows {
		factors[j] = 1
		mean := math.Abs(float64(stats.At(j, 0))) / nodes
		variance[j] = max(float64(stats.At(j, 1))/nodes-float64(mean*mean), 0)
		if variance[j] > 0 && mean > 0 {
			value[j] = min(variance[j]/mean, math.Sqrt(length)) // of nodes that have the column, less the mean
			columns += variance[j] / float64(value[j]*value[j])
		}
	}
	for range limitPasses {
		square, shift, limit := make([]float64, u.Cols), make([]float64, u.Rows), 0.0
		for j, v := range variance {
			for c, w := range u.Row(j) {
				square[c] += float64(float64(v*float64(w)) * float64(w))
			}
		}
		for c, s := range square {
			if s == 0 {
				continue
			}
			limit += leastShare / max(columns, 1)
			for j, v := range value {
				moved := v * float64(u.At(j, c))
				shift[j] += float64(moved*moved) / s
			}
		}
		limit, done := max(limit, mostShift*mostShift), true
		for j, s := range shift {
			if s > 1.01*limit {
				by := float32(math.Sqrt(limit / s))
				kernels.Scale(by, u.Row(j))
				factors[j] *= by
				done = false
			}
		}
		if done {
			break
		}
	}
	return factors
}

// limit limits the columns of map u of round r if rows that are made of it are sent, except where columns are
// neighbours, and where nodes have so few features that a limit would leave little of them.
func (t *Trainer) limit(r int, u mat.Dense) {
	spec := t.model.Closed.Spec
	if u.Rows <= MostFew || t.config.Adjacent > 0 || t.given.Hops == 0 || spec.Unconnected {
		return
	}
	factors := limitColumns(u, t.stats, t.nodes)
	if r == 0 && spec.LeaveOut { // a node's own part of a mean; after the first round it is small
		for j, by := range factors {
			t.model.Closed.Inverse.Value.Data[j] = by * t.means.Inverse[j]
		}
	}
}
