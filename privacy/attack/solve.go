package attack

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// FactorLower replaces the lower triangle of g, n×n and positive definite, by Cholesky's factor.
func FactorLower(g []float64, n int) {
	for i := range n {
		for j := range i + 1 {
			v := g[i*n+j] - floats.Dot(g[i*n:][:j], g[j*n:][:j])
			if i == j {
				g[i*n+i] = math.Sqrt(max(v, 1e-300))
			} else {
				g[i*n+j] = v / g[j*n+j]
			}
		}
	}
}

// Substitute replaces x by (LLᵀ)⁻¹x, where the lower triangle of g is L.
func Substitute(g, x []float64) {
	n := len(x)
	for i := range n {
		x[i] = (x[i] - floats.Dot(g[i*n:][:i], x[:i])) / g[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for j := i + 1; j < n; j++ {
			x[i] -= g[j*n+i] * x[j]
		}
		x[i] /= g[i*n+i]
	}
}
