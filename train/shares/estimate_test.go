package shares

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
	for k, q := range shifted(confusion, given) {
		if math.Abs(q-shares[k]) > 0.08 { // a tenth more nodes count as of all classes alike
			t.Errorf("class %d has a share of %.3f, must be %.3f", k, q, shares[k])
		}
	}
	for _, q := range shifted(confusion, []float64{0, 0, 0}) {
		if math.Abs(q-1.0/3) > 1e-12 {
			t.Errorf("a share is %g without nodes, must be a third", q)
		}
	}
}

// TestChoose: the first of the best parts is chosen, or of few validation nodes the last that they cannot tell from it.
func TestChoose(t *testing.T) {
	right := [][]float64{{10, 20}, {14, 18}, {16, 15}, {16, 15}, {20, 3}}
	weight, validating := []float64{0.7 / 20, 0.3 / 20}, []float64{20, 20}
	if got := choose(right, weight, validating, false); got != 2 {
		t.Errorf("part %d is chosen, must be 2, the first of the best", got)
	}
	right[4] = []float64{17, 12}
	if got := choose(right, weight, validating, true); got != 4 {
		t.Errorf("part %d is chosen, must be 4, within half a standard error of the best", got)
	}
	right[4] = []float64{10, 10}
	if got := choose(right, weight, validating, true); got != 3 {
		t.Errorf("part %d is chosen, must be 3, the last near the best", got)
	}
}
