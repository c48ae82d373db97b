// Package dp releases sums over a graph's edges under differential privacy. It has sums over neighbours with noise
// (Edges), their total privacy loss (Gaussian), and a ledger of what was spent of a data set.
package dp

import (
	"errors"
	"fmt"
	"math"
)

// Guarantee is (ε, δ)-differential privacy (Dwork and Roth, 2014, definition 2.4).
type Guarantee struct {
	Epsilon float64 `json:"epsilon"` // above 0
	Delta   float64 `json:"delta"`   // within (0, 1)
}

// Validate returns all faults at once, or nil.
func (g Guarantee) Validate() error {
	var errs []error
	if !(g.Epsilon > 0 && g.Epsilon <= MaxEpsilon) {
		errs = append(errs, fmt.Errorf("epsilon must be above 0 and at most %g (got %g)", float64(MaxEpsilon),
			g.Epsilon))
	}
	if !(g.Delta > 0 && g.Delta < 1) {
		errs = append(errs, fmt.Errorf("delta must be above 0 and below 1 (got %g)", g.Delta))
	}
	return errors.Join(errs...)
}

// MaxEpsilon is the largest ε: beyond it nothing is protected.
const MaxEpsilon = 100

// Gaussian is the total privacy loss of Gaussian mechanisms that follow one another, each chosen by earlier results.
// They reveal as much as one sample of a normal distribution of deviation 1 whose mean is 0 or Gaussian. (μ-GDP; Dong,
// Roth and Su, JRSS B 84, 2022, theorem 2.7 and corollary 3.3.) A mechanism of sensitivity Δ, in the Euclidean norm,
// and noise of deviation σ is Δ/σ. This is exact: no sequence of Gaussian mechanisms is better than the figures of this
// type.
type Gaussian float64

// compose returns all of several mechanisms: the root of the sum of squares.
func compose(all ...Gaussian) Gaussian {
	sum := 0.0
	for _, mu := range all {
		sum = math.Hypot(sum, float64(mu))
	}
	return Gaussian(sum)
}

// Delta returns the least δ with which mu is (epsilon, δ)-differentially private, epsilon ≥ 0 (Balle
// and Wang, ICML 2018, theorem 8):
//
//	δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//
// With x = ε/μ − μ/2 and y = x + μ that is φ(x)·(R(x) − R(y)), R the Mills ratio Φ(−x)/φ(x), since
// φ(x) = e^ε·φ(y): no digits cancel where δ is small.
func (mu Gaussian) Delta(epsilon float64) float64 {
	if mu <= 0 {
		return 0
	}
	m := float64(mu)
	x := epsilon/m - m/2
	density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
	switch y := x + m; {
	case x >= smallArgument:
		return max(0, density*(mills(x)-mills(y)))
	case y >= smallArgument:
		return max(0, upper(x)-density*mills(y))
	default:
		return max(0, upper(x)-math.Exp(epsilon)*upper(y))
	}
}

// Epsilon returns the least ε with which mu is (ε, delta)-differentially private, delta within (0, 1),
// rounded up by less than one part in 10⁹, or +Inf if it is above 10⁶.
func (mu Gaussian) Epsilon(delta float64) float64 {
	if mu.Delta(0) <= delta {
		return 0
	}
	const most = 1e6
	if mu > 1e3 { // ε is about μ²/2
		return math.Inf(1)
	}
	return least(0, most, func(epsilon float64) bool { return mu.Delta(epsilon) <= delta })
}

// Within returns the largest Gaussian that keeps g, rounded down by less than one part in 10⁹.
func Within(g Guarantee) Gaussian {
	most := 1.0
	for Gaussian(most).Delta(g.Epsilon) <= g.Delta {
		most *= 2
	}
	over := least(0, most, func(mu float64) bool { return Gaussian(mu).Delta(g.Epsilon) > g.Delta })
	return Gaussian(over * (1 - 1e-9))
}

// least returns the least x between lo and hi with ok(x), or up to one part in 10¹⁰ more. ok(hi) is true.
func least(lo, hi float64, ok func(float64) bool) float64 {
	for hi-lo > 1e-10*hi {
		if mid := lo + (hi-lo)/2; ok(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// upper returns Φ(−x), the upper tail of the normal distribution.
func upper(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }

// smallArgument is where the continued fraction of mills takes over from the tail itself.
const smallArgument = 5

// mills returns Φ(−x)/φ(x) for x ≥ smallArgument by Laplace's continued fraction
// 1/(x + 1/(x + 2/(x + 3/(x + …)))), whose first 60 terms leave an error below 10⁻¹⁶.
func mills(x float64) float64 {
	at := x
	for k := 60; k > 0; k-- {
		at = x + float64(k)/at
	}
	return 1 / at
}
