package task

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// numbers returns the sum over rows with a label of the mean over columns of e², e = f − y, where f are the
// predictions, N×C, and y the labels, and count = the number of rows, so that loss/count is the mean and both add up over
// peers. The gradient is 2e over C, and 0 where there is no label.
func numbers(grad, f mat.Dense, labels graph.Labels) (loss, count float64) {
	checkLabels("numbers", len(labels.Values), f.Rows*f.Cols)
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
