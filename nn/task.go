package nn

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// Loss is CrossEntropy or BCE, whichever the labels call for.
func Loss(grad, scores mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	if labels.Multi() {
		return BCE(grad, scores, labels, weight)
	}
	return CrossEntropy(grad, scores, labels, weight)
}

// ClassWeights returns N/(C·n_c) for the C classes that have labels, n_c of N in all, so that every class weighs the
// same and the mean weight of a label is 1. A class without labels weighs 0.
func ClassWeights(n []float64) []float32 {
	total, classes := 0.0, 0.0
	for _, k := range n {
		total += k
		if k > 0 {
			classes++
		}
	}
	w := make([]float32, len(n))
	for c, k := range n {
		if k > 0 {
			w[c] = float32(total / (classes * k))
		}
	}
	return w
}
