package linear

import (
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/mat"
)

// TestRidgeIsTheMinimum: the equations of three peers add up to those of their rows together, and where the solution lies
// the gradient of the penalised loss is zero, row by row of the definition.
func TestRidgeIsTheMinimum(t *testing.T) {
	const n, d, c = 50, 5, 3
	key := rng.New(8)
	z, y, weight := mat.New(n, d), mat.New(n, c), make([]float32, n)
	for i := range n {
		for j := range d - 1 {
			z.Set(i, j, float32(key.Normal(uint64(d*i+j))))
		}
		z.Set(i, d-1, 1)
		y.Set(i, i%c, 1)
		weight[i] = float32(key.Fold(1).Float64(uint64(i)))
	}
	var sums []float32
	for _, part := range [][2]int{{0, 10}, {10, 11}, {11, n}} {
		one, err := equations(t.Context(), z.RowRange(part[0], part[1]), y.RowRange(part[0], part[1]), weight[part[0]:part[1]])
		if err != nil {
			t.Fatal(err)
		}
		if sums == nil {
			sums = make([]float32, len(one))
		}
		kernels.Add(one, sums)
	}
	lambdas := []float64{0.01, 1, 30}
	solutions, solved, err := Ridge(t.Context(), sums, d, c, lambdas)
	if err != nil || len(solutions) != len(lambdas) || len(solved) != len(lambdas)*d*c {
		t.Fatalf("%d solutions of %d numbers, %v", len(solutions), len(solved), err)
	}
	mean := 0.0
	for i := range n {
		for j := range d - 1 {
			mean += float64(weight[i]) * float64(z.At(i, j)) * float64(z.At(i, j)) / (d - 1)
		}
	}
	for k, w := range solutions {
		for j := range d {
			for o := range c {
				grad := 0.0
				if j < d-1 {
					grad = lambdas[k] * mean * float64(w.At(j, o))
				}
				for i := range n {
					off := -float64(y.At(i, o))
					for m := range d {
						off += float64(z.At(i, m)) * float64(w.At(m, o))
					}
					grad += float64(weight[i]) * off * float64(z.At(i, j))
				}
				if math.Abs(grad) > 1e-4 {
					t.Errorf("penalty %g: the gradient of weight %d, %d is %g", lambdas[k], j, o, grad)
				}
			}
		}
	}
}

func TestRidgeRefuses(t *testing.T) {
	sums := []float32{1, 0, 1, 1, 1} // D = 2, C = 1
	for want, set := range map[string]func(s []float32) []float64{
		"overflow": func(s []float32) []float64 { s[3] = float32(math.Inf(1)); return []float64{1} },
		"singular": func(s []float32) []float64 { s[0], s[2] = 0, 0; return []float64{1} },
	} {
		s := append([]float32{}, sums...)
		if _, _, err := Ridge(t.Context(), s, 2, 1, set(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
