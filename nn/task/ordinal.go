package task

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// MostOrdered is the most classes that may be in order.
const MostOrdered = 50

// ordinal is the loss of classes in order: the mean over the C−1 questions whether the class is above k, for k from 0 to C−2,
// of the binary cross-entropy of the answer, where softmax of the logits gives the probability Σ_{c>k} p_c of yes. As in
// CORAL (Cao, Mirjalili and Raschka, Pattern Recognition Letters 2020) a class that is far off answers more questions wrong;
// here the answers agree with each other, since they are sums of one distribution. Of two classes it is the cross-entropy.
//
// It returns the sum over the rows with a label of w(y)·loss, and count = Σ_i w(y_i). weight holds w per class, nil meaning 1.
// grad, unless it is empty, is overwritten with the gradient of the sum: w(y)·(p − the mean over k of the distribution given
// the right answer to k), and 0 where there is no label.
func ordinal(grad, logits mat.Dense, labels graph.Labels, weight []float32) (loss, count float64) {
	checkLabels("ordinal", len(labels.Class), logits.Rows)
	last := logits.Cols - 1
	up, down := make([]float64, logits.Cols), make([]float64, logits.Cols)
	for i, class := range labels.Class {
		if class < 0 {
			if !grad.Empty() {
				clear(grad.Row(i))
			}
			continue
		}
		w, y, row := 1.0, int(class), logits.Row(i)
		if weight != nil {
			w = float64(weight[y])
		}
		count += w
		if last < 1 {
			continue // one class: no question
		}
		up[0], down[last] = float64(row[0]), float64(row[last])
		for k := 1; k <= last; k++ {
			up[k] = logAdd(up[k-1], float64(row[k]))                    // ln Σ_{c≤k} exp s_c
			down[last-k] = logAdd(down[last-k+1], float64(row[last-k])) // ln Σ_{c≥last−k} exp s_c
		}
		sum, mean := 0.0, w/float64(last)
		for k := range last {
			if y <= k {
				sum += up[last] - up[k]
			} else {
				sum += up[last] - down[k+1]
			}
		}
		loss += float64(mean * sum)
		if grad.Empty() {
			continue
		}
		for c, v := range row {
			s, given := float64(v), 0.0
			for k := max(y, c); k < last; k++ {
				given += math.Exp(s - up[k])
			}
			for k := range min(y, c) {
				given += math.Exp(s - down[k+1])
			}
			grad.Set(i, c, float32(mean*(float64(last)*math.Exp(s-up[last])-given)))
		}
	}
	return loss, count
}

// logAdd returns ln(exp a + exp b).
func logAdd(a, b float64) float64 { return max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b))) }
