package eval

import "math"

// OfOrder reports whether m measures how far predictions of ordered classes are off, in ranks.
func (m Metric) OfOrder() bool { return m == "rank-mae" || m == "qwk" }

// MostOrdered is the most classes that may be in order.
const MostOrdered = 50

// Plain reports whether m is written as a number, not in percent.
func (m Metric) Plain() bool { return m.OfNumbers() || m.OfOrder() }

// Median returns the first class up to which, from class 0 on, the probabilities of a row of logits, by softmax, reach
// one half: of ordered classes the one that is expected to be the fewest ranks off.
func Median(row []float32) int {
	top, all := float64(row[ArgMax(row)]), 0.0
	for _, x := range row {
		all += math.Exp(float64(x) - top)
	}
	sum := 0.0
	for k, x := range row {
		if sum += math.Exp(float64(x) - top); 2*sum >= all {
			return k
		}
	}
	return ArgMax(row) // logits that are not numbers
}

// decided returns the class that a row of logits predicts.
func decided(row []float32, ordered bool) int {
	if ordered {
		return Median(row)
	}
	return ArgMax(row)
}

// What is counted of classes in order, behind all other counts: how many ranks predictions are off, and the squares.
const ranksOff = 2

// far returns these counts, or nil if they are not counted.
func (c *MetricCounts) far() []int64 {
	if !c.ordered {
		return nil
	}
	return c.n[len(c.n)-ranksOff:]
}

// apart counts nodes of class is that were predicted to be of class said.
func (c *MetricCounts) apart(is, said int, nodes int64) {
	if f := c.far(); f != nil {
		off := int64(is - said)
		f[0] += nodes * max(off, -off)
		f[1] += nodes * off * off
	}
}

// RankMAE returns by how many ranks predictions of ordered classes are off, on average; 0 without rows.
func (c *MetricCounts) RankMAE() float64 { return ratio(float64(c.far()[0]), float64(c.n[0])) }

// QWK returns the quadratic weighted kappa of ordered classes: 1 − Σ(i−j)²·O_ij / Σ(i−j)²·E_ij. O counts the rows of
// class i that are predicted to be of class j, and E is what chance gives with the same marginals (Cohen, Psychological
// Bulletin 1968). It is 0 if all rows have, and get, one class.
func (c *MetricCounts) QWK() float64 {
	expected := 0.0
	for i := range c.classes {
		t := c.class(i)
		labelled := float64(t[0] + t[2])
		for j := range c.classes {
			s := c.class(j)
			expected += float64((i-j)*(i-j)) * labelled * float64(s[0]+s[1])
		}
	}
	if expected == 0 {
		return 0
	}
	return 1 - float64(c.far()[1])*float64(c.n[0])/expected
}

// byMedian returns by how many ranks the median class of the training rows is off, on average.
func (t *Table) byMedian(train []float64) float64 {
	all, sum, median := 0.0, 0.0, 0
	for _, n := range train {
		all += n
	}
	for k, n := range train {
		if sum += n; 2*sum >= all {
			median = k
			break
		}
	}
	off := 0.0
	for k := range t.counts.classes {
		right, _, missed := t.Class(k)
		off += math.Abs(float64(k-median)) * float64(right+missed)
	}
	return off / float64(t.Rows())
}
