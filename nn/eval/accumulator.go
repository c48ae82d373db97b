package eval

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Accumulator is the layout of the contributions of rows to a metric and to a mean loss, as integers that peers sum
// exactly: the loss (PutReal), the number of labels, then the parts of Counts.
type Accumulator struct {
	metric Metric
	none   graph.Labels // labels of no row, with their classes
	bins   int
	scales []Scale // scales of the bins of each ranking (nil = zero Scales)
	head   int     // number of integers before the counts
	from   int     // the first of the counts that is written
	size   int
}

// NewAccumulator returns the accumulator of metric m over rows labelled like labels; bins is the
// resolution of a metric that ranks.
func NewAccumulator(m Metric, labels graph.Labels, bins int) Accumulator {
	a := Accumulator{metric: m, none: labels.Select(nil), head: RealLen + 1}
	if m.Ranks() {
		a.bins = bins
	}
	return a.sized()
}

func (a Accumulator) sized() Accumulator {
	zero := a.zero()
	a.size = a.head + len(zero.n) - a.from
	return a
}

// Alone returns the accumulator of only the metric: without a loss and, for a metric that ranks, with only its bins.
func (a Accumulator) Alone() Accumulator {
	if a.head = 0; a.bins > 0 {
		a.from = perRow + 3*a.none.Classes
	}
	return a.sized()
}

// On returns a with bins on such a scale for each ranking. A sum must be over rows that were written on the same
// scales.
func (a Accumulator) On(scales []Scale) Accumulator {
	a.scales = scales
	return a
}

func (a Accumulator) zero() MetricCounts {
	return count(mat.Dense{}, a.none, nil, a.bins, nil, a.metric.OfOrder())
}

// Size returns how many integers Write writes.
func (a Accumulator) Size() int { return a.size }

// Write writes to v the loss of the rows of scores, summed over that many labels, and their counts.
func (a Accumulator) Write(v []int64, loss, labels float64, scores mat.Dense, of graph.Labels) {
	if a.head > 0 {
		PutReal(v, float64(float32(loss)))
		v[RealLen] = int64(labels)
	}
	c := count(scores, of, nil, a.bins, a.scales, a.metric.OfOrder())
	copy(v[a.head:a.size], c.n[a.from:])
}

// Read turns a sum into the metric, the mean loss and the number of labels. Without labels the first two are NaN.
// If only the metric was summed (Alone), the loss is NaN and rows are counted as labels. Counts that no rows can
// produce are an error.
func (a Accumulator) Read(v []int64) (metric, loss float64, labels int64, err error) {
	if labels = a.labels(v); labels == 0 {
		return math.NaN(), math.NaN(), 0, nil
	}
	c, err := a.counts(v)
	if err == nil {
		err = a.check(c, labels, a.Rows(v))
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("the summed counts of all peers: %w", err)
	}
	if loss = math.NaN(); a.head > 0 {
		loss = float64(float32(Real(v))) / float64(labels)
	}
	return a.metric.Of(&c), loss, labels, nil
}

// Bound returns how far AUC or AP of a sum can be from its value over the rows' own scores; rounding keeps it above 0.
// For other metrics it is 0.
func (a Accumulator) Bound(v []int64) float64 {
	c, err := a.counts(v)
	if err != nil || a.bins == 0 {
		return 0
	}
	return max(c.bound(a.metric), 1e-15)
}

// Sides returns how many positives and negatives each ranking has in a sum (nil = the metric ranks nothing).
func (a Accumulator) Sides(v []int64) (all [][2]float64) {
	if a.bins == 0 {
		return nil
	}
	if c, err := a.counts(v); err == nil {
		for k := range c.curves {
			var n [2]float64
			for i, x := range c.curve(k) {
				n[i%2] += float64(x)
			}
			all = append(all, n)
		}
	}
	return all
}

// labels returns the number of labels in a sum, or the number of rows if only the metric was summed.
func (a Accumulator) labels(v []int64) int64 {
	if a.head > 0 {
		return v[RealLen]
	}
	return a.Rows(v)
}

// counts returns the counts in a sum.
func (a Accumulator) counts(v []int64) (MetricCounts, error) {
	c, n := a.zero(), v[a.head:a.size]
	if a.from > 0 {
		n = make([]int64, len(c.n))
		copy(n[a.from:], v[a.head:a.size])
		n[0] = a.Rows(v)
	}
	err := c.FromVector(n)
	return c, err
}

// RealLen is how many integers PutReal writes.
const RealLen = 4

// realUnits are the units of a real number's first integers. Each except the last is below 2⁵⁰, so that sums of 4096
// fit.
var realUnits = [RealLen - 1]float64{1 << 40, 1, 1.0 / (1 << 40)}

// PutReal writes x, rounded to a multiple of 2⁻⁴⁰, as integers whose sums over up to 4096 peers are exactly the sum of
// the reals. The last integer is 1 if x is not finite, or not within ±2⁹⁰.
func PutReal(v []int64, x float64) {
	clear(v[:RealLen])
	if !(math.Abs(x) < 1<<90) {
		v[RealLen-1] = 1
		return
	}
	for k, unit := range realUnits {
		d := math.Trunc(x / unit)
		if k == len(realUnits)-1 {
			d = math.RoundToEven(x / unit)
		}
		v[k] = int64(d)
		x -= float64(d * unit)
	}
}

// Real returns the real number in sums of PutReal: NaN if one of the terms could not
// be written.
func Real(v []int64) float64 {
	if v[RealLen-1] != 0 {
		return math.NaN()
	}
	x := 0.0
	for k, unit := range realUnits {
		x += float64(float64(v[k]) * unit)
	}
	return x
}

// Rows returns how many labelled rows a sum of Writes is over.
func (a Accumulator) Rows(v []int64) (rows int64) {
	if a.from == 0 {
		return v[a.head]
	}
	for _, n := range v[:2*a.bins] { // each ranking has all rows
		rows += n
	}
	return rows
}

// Check returns an error if v cannot be a sum of Writes over the given number of labelled rows.
func (a Accumulator) Check(v []int64, rows int64) error {
	c, err := a.counts(v)
	if err != nil {
		return err
	}
	return a.check(c, a.labels(v), rows)
}

// check is Check for counts that are not negative, and a number of labels.
func (a Accumulator) check(c MetricCounts, labels, rows int64) error {
	if most := rows * int64(max(a.none.Classes, 1)); labels < 0 || labels > most {
		return fmt.Errorf("the labels must be 0 to %d (got %d)", most, labels)
	}
	if c.n[0] != rows || c.n[1] > rows {
		return fmt.Errorf("there must be %d rows, at most as many of them right (got %d, and %d)", rows, c.n[0],
			c.n[1])
	}
	if c.each > 0 {
		n := readNumbers(c.n[perRow:], rows, c.unit, c.each)
		return n.check()
	}
	if a.from == 0 {
		if err := a.checkClasses(c, rows); err != nil {
			return err
		}
	}
	for k := range c.curves {
		all := int64(0)
		for _, x := range c.curve(k) {
			if all += x; x > rows {
				return fmt.Errorf("a bin of class %d must have at most %d rows (got %d)", k, rows, x)
			}
		}
		if c.bins > 0 && all != rows {
			return fmt.Errorf("the bins of class %d must have %d rows (got %d)", k, rows, all)
		}
	}
	return nil
}

// checkClasses is check for the counts of each class.
func (a Accumulator) checkClasses(c MetricCounts, rows int64) error {
	var sum [3]int64
	for k := range c.classes {
		t := c.class(k)
		for i, x := range t {
			if sum[i] += x; x > rows {
				return fmt.Errorf("a count of class %d must be at most %d (got %d)", k, rows, x)
			}
		}
	}
	if a.none.Kind() == graph.Single && (sum[0] != c.n[1] || sum[0]+sum[2] != rows || sum[1] != sum[2]) {
		return fmt.Errorf("of %d rows with one class, %d of them right, each must count once (got %d right, "+
			"%d as another class, %d missed)", rows, c.n[1], sum[0], sum[1], sum[2])
	}
	if f := c.far(); f != nil {
		wrong, most := rows-c.n[1], int64(c.classes-1)
		if f[0] < wrong || f[0] > most*wrong || f[1] < f[0] || f[1] > most*f[0] {
			return fmt.Errorf("%d wrong rows of %d classes must be off by as many ranks or more "+
				"(got %d, and squares of %d)", wrong, c.classes, f[0], f[1])
		}
	}
	return nil
}

// Most returns the greatest value of number i of a Write over that many rows; parts of the loss are unbounded.
func (a Accumulator) Most(i int, rows int64) int64 {
	switch i %= a.size; {
	case i < a.head-1 || a.sums(i):
		return 1 << 62
	case i == a.head-1:
		return rows * int64(max(a.none.Classes, 1))
	}
	if a.far(i) {
		return rows * int64(a.none.Classes*a.none.Classes)
	}
	return rows
}

// Wide reports whether number i of a Write may exceed the number of all rows of a sum, or be negative.
func (a Accumulator) Wide(i int) bool {
	i %= a.size
	return i < a.head-1 || i == a.head-1 && a.none.Multi() || a.sums(i) || a.far(i)
}

// far reports whether number i of a Write counts ranks that predictions are off.
func (a Accumulator) far(i int) bool { return a.metric.OfOrder() && i >= a.size-ranksOff }

// sums reports whether number i of a Write is part of a sum of numbers.
func (a Accumulator) sums(i int) bool {
	return a.none.Kind() == graph.Numbers && i >= a.head+perRow
}
