package linear

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestPredicted: mean and deviation of a solution's outputs, computed only from the equations, equal those over the
// weighted rows.
func TestPredicted(t *testing.T) {
	const n, d, c = 60, 5, 2
	key := rng.New(4)
	z, y, weight, total := mat.New(n, d), mat.New(n, c), make([]float32, n), 0.0
	for i := range n {
		z.Set(i, 0, 1)
		for j := 1; j < d; j++ {
			z.Set(i, j, float32(j)+float32(key.Normal(uint64(d*i+j))))
		}
		y.Set(i, i%c, z.At(i, 1))
		weight[i] = float32(1 + i%3)
		total += float64(weight[i])
	}
	equations, err := Normal{}.Extend(Part(z, d, y, weight), d, c)
	if err != nil {
		t.Fatal(err)
	}
	columns := []int{1, 3, 4}
	solved, err := equations.Solve(t.Context(), columns, []float64{0.1})
	if err != nil {
		t.Fatal(err)
	}
	mean, deviation := equations.Predicted(columns, solved[0])
	for o := range c {
		sum, square := 0.0, 0.0
		for i := range n {
			v := float64(solved[0].At(len(columns), o))
			for k, j := range columns {
				v += float64(z.At(i, j)) * float64(solved[0].At(k, o))
			}
			sum, square = sum+float64(weight[i])*v, square+float64(weight[i])*v*v
		}
		m := sum / total
		if s := math.Sqrt(square/total - m*m); math.Abs(mean[o]-m) > 1e-5 || math.Abs(deviation[o]-s) > 1e-5 {
			t.Errorf("output %d has mean %g and deviation %g, must have %g and %g", o, mean[o], deviation[o], m, s)
		}
	}
}
