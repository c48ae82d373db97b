package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// areaUnder returns the area under the ROC curve of scores against labels (0 negative, else positive):
// the probability that a positive scores above a negative, equals counting half (Mann and Whitney
// 1947, by mid-ranks). NaN ranks lowest. It is 0 where positives or negatives are missing.
func areaUnder(scores []float64, labels []uint8) float64 {
	var below, pairs, pos float64 // below: negatives with lower scores
	for p, q := range thresholds(scores, labels) {
		pairs += p * (below + q/2)
		below, pos = below+q, pos+p
	}
	return ratio(pairs, pos*below)
}

// averagePrecision returns the average precision, Σ (Rₙ−Rₙ₋₁)·Pₙ over falling thresholds, one for each distinct
// score. NaN ranks lowest. It is 0 without positives.
func averagePrecision(scores []float64, labels []uint8) float64 {
	var groups [][2]float64
	for p, q := range thresholds(scores, labels) {
		groups = append(groups, [2]float64{p, q})
	}
	var t, f, sum float64
	for _, g := range slices.Backward(groups) {
		t, f = t+g[0], f+g[1]
		sum += g[0] * (t / (t + f))
	}
	return ratio(sum, t)
}

// thresholds yields, for each distinct score from the lowest, the number of positives and of
// negatives that have it.
func thresholds(scores []float64, labels []uint8) func(yield func(positives, negatives float64) bool) {
	if len(scores) != len(labels) {
		panic(fmt.Sprintf("eval: %d scores for %d labels", len(scores), len(labels)))
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	return func(yield func(positives, negatives float64) bool) {
		var n [2]float64
		for i, at := range order {
			if s := scores[at]; i > 0 && s != scores[order[i-1]] && !math.IsNaN(s) {
				if !yield(n[0], n[1]) {
					return
				}
				n = [2]float64{}
			}
			n[side(labels[at] != 0)]++
		}
		yield(n[0], n[1])
	}
}

// binnedCounts counts what m needs, with DefaultBins where it ranks.
func binnedCounts(m Metric, scores mat.Dense, labels graph.Labels, rows []int32) MetricCounts {
	if m.Ranks() {
		return count(scores, labels, rows, DefaultBins, nil, false)
	}
	return count(scores, labels, rows, 0, nil, m.OfOrder())
}

// exactly returns m of rows that are all here: the ranking metrics from the scores themselves.
// Arguments are those of Count.
func exactly(m Metric, scores mat.Dense, labels graph.Labels, rows []int32) float64 {
	if !m.Ranks() {
		c := binnedCounts(m, scores, labels, rows)
		return m.Of(&c)
	}
	c := newCounts(labels, 0, false)
	curves := c.curves
	odds, truths := make([][]float64, curves), make([][]uint8, curves)
	x := make([]float64, curves)
	eachRow(scores, labels, rows, func(row []float32, class int, bits []uint8) {
		logOdds(x, row, labels.Multi())
		if labels.First && curves == 1 {
			x[0] = -x[0]
		}
		for k := range curves {
			odds[k] = append(odds[k], x[k])
			truths[k] = append(truths[k], uint8(1-side(c.positive(k, class, bits))))
		}
	})
	var sum, n float64
	for k := range curves {
		pos := 0
		for _, t := range truths[k] {
			pos += int(t)
		}
		switch {
		case m == "ap" && pos > 0:
			sum += averagePrecision(odds[k], truths[k])
			n++
		case m == "auc" && pos > 0 && pos < len(truths[k]):
			sum += areaUnder(odds[k], truths[k])
			n++
		}
	}
	return sum / n
}

// TestWithin: an AP of many equal scores that few bins cannot tell apart is not printed to digits that they do not
// know.
func TestWithin(t *testing.T) {
	scores, labels := mat.New(10, 2), graph.Labels{Classes: 2, Class: []int32{0, 0, 0, 0, 0, 0, 1, 1, 0, 1}}
	for i := range 10 {
		scores.Set(i, 1, []float32{-3.52, -3.52, -3.52, -3.52, -3.52, -3.52, -3.51, -3.51, -3.51, -3.5}[i])
	}
	if ap := Metric("ap").Pooled(Scored{scores, labels, nil}); math.Abs(ap-(1+2*0.75)/3) > 1e-12 {
		t.Errorf("AP by the scores: %v", ap)
	}
	for _, c := range []struct {
		bins  int
		bound float64
		text  string
	}{{CurveBins, 0.7, "0 to 100 %"}, {DefaultBins, 0.5 / 3, "66 to 100 %"}} {
		n := count(scores, labels, nil, c.bins, nil, false)
		if text := Metric("ap").Within(n.AP(), n.APBound()); math.Abs(n.APBound()-c.bound) > 1e-12 || text != c.text {
			t.Errorf("%d bins: %s, off by at most %v", c.bins, text, n.APBound())
		}
	}
	for bound, want := range map[float64]string{0: "31.97 %", 5e-5: "31.97 %", 6e-5: "32.0 %", 5e-4: "32.0 %",
		0.004: "32 %", 0.0148: "30 to 34 %"} {
		if got := Metric("ap").Within(0.3197, bound); got != want {
			t.Errorf("0.3197 within %v is %s, must be %s", bound, got, want)
		}
	}
	if got := Metric("auc").Within(0.3197, math.NaN()); got != "32 %" {
		t.Errorf("without a bound: %s", got)
	}
}

// TestRareByHand: AUC and AP of few positives with many ties are those computed by hand, of either class, over one set
// of rows or several; a ranking of one class is undefined.
func TestRareByHand(t *testing.T) {
	// Scores of class 1 less those of class 0; positives are +. From the top: 9: +; 2: + − −; 0: + and six −; −7: −.
	scores := mat.New(12, 2)
	labels := graph.Labels{Classes: 2, Class: make([]int32, 12)}
	for i, x := range []float32{9, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, -7} {
		scores.Set(i, 1, x)
	}
	for _, i := range []int{0, 2, 5} {
		labels.Class[i] = 1
	}
	rows := []int32{3, 1, 11, 0, 2, 9, 8, 7, 6, 5, 4, 10}
	// Pairs of + and −: 9 of the first, 7 and half of 2 of the second, 1 and half of 6 of the third.
	auc := (9.0 + 7 + 1 + 1 + 3) / 27
	ap := (1 + 2.0/4 + 3.0/11) / 3
	other := (1 + 6*7.0/8 + 2*9.0/11) / 9
	first := labels
	first.First = true
	for _, c := range []struct {
		m      Metric
		labels graph.Labels
		want   float64
	}{{"auc", labels, auc}, {"ap", labels, ap}, {"auc", first, auc}, {"ap", first, other}} {
		whole := c.m.Pooled(Scored{scores, c.labels, nil})
		parts := c.m.Pooled(Scored{scores, c.labels, rows[:5]}, Scored{scores, c.labels, rows[5:]},
			Scored{scores, c.labels, []int32{}})
		binned := binnedCounts(c.m, scores, c.labels, rows)
		for _, got := range []float64{whole, parts, exactly(c.m, scores, c.labels, nil), c.m.Of(&binned)} {
			if math.Abs(got-c.want) > 1e-12 {
				t.Errorf("%s, first %t: %v, by hand %v", c.m, c.labels.First, got, c.want)
			}
		}
	}
	for _, m := range []Metric{"auc", "ap"} {
		if x := m.Pooled(Scored{scores, labels, []int32{1, 3, 11}}); x == x {
			t.Errorf("%s of one class is %v, must be undefined", m, x)
		}
	}
	if x := Metric("accuracy").Pooled(Scored{scores, labels, rows}); x != 9.0/12 {
		t.Errorf("accuracy %v, must be 9 of 12 (of equal scores class 0 is named)", x)
	}
}

// TestRankingError: the standard error of AUC is that of Hanley and McNeil, that of AP of the positives, whatever the
// rest is.
func TestRankingError(t *testing.T) {
	for _, c := range []struct {
		m     Metric
		x     float64
		sides [][2]float64
		want  float64
	}{
		{"auc", 0.893, [][2]float64{{51, 58}}, 0.03251}, // table II of the paper: θ = 0.893, 51 abnormal and 58 normal
		{"auc", 0.75, [][2]float64{{8, 2992}}, 0.10030},
		{"auc", 0.75, [][2]float64{{8, 2992}, {8, 2992}}, 0.10030 / math.Sqrt2},
		{"ap", 0.5, [][2]float64{{25, 10000}}, 0.1},
		{"ap", 1, [][2]float64{{1, 600}}, math.Sqrt(0.75 * 0.25)},
		{"accuracy", 0.9, nil, 0.003},
	} {
		got := c.m.StandardError(c.x, 10000, c.sides...)
		if math.Abs(got-c.want) > 5e-5 {
			t.Errorf("%s %v over %v: %v, must be %v", c.m, c.x, c.sides, got, c.want)
		}
	}
	if x := Metric("auc").StandardError(math.NaN(), 9, [2]float64{0, 9}); x == x {
		t.Errorf("of an undefined AUC: %v", x)
	}
}
