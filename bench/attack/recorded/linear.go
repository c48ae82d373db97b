package recorded

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/heddle-gnn/heddle/internal/privacy/attack"
)

// bestLinear returns how likely each column is in the set, up to order. It is the best linear estimate of the set given
// the measurements, if columns are independent with odds of Prior (the mean of Gauss and Markov's theorem, with a
// prior). Rounding is noise of a twelfth.
func bestLinear(b *attack.Bag) []float64 {
	d, f := len(b.Target), len(b.Prior)
	mean := make([]float64, f)
	gram, left := make([]float64, d*d), make([]float64, d)
	copy(left, b.Target)
	for j := range f {
		p := 1 / (1 + math.Exp(-b.Prior[j]))
		mean[j] = p
		x := b.Atom[j*d:][:d]
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
	attack.FactorLower(gram, d)
	attack.Substitute(gram, left)
	for j, p := range mean {
		mean[j] += p * (1 - p) * floats.Dot(b.Atom[j*d:][:d], left)
	}
	return mean
}
