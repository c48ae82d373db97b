package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// AUC returns the area under the ROC curve of scores against labels (0 negative, else positive):
// the probability that a positive scores above a negative, equals counting half (Mann and Whitney
// 1947, by mid-ranks). NaN ranks lowest. It is 0 where positives or negatives are missing.
func AUC(scores []float64, labels []uint8) float64 {
	var below, pairs, pos float64 // below: negatives with lower scores
	for p, q := range thresholds(scores, labels) {
		pairs += p * (below + q/2)
		below, pos = below+q, pos+p
	}
	return ratio(pairs, pos*below)
}

// AP returns the average precision, Σ (Rₙ−Rₙ₋₁)·Pₙ over falling thresholds, one for each distinct
// score. NaN ranks lowest. It is 0 without positives.
func AP(scores []float64, labels []uint8) float64 {
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
