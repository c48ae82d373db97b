package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// exactly returns m of rows that are all here: the ranking metrics from the scores themselves.
// Arguments are those of Count.
func exactly(m Metric, scores mat.Dense, labels graph.Labels, rows []int32) float64 {
	if !m.Ranks() {
		c := m.Count(scores, labels, rows)
		return m.Of(&c)
	}
	c := newCounts(labels, 0, false)
	curves := c.curves
	odds, truths := make([][]float64, curves), make([][]uint8, curves)
	x := make([]float64, curves)
	eachRow(scores, labels, rows, func(row []float32, class int, bits []uint8) {
		logOdds(x, row, labels.Multi())
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
	return ratio(sum, n)
}
