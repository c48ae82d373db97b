// Package eval measures predictions. What it counts is additive: peers sum vectors of counts, and
// the metric of the sum is the metric of all their rows, exactly for accuracy and F1, within a
// computed bound for the ranking metrics.
package eval

import (
	"fmt"
	"iter"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// MetricCounts is what the metrics of a set of rows are computed from. Counts of disjoint sets add up.
type MetricCounts struct {
	classes int
	curves  int // binary rankings that bins describe: 1 for two exclusive classes, else one a class
	bins    int // bins of each ranking (0 = accuracy and F1 only)
	// rows, right, [C×3] TP, FP, FN, then [curves×bins×2] positives, negatives; of numbers rows, 0, their sums
	n []int64

	ordered bool // n ends with the ranks that predictions are off, and their squares
	first   bool // class 0 is the positive one of two

	each int       // sums of each of C columns of numbers (0 = labels are classes)
	unit []float64 // units of these columns
}

const perRow = 2 // counts before the classes': rows and right

// Count counts the given rows of scores (N×C, before softmax or sigmoid) against labels, for
// accuracy and F1. rows nil means all N, so a peer without rows passes an empty slice that is not
// nil. A row without a label is left out. With one class a node the prediction is the largest
// score, the first of equals, or of ordered classes the Median; with several, every score above 0.
func Count(scores mat.Dense, labels graph.Labels, rows []int32) MetricCounts {
	return count(scores, labels, rows, 0, nil, false)
}

// count is Count that also sorts the rows' scores into bins of each ranking, for AUC and AP, on its scale (nil =
// zero Scales), and counts, if classes are ordered, how many ranks predictions are off.
func count(scores mat.Dense, labels graph.Labels, rows []int32, bins int, scales []Scale, ordered bool) MetricCounts {
	if scores.Cols != labels.Classes && scores.Rows > 0 {
		panic(fmt.Sprintf("eval: %d columns of scores for %d classes", scores.Cols, labels.Classes))
	}
	c := newCounts(labels, bins, ordered)
	if c.each > 0 {
		sums := countNumbers(scores, labels, rows)
		c.n[0] = sums.rows
		sums.write(c.n[perRow:], c.each)
		return c
	}
	odds := make([]float64, c.curves)
	eachRow(scores, labels, rows, func(row []float32, class int, bits []uint8) {
		c.n[0]++
		if bits == nil {
			c.countOne(class, decided(row, labels.Ordered))
		} else {
			c.countBits(bits, row)
		}
		if bins > 0 {
			c.logOdds(odds, row, labels.Multi())
			for k, x := range odds {
				scale := Scale{}
				if scales != nil {
					scale = scales[k]
				}
				c.curve(k)[2*scale.binOf(x, bins)+side(c.positive(k, class, bits))]++
			}
		}
	})
	return c
}

// countOne counts a node of class is that was said to be of class said.
func (c *MetricCounts) countOne(is, said int) {
	c.apart(is, said, 1)
	if is == said {
		c.n[1]++
		c.class(is)[0]++
		return
	}
	c.class(said)[1]++
	c.class(is)[2]++
}

// countBits counts a node with the classes bits.
func (c *MetricCounts) countBits(bits []uint8, row []float32) {
	right := int64(1)
	for k, s := range row {
		switch tally := c.class(k); {
		case bits[k] != 0 && s > 0:
			tally[0]++
		case s > 0:
			tally[1]++
			right = 0
		case bits[k] != 0:
			tally[2]++
			right = 0
		}
	}
	c.n[1] += right
}

// positive reports whether a node is a positive of ranking k.
func (c *MetricCounts) positive(k, class int, bits []uint8) bool {
	switch {
	case bits != nil:
		return bits[k] != 0
	case c.curves == 1 && c.classes == 2:
		return (class == 1) != c.first
	}
	return class == k
}

func newCounts(labels graph.Labels, bins int, ordered bool) MetricCounts {
	if labels.Kind() == graph.Numbers {
		return MetricCounts{each: shortSums, unit: unitsOf(labels),
			n: make([]int64, perRow+labels.Classes*shortSums*RealLen)}
	}
	c := MetricCounts{classes: labels.Classes, bins: bins, curves: curvesOf(labels), first: labels.First}
	size := perRow + 3*c.classes + 2*c.curves*bins
	if c.ordered = ordered; ordered {
		size += ranksOff
	}
	c.n = make([]int64, size)
	return c
}

// class returns TP, FP and FN of class k.
func (c *MetricCounts) class(k int) []int64 { return c.n[perRow+3*k:][:3] }

// curve returns positives and negatives, in turn, of each bin of ranking k.
func (c *MetricCounts) curve(k int) []int64 { return c.n[perRow+3*c.classes+2*k*c.bins:][:2*c.bins] }

// eachRow calls f for every labelled row among rows, with its class, or with its bits if a row may
// have several classes.
func eachRow(scores mat.Dense, labels graph.Labels, rows []int32, f func(row []float32, class int, bits []uint8)) {
	for i := range numbersOf(rows, scores.Rows) {
		if labels.Multi() {
			f(scores.Row(i), -1, labels.Bits[i*labels.Classes:(i+1)*labels.Classes])
		} else if class := labels.Class[i]; class >= 0 {
			f(scores.Row(i), int(class), nil)
		}
	}
}

// numbersOf yields the given rows, or all n if rows is nil.
func numbersOf(rows []int32, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, i := range rows {
			if !yield(int(i)) {
				return
			}
		}
		for i := 0; rows == nil && i < n && yield(i); i++ {
		}
	}
}

// ArgMax returns the index of the largest number of a row, the first of several.
func ArgMax(row []float32) int {
	best := 0
	for k, s := range row {
		if s > row[best] {
			best = k
		}
	}
	return best
}

// Add adds o's counts, which must be of as many classes and bins.
func (c *MetricCounts) Add(o MetricCounts) {
	if c.classes != o.classes || len(c.n) != len(o.n) || c.curves != o.curves || c.bins != o.bins {
		panic(fmt.Sprintf("eval: add %d classes, %d bins to %d classes, %d bins", o.classes, o.bins, c.classes, c.bins))
	}
	for i, x := range o.n {
		c.n[i] += x
	}
}

// Vector returns the counts as numbers that peers sum. It is not to be changed.
func (c *MetricCounts) Vector() []int64 { return c.n }

// FromVector replaces c's counts by v, a sum of Vectors with c's classes and bins. It refuses a
// vector of another length or with a negative count; then c keeps its counts.
func (c *MetricCounts) FromVector(v []int64) error {
	if len(v) != len(c.n) {
		return fmt.Errorf("a vector of %d classes and %d bins must have %d counts (got %d)",
			c.classes, c.bins, len(c.n), len(v))
	}
	for i, x := range v {
		if x < 0 {
			return fmt.Errorf("count %d of the vector must be at least 0 (got %d)", i, x)
		}
	}
	c.n = slices.Clone(v)
	return nil
}

// Accuracy returns the share of rows whose every class is right, or 0 if there are no rows.
func (c *MetricCounts) Accuracy() float64 { return ratio(float64(c.n[1]), float64(c.n[0])) }

// MicroF1 returns F1 of all decisions together; with one class a node it equals Accuracy.
func (c *MetricCounts) MicroF1() float64 {
	var sum [3]int64
	for k := range c.classes {
		for i, x := range c.class(k) {
			sum[i] += x
		}
	}
	return f1(sum[:])
}

// MacroF1 returns the mean over classes of each one's F1. A class that no row has and none was
// given is left out.
func (c *MetricCounts) MacroF1() float64 {
	var sum, n float64
	for k := range c.classes {
		if t := c.class(k); t[0]+t[1]+t[2] > 0 {
			sum += f1(t)
			n++
		}
	}
	return ratio(sum, n)
}

// f1 returns 2TP / (2TP + FP + FN).
func f1(t []int64) float64 { return ratio(float64(2*t[0]), float64(2*t[0]+t[1]+t[2])) }

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
