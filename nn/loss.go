package nn

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// Loss returns the loss of logits, N×C, summed over the rows with a label, and what the mean divides it by: the
// cross-entropy of one class a node, the binary cross-entropy if a node has several, or the squared error of
// numbers. weight has w per class, nil meaning 1; numbers have none. grad, unless it is empty, is overwritten with
// the gradient of the sum.
func Loss(grad, logits mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	switch labels.Kind() {
	case graph.Numbers:
		return squaredError(grad, logits, labels)
	case graph.Several:
		return binaryCrossEntropy(grad, logits, labels, weight)
	}
	return crossEntropy(grad, logits, labels, weight)
}

// ClassWeights returns what each class weighs, of n labels each: the given weights, or if they are balanced
// balancedWeights (nil = 1).
func ClassWeights(n []float64, balanced bool, given []float32) []float32 {
	if balanced {
		return balancedWeights(n)
	}
	return given
}

// CheckClassWeights returns what is wrong with the weights of classes of labels of kind k; nil weights are right.
func CheckClassWeights(weights []float32, classes int, balanced bool, k graph.TargetKind) error {
	switch {
	case weights == nil:
		return nil
	case k == graph.Numbers:
		return errors.New("class_weights must be empty where nodes have numbers: there are no classes to weigh")
	case balanced:
		return errors.New("balanced must be false with class_weights (got true)")
	case len(weights) != classes:
		return fmt.Errorf("class_weights must be %d, one a class (got %d)", classes, len(weights))
	}
	for _, w := range weights {
		if !(w > 0 && w <= maxWeight) {
			return fmt.Errorf("class_weights must be above 0 and at most %g (got %g)", float64(maxWeight), w)
		}
	}
	return nil
}

// maxWeight bounds the weight of a class, so that sums of weighted losses stay within their format.
const maxWeight = 1e4

// balancedWeights returns N/(C·n_c) for the C classes that have labels, n_c of N in all, so that every
// class weighs the same and the mean weight of a label is 1. A class without labels weighs 0.
func balancedWeights(n []float64) []float32 {
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

// crossEntropy returns Σ_i w(y_i)·(ln Σ_c exp s_ic − s_iy) over the rows with a label (Class ≥ 0),
// and count = Σ_i w(y_i), so that loss/count is the mean and both add up over peers. weight has w
// per class, nil meaning 1. grad, unless it is empty, is overwritten with the gradient of the sum:
// w(y)·(softmax(s) − onehot(y)), and 0 without a label.
func crossEntropy(grad, logits mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	checkLabels("crossEntropy", len(labels.Class), logits.Rows)
	var g []float32
	if !grad.Empty() {
		g = grad.Data
	}
	return kernels.CrossEntropy(logits.Rows, logits.Cols, logits.Data, logits.Stride,
		labels.Class, weight, g, grad.Stride)
}

// binaryCrossEntropy is the binary cross-entropy of labels.Bits with logits: the sum over rows of the mean over
// classes of w_c·(ln(1 + exp s) − b·s), and count = the number of rows, so that loss/count is the mean and both add
// up over peers. A row whose first bit is 255 has no label: no loss, a gradient of 0. weight has w per class, nil
// meaning 1. grad, unless it is empty, is overwritten with the gradient of the sum.
func binaryCrossEntropy(grad, logits mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	checkLabels("binaryCrossEntropy", len(labels.Bits), logits.Rows*logits.Cols)
	mean := 1 / float64(max(logits.Cols, 1))
	for i := range logits.Rows {
		bits := labels.Bits[i*logits.Cols : (i+1)*logits.Cols]
		if bits[0] == unlabelled {
			if !grad.Empty() {
				clear(grad.Row(i))
			}
			continue
		}
		count++
		for c, v := range logits.Row(i) {
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
			grad.Set(i, c, float32(w*(sigmoid(s, small)-b)))
		}
	}
	return loss, count
}

// squaredError returns the sum over rows with a label of the mean over columns of e², e = f − y, where f are the
// predictions, N×C, and y the labels, and count = the number of rows, so that loss/count is the mean and both add up
// over peers. The gradient is 2e over C, and 0 without a label.
func squaredError(grad, f mat.Dense, labels graph.Labels) (loss, count float64) {
	checkLabels("squaredError", len(labels.Values), f.Rows*f.Cols)
	mean := 1 / float64(max(f.Cols, 1))
	for i := range f.Rows {
		if !labels.Has(i) {
			if !grad.Empty() {
				clear(grad.Row(i))
			}
			continue
		}
		count++
		y := labels.Values[i*f.Cols : (i+1)*f.Cols]
		for c, v := range f.Row(i) {
			e := float64(v) - float64(y[c])
			loss += float64(mean * (e * e))
			if !grad.Empty() {
				grad.Set(i, c, float32(mean*(2*e)))
			}
		}
	}
	return loss, count
}

// sigmoid returns 1/(1+e^−s), where small is e^−|s|.
func sigmoid(s, small float64) float64 {
	if s < 0 {
		return small / (1 + small)
	}
	return 1 / (1 + small)
}

// unlabelled marks, in the first of its Bits, a row without labels.
const unlabelled = 255

// checkLabels panics unless there is a label for each row: the caller's bug.
func checkLabels(who string, got, want int) {
	if got != want {
		panic(fmt.Sprintf("nn: the labels of %s must be %d (got %d)", who, want, got))
	}
}
