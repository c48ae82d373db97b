package tape

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestDropoutIsIndependent: as many elements are dropped as P says, each divided so that the mean
// stays; and no two places share their masks.
func TestDropoutIsIndependent(t *testing.T) {
	const rows, cols, p = 400, 50, 0.3
	ones := mat.New(rows, cols)
	for i := range ones.Data {
		ones.Data[i] = 1
	}
	kept := New()
	mask := func(key rng.Key, name string) mat.Dense {
		kept.Key = key
		y := mat.New(rows, cols)
		(&Dropout{name, p}).Forward(y, ones, kept)
		return y
	}
	masks := []mat.Dense{mask(rng.New(1), "a"), mask(rng.New(2), "a"), mask(rng.New(1), "b")}
	nextRow, nextCol := mat.New(rows, cols), mat.New(rows, cols)
	for i := range rows {
		copy(nextRow.Row(i), masks[0].Row((i+1)%rows))
		copy(nextCol.Row(i), masks[0].Row(i)[1:])
		nextCol.Row(i)[cols-1] = masks[0].Row(i)[0]
	}
	masks = append(masks, nextRow, nextCol)
	for a, m := range masks[:3] {
		if mean := mean(m, ones); math.Abs(mean-1) > 0.02 { // four deviations
			t.Errorf("mean of mask %d is %v", a, mean)
		}
		for b, o := range masks[a+1:] {
			// Independent masks of mean 1 have a product of mean 1; equal ones 1/(1−p) = 1.43.
			if got := mean(m, o); math.Abs(got-1) > 0.06 {
				t.Errorf("masks %d and %d have a product of mean %v", a, a+1+b, got)
			}
		}
	}
}

func mean(a, b mat.Dense) float64 {
	sum := 0.0
	for i, v := range a.Data {
		sum += float64(v) * float64(b.Data[i])
	}
	return sum / float64(len(a.Data))
}
