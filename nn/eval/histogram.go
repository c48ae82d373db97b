package eval

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
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

// Scale says where the log-odds of a ranking lie, so that few bins tell them apart. The zero Scale is that of any model.
type Scale struct {
	Centre, Width float64 // about their mean and deviation
}

// binOf returns the bin, in [0, bins), of the log-odds x. On the zero Scale bins have equal widths of x/(2+|x|): they are as
// fine as bins of the probability at ½ and, unlike them, able to tell apart the scores of a sure model. Else, with z for
// (x − Centre)/Width, they have equal widths of z/√(2+z²): each has about as many of normal log-odds, and a few have those that
// lie far out. NaN lies in bin 0.
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

// AUC returns the area under the ROC curve, of class 1 where there are two, else the mean over
// classes of one against the rest; a class without positives or without negatives is left out. Rows
// of one bin count as equal: the area over all rows' own scores lies within AUCBound of it. It is 0
// where nothing was binned.
func (c *Counts) AUC() float64 { auc, _ := c.auc(); return auc }

// AUCBound returns how far AUC is at most from the area over the rows' own scores: half the share
// of pairs of a positive and a negative that lie in one bin.
func (c *Counts) AUCBound() float64 { _, bound := c.auc(); return bound }

func (c *Counts) auc() (mean, bound float64) {
	var n float64
	for k := range c.curves {
		var above, pos, neg, area, tied float64 // above: positives in higher bins
		curve := c.curve(k)
		for b := len(curve) - 2; b >= 0; b -= 2 {
			p, q := float64(curve[b]), float64(curve[b+1])
			area += q * (above + p/2)
			tied += p * q / 2
			above, pos, neg = above+p, pos+p, neg+q
		}
		if pos > 0 && neg > 0 {
			mean += area / (pos * neg)
			bound += tied / (pos * neg)
			n++
		}
	}
	return ratio(mean, n), ratio(bound, n)
}

// AP returns the average precision, Σ (Rₙ−Rₙ₋₁)·Pₙ over falling thresholds, one a bin, of class 1
// where there are two, else the mean over classes; a class without positives is left out. The value
// over all rows' own scores lies within APBound of it. It is 0 where nothing was binned.
func (c *Counts) AP() float64 { ap, _ := c.ap(); return ap }

// APBound returns how far AP is at most from the value over the rows' own scores: in a bin of p
// positives and q negatives below T positives and F negatives, a positive's precision is at least
// (T+1)/(T+1+F+q) and at most (T+p)/(T+p+F).
func (c *Counts) APBound() float64 { _, bound := c.ap(); return bound }

func (c *Counts) ap() (mean, bound float64) {
	var n float64
	for k := range c.curves {
		var t, f, sum, off float64
		curve := c.curve(k)
		for b := len(curve) - 2; b >= 0; b -= 2 {
			p, q := float64(curve[b]), float64(curve[b+1])
			if p > 0 {
				precision := (t + p) / (t + p + f + q)
				sum += p * precision
				off += p * max((t+p)/(t+p+f)-precision, precision-(t+1)/(t+1+f+q))
			}
			t, f = t+p, f+q
		}
		if t > 0 {
			mean += sum / t
			bound += off / t
			n++
		}
	}
	return ratio(mean, n), ratio(bound, n)
}
