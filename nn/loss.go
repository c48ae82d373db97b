package nn

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// CrossEntropy returns Σ_i w(y_i)·(ln Σ_c exp s_ic − s_iy) over the rows with a label (Class ≥ 0), and count = Σ_i w(y_i),
// so that loss/count is the mean and both add up over peers. weight holds w per class, nil meaning 1. grad, unless it
// is empty, is overwritten with the gradient of the sum: w(y)·(softmax(s) − onehot(y)), and 0 where there is no label.
func CrossEntropy(grad, scores mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	checkLabels("CrossEntropy", len(labels.Class), scores.Rows)
	var g []float32
	if !grad.Empty() {
		g = grad.Data
	}
	return kernels.CrossEntropy(scores.Rows, scores.Cols, scores.Data, scores.Stride, labels.Class, weight, g, grad.Stride)
}

// BCE is the binary cross-entropy of labels.Bits with logits: the sum over rows of the mean over classes of
// w_c·(ln(1 + exp s) − b·s), and count = the number of rows, so that loss/count is the mean and both add up over
// peers. A row whose first bit is 255 has no label: no loss, a gradient of 0. weight holds w per class, nil meaning 1.
// grad, unless it is empty, is overwritten with the gradient of the sum.
func BCE(grad, scores mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	checkLabels("BCE", len(labels.Bits), scores.Rows*scores.Cols)
	mean := 1 / float64(max(scores.Cols, 1))
	for i := range scores.Rows {
		bits := labels.Bits[i*scores.Cols : (i+1)*scores.Cols]
		if bits[0] == Unlabelled {
			if !grad.Empty() {
				clear(grad.Row(i))
			}
			continue
		}
		count++
		for c, v := range scores.Row(i) {
			w := mean
			if weight != nil {
				w *= float64(weight[c])
			}
			s, b := float64(v), float64(bits[c])
			small := math.Exp(-math.Abs(s)) // ln(1+eˢ) = max(s, 0) + ln(1+e^−|s|)
			loss += float64(w * (max(s, 0) - float64(b*s) + math.Log1p(small)))
			if grad.Empty() {
				continue
			}
			p := 1 / (1 + small)
			if s < 0 {
				p = small / (1 + small)
			}
			grad.Set(i, c, float32(w*(p-b)))
		}
	}
	return loss, count
}

// Unlabelled marks, in the first of its Bits, a row without labels in BCE.
const Unlabelled = 255

func checkLabels(who string, got, want int) {
	if got != want {
		panic(shapeFault("labels of "+who, got, want))
	}
}
