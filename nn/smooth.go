package nn

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// CorrectSmooth postprocesses a trained model that ignores the graph, or part of it (Huang, He, Singh, Lim and Benson,
// ICLR 2021, §2). First the model's errors at training nodes are spread along edges and subtracted everywhere, scaled
// to their mean size ("autoscale"). Then the logits are spread, with labels at training nodes. Both spread by Z ←
// (1−α)·Z⁽⁰⁾ + α·S·Z, S = D^(−1/2)·A·D^(−1/2) (graph.Symmetric). It reads only training labels.
type CorrectSmooth struct {
	Steps   int     `json:"steps"`   // of each of the two, ≥ 1
	Correct float32 `json:"correct"` // α of errors, [0, 1)
	Smooth  float32 `json:"smooth"`  // α of logits, [0, 1)
}

// Validate returns all faults at once, or nil.
func (c CorrectSmooth) Validate() error {
	var all []error
	if c.Steps < 1 || c.Steps > maxSmoothSteps {
		all = append(all, fmt.Errorf("correct_smooth: steps must be 1 to %d (got %d)", maxSmoothSteps, c.Steps))
	}
	for _, a := range []struct {
		name  string
		alpha float32
	}{{"correct", c.Correct}, {"smooth", c.Smooth}} {
		if !(a.alpha >= 0 && a.alpha < 1) {
			all = append(all, fmt.Errorf("correct_smooth: %s must be at least 0 and less than 1 (got %g)",
				a.name, a.alpha))
		}
	}
	return errors.Join(all...)
}

// Spread gives CorrectSmooth access to a graph, whose parts may be at several sites.
type Spread struct {
	Hop func(x mat.Dense) (mat.Dense, error) // returns S·x for the nodes with rows x
	Sum func(x []float64) error              // replaces x by its sum over all sites with a part
}

// Apply returns new logits of the nodes whose logits are given, logarithms of shares; class is
// their training label or −1. Without training labels it only smooths.
func (c CorrectSmooth) Apply(logits mat.Dense, class []int32, s Spread) (mat.Dense, error) {
	p := logitShares(logits)
	err0 := mat.New(p.Rows, p.Cols)
	size := []float64{0, 0} // of errors, and training nodes
	for i, y := range class {
		if y < 0 {
			continue
		}
		size[1]++
		for k, v := range p.Row(i) {
			e := -v
			if k == int(y) {
				e++
			}
			err0.Set(i, k, e)
			size[0] += math.Abs(float64(e))
		}
	}
	if err := s.Sum(size); err != nil {
		return mat.Dense{}, err
	}
	spread, err := s.spread(err0, c.Correct, c.Steps, -1)
	if err != nil {
		return mat.Dense{}, err
	}
	for i, y := range class {
		row := p.Row(i)
		if y >= 0 {
			clear(row)
			row[y] = 1
			continue
		}
		var length float64
		for _, v := range spread.Row(i) {
			length += math.Abs(float64(v))
		}
		scale := size[0] / size[1] / length
		if !(scale <= mostErrorScale) { // next to no error has come this far
			scale = 1
		}
		kernels.Axpy(float32(scale), spread.Row(i), row)
	}
	if p, err = s.spread(p, c.Smooth, c.Steps, 0); err != nil {
		return mat.Dense{}, err
	}
	for i := range p.Rows {
		logShares(p.Row(i))
	}
	return p, nil
}

const maxSmoothSteps = 1000

// mostErrorScale bounds the scaling of an error from far away.
const mostErrorScale = 1000

// leastShare bounds the logarithms of shares.
const leastShare = 1e-9

// spread returns Z after some steps, each bounded to [lo, 1].
func (s Spread) spread(first mat.Dense, alpha float32, steps int, lo float32) (mat.Dense, error) {
	z := first
	for range steps {
		next, err := s.Hop(z)
		if err != nil {
			return mat.Dense{}, err
		}
		restart(next, first, 1-alpha)
		for k, v := range next.Data {
			next.Data[k] = min(max(v, lo), 1)
		}
		z = next
	}
	return z, nil
}

// logitShares returns the softmax of each row.
func logitShares(logits mat.Dense) mat.Dense {
	p := mat.New(logits.Rows, logits.Cols)
	for i := range p.Rows {
		row, top, sum := logits.Row(i), float32(math.Inf(-1)), 0.0
		for _, v := range row {
			top = max(top, v)
		}
		for _, v := range row {
			sum += math.Exp(float64(v - top))
		}
		for k, v := range row {
			p.Set(i, k, float32(math.Exp(float64(v-top))/sum))
		}
	}
	return p
}

// logShares replaces each value by the logarithm of its share.
func logShares(row []float32) {
	var sum float64
	for _, v := range row {
		sum += max(float64(v), leastShare)
	}
	for k, v := range row {
		row[k] = float32(math.Log(max(float64(v), leastShare) / sum))
	}
}

// restart replaces z by (1−α)·z + α·first: a step of propagation with restart probability α.
func restart(z, first mat.Dense, alpha float32) {
	for i := range z.Rows {
		kernels.Scale(1-alpha, z.Row(i))
		kernels.Axpy(alpha, first.Row(i), z.Row(i))
	}
}
