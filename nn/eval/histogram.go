package eval

import (
	"cmp"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// DefaultBins is how many bins a ranking has by default.
const DefaultBins = 4096

// curvesOf returns the number of binary rankings that the labels ask for.
func curvesOf(labels graph.Labels) int {
	if !labels.Multi() && labels.Classes == 2 {
		return 1
	}
	return labels.Classes
}

// side returns where a curve counts a row: 0 positive, 1 negative.
func side(positive bool) int {
	if positive {
		return 0
	}
	return 1
}

// logOdds writes the log-odds of each ranking's positive class.
func (c *MetricCounts) logOdds(dst []float64, row []float32, multi bool) {
	logOdds(dst, row, multi)
	if c.first && c.curves == 1 {
		dst[0] = -dst[0]
	}
}

// logOdds writes log(p/(1−p)) for the probability p of each ranking's positive class: sigmoid of
// its score with several classes a node, softmax of the row with one. It ranks as p does, without
// p's loss of digits near 1.
func logOdds(dst []float64, row []float32, multi bool) {
	if multi {
		for k, s := range row {
			dst[k] = float64(s)
		}
		return
	}
	if len(row) == 2 {
		dst[0] = float64(row[1]) - float64(row[0])
		return
	}
	top := ArgMax(row)
	first, second := float64(row[top]), math.Inf(-1)
	for k, s := range row {
		if k != top {
			second = max(second, float64(s))
		}
	}
	var all, rest float64 // Σ e^(s−first); Σ over all but the top of e^(s−second)
	for k, s := range row {
		all += math.Exp(float64(s) - first)
		if k != top {
			rest += math.Exp(float64(s) - second)
		}
	}
	for k, s := range row {
		x := float64(s) - first - math.Log(all-math.Exp(float64(s)-first))
		if k == top {
			x = first - second - math.Log(rest)
		}
		dst[k] = float64(float32(x)) // rows of the same scores in another order are equal, whatever the sums' last bits
	}
}

// Scale places the bins where most log-odds of a ranking are, so that few bins separate them. The zero Scale
// suits any model.
type Scale struct {
	Centre, Width float64 // about their mean and deviation
}

// binOf returns the bin, in [0, bins), of the log-odds x. On the zero Scale bins have equal widths of x/(2+|x|): they
// are as fine as bins of the probability at ½ and, unlike them, able to tell apart the scores of a sure model. Else,
// with z = (x − Centre)/Width, they have equal widths of z/√(2+z²): each bin has about as many normal log-odds, and a
// few bins have the log-odds that are far out. NaN is in bin 0.
func (s Scale) binOf(x float64, bins int) int {
	x = min(max(x, -1e9), 1e9)
	u := (1 + x/(2+math.Abs(x))) / 2
	if s.Width > 0 {
		z := (x - s.Centre) / s.Width
		u = (1 + z/math.Sqrt(2+float64(z*z))) / 2
	}
	if math.IsNaN(u) {
		return 0
	}
	return min(int(u*float64(bins)), bins-1)
}

// AUC returns the area under the ROC curve, of the positive class of two, else the mean over classes of one against the
// rest; a class without positives or without negatives is left out. Rows of one bin count as equal: the area over all
// rows' own scores is within AUCBound of it. It is NaN if it is undefined: no class has both, or nothing was binned.
func (c *MetricCounts) AUC() float64 { auc, _ := c.mean(curveArea); return auc }

// AUCBound returns how far AUC is at most from the area over the rows' own scores: half the share
// of pairs of a positive and a negative that lie in one bin.
func (c *MetricCounts) AUCBound() float64 { _, bound := c.mean(curveArea); return bound }

// AP returns the average precision, Σ (Rₙ−Rₙ₋₁)·Pₙ over falling thresholds, one a bin, of the positive class of two,
// else the mean over classes; a class without positives is left out. The value over all rows' own scores is within
// APBound of it. It is NaN if no class has positives, or nothing was binned.
func (c *MetricCounts) AP() float64 { ap, _ := c.mean(curvePrecision); return ap }

// APBound returns how far AP is at most from the value over the rows' own scores: in a bin of p
// positives and q negatives below T positives and F negatives, a positive's precision is at least
// (T+1)/(T+1+F+q) and at most (T+p)/(T+p+F).
func (c *MetricCounts) APBound() float64 { _, bound := c.mean(curvePrecision); return bound }

// mean returns the mean of a measure over the rankings that have one, and of its bound.
func (c *MetricCounts) mean(of func(curve []int64) (x, bound float64)) (mean, bound float64) {
	var n float64
	for k := range c.curves {
		if x, off := of(c.curve(k)); x == x {
			mean, bound, n = mean+x, bound+off, n+1
		}
	}
	return mean / n, bound / n
}

// curveArea returns the AUC of a curve, and its bound; NaN without positives or without negatives.
func curveArea(curve []int64) (area, bound float64) {
	var above, neg, tied float64 // above: positives in higher bins
	for b := len(curve) - 2; b >= 0; b -= 2 {
		p, q := float64(curve[b]), float64(curve[b+1])
		area += q * (above + p/2)
		tied += p * q / 2
		above, neg = above+p, neg+q
	}
	return area / (above * neg), tied / (above * neg)
}

// curvePrecision returns the AP of a curve, and its bound; NaN without positives.
func curvePrecision(curve []int64) (sum, bound float64) {
	var t, f, off float64
	for b := len(curve) - 2; b >= 0; b -= 2 {
		p, q := float64(curve[b]), float64(curve[b+1])
		if p > 0 {
			precision := (t + p) / (t + p + f + q)
			sum += p * precision
			off += p * max((t+p)/(t+p+f)-precision, precision-(t+1)/(t+1+f+q))
		}
		t, f = t+p, f+q
	}
	return sum / t, off / t
}

// bound returns how far AUC or AP is at most from the value over the rows' own scores; other metrics are exact.
func (c *MetricCounts) bound(m Metric) float64 {
	switch m {
	case "auc":
		return c.AUCBound()
	case "ap":
		return c.APBound()
	}
	return 0
}

// Scored are rows of scores with their labels, as Count takes them.
type Scored struct {
	Scores mat.Dense
	Labels graph.Labels
	Rows   []int32
}

// Pooled returns m of all rows together; AUC and AP by their own scores, not from bins.
func (m Metric) Pooled(all ...Scored) float64 {
	sum := newCounts(all[0].Labels, 0, m.OfOrder())
	ranked := make([][]scoredRow, sum.curves)
	odds := make([]float64, sum.curves)
	for _, one := range all {
		if !m.Ranks() {
			sum.Add(count(one.Scores, one.Labels, one.Rows, 0, nil, m.OfOrder()))
			continue
		}
		eachRow(one.Scores, one.Labels, one.Rows, func(row []float32, class int, bits []uint8) {
			sum.logOdds(odds, row, bits != nil)
			for k, x := range odds {
				ranked[k] = append(ranked[k], scoredRow{x, sum.positive(k, class, bits)})
			}
		})
	}
	if !m.Ranks() {
		return m.Of(&sum)
	}
	exact := MetricCounts{curves: 1}
	var mean, n float64
	for _, rows := range ranked {
		exact.fromRows(rows)
		if x := m.Of(&exact); x == x {
			mean, n = mean+x, n+1
		}
	}
	return mean / n
}

// scoredRow is the log-odds of a row, and whether it is a positive.
type scoredRow struct {
	odds     float64
	positive bool
}

// fromRows makes c the counts of one ranking that has a bin for each score.
func (c *MetricCounts) fromRows(rows []scoredRow) {
	slices.SortFunc(rows, func(a, b scoredRow) int { return cmp.Compare(a.odds, b.odds) })
	c.n = make([]int64, perRow)
	for i, r := range rows {
		if i == 0 || cmp.Compare(rows[i-1].odds, r.odds) != 0 {
			c.n = append(c.n, 0, 0)
		}
		c.n[len(c.n)-2+side(r.positive)]++
	}
	c.bins = len(c.n)/2 - 1
}
