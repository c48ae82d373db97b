package eval

import (
	"testing"

	"github.com/heddle-gnn/heddle/mat"
)

// TestShares: logits move to the shares of a site, a node's own label does not change its own logits, and a site
// without validation nodes keeps its logits.
func TestShares(t *testing.T) {
	class := []int32{0, 0, 0, 0, 1, -1, -1}
	moved := func(class []int32) mat.Dense {
		logits := mat.New(7, 2)
		for i := range logits.Data {
			logits.Data[i] = float32(i%3) / 4
		}
		(&Shares{Scale: 0.5, Temperature: 1}).Apply(logits, class)
		return logits
	}
	with, without := moved(class), moved([]int32{-1, -1, -1, -1, -1, -1, -1})
	for i := range class {
		if by := [2]float32{with.At(i, 0) - without.At(i, 0), with.At(i, 1) - without.At(i, 1)}; by[0] <= by[1] {
			t.Errorf("logits of node %d move by %v, must move to class 0", i, by)
		}
	}
	for i := range 5 {
		class[i] = 1 - class[i]
		if got := moved(class); got.At(i, 0) != with.At(i, 0) || got.At(i, 1) != with.At(i, 1) {
			t.Errorf("node %d of another class has other logits", i)
		}
		class[i] = 1 - class[i]
	}
	if without.At(0, 1) != 0.25 {
		t.Errorf("without validation nodes a logit is %g, must stay 0.25", without.At(0, 1))
	}
	for _, s := range []Shares{{}, {Scale: 1}, {Scale: 65, Temperature: 1}} {
		if s.Valid() {
			t.Errorf("%v must be refused", s)
		}
	}
}
