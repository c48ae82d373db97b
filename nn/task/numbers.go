package task

import (
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
)

// numbers returns the sum over rows with a label of the mean over columns of the loss of e = f − y, where f are the
// predictions, N×C, and y the labels, and count = the number of rows, so that loss/count is the mean and both add up over
// peers. The gradient is the loss's slope at e over C, and 0 where there is no label.
func (l Loss) numbers(grad, f mat.Dense, labels graph.Labels) (loss, count float64) {
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
			at, slope := l.at(float64(v) - float64(y[c]))
			loss += float64(mean * at)
			if !grad.Empty() {
				grad.Set(i, c, float32(mean*slope))
			}
		}
	}
	return loss, count
}

// at returns the loss of an error e and its slope: e²; Huber's e²/2 up to Delta and Delta·(|e| − Delta/2) beyond (Annals of
// Mathematical Statistics 1964); or the check function of a quantile q, max(−q·e, (1−q)·e) (Koenker and Bassett,
// Econometrica 1978), whose slope at 0 is 0.
func (l Loss) at(e float64) (loss, slope float64) {
	switch l.Kind {
	case "huber":
		if math.Abs(e) > l.Delta {
			return l.Delta * (math.Abs(e) - l.Delta/2), math.Copysign(l.Delta, e)
		}
		return e * e / 2, e
	case "quantile":
		switch {
		case e > 0:
			return (1 - l.Quantile) * e, 1 - l.Quantile
		case e < 0:
			return -l.Quantile * e, -l.Quantile
		}
		return 0, 0
	}
	return e * e, 2 * e
}
