package labels

import (
	"math"
	"testing"
)

func TestShiftedShares(t *testing.T) {
	chance := [][]float64{{0.8, 0.1, 0.1}, {0.2, 0.7, 0.1}, {0.1, 0.3, 0.6}}
	shares := []float64{0.6, 0.3, 0.1}
	confusion, given := make([][]float64, 3), make([]float64, 3)
	for k, row := range chance {
		for j, p := range row {
			confusion[k] = append(confusion[k], 1000*p)
			given[j] += 5000 * shares[k] * p
		}
	}
	for k, q := range ShiftedShares(confusion, given) {
		if math.Abs(q-shares[k]) > 0.08 { // a tenth more nodes count as of all classes alike
			t.Errorf("class %d has a share of %.3f, must be %.3f", k, q, shares[k])
		}
	}
	for _, q := range ShiftedShares(confusion, []float64{0, 0, 0}) {
		if math.Abs(q-1.0/3) > 1e-12 {
			t.Errorf("a share is %g without nodes, must be a third", q)
		}
	}
}
