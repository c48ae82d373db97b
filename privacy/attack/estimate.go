package attack

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Linear returns how likely each column is in the set, up to order: the best linear estimate of the set given the
// measurements, where columns are independent with odds of Prior (the mean of Gauss and Markov's theorem, with a
// prior). Rounding is noise of a twelfth.
func (b *Bag) Linear() []float64 {
	d, f := len(b.Target), len(b.Prior)
	mean := make([]float64, f)
	gram, left := make([]float64, d*d), make([]float64, d)
	copy(left, b.Target)
	for j := range f {
		p := 1 / (1 + math.Exp(-b.Prior[j]))
		mean[j] = p
		x := b.atom(int32(j))
		for i := range d {
			left[i] -= p * x[i]
			w := p * (1 - p) * x[i]
			for k := range i + 1 {
				gram[i*d+k] += w * x[k]
			}
		}
	}
	for i := range d {
		gram[i*d+i] += 1.0 / 12
	}
	solveLower(gram, left)
	for j, p := range mean {
		mean[j] += p * (1 - p) * floats.Dot(b.atom(int32(j)), left)
	}
	return mean
}

// solveLower replaces x by g⁻¹x. g is positive definite, with its lower triangle given, and becomes its factor.
func solveLower(g, x []float64) {
	factorLower(g, len(x))
	substitute(g, x)
}

// factorLower replaces the lower triangle of g, n×n and positive definite, by Cholesky's factor.
func factorLower(g []float64, n int) {
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

// substitute replaces x by (LLᵀ)⁻¹x, where the lower triangle of g is L.
func substitute(g, x []float64) {
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
