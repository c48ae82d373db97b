package dp

import (
	"math"
	"testing"
)

// mass returns the probabilities of −n … n of the discrete Gaussian, whose tail beyond is negligible.
func mass(sigma float64, n int) []float64 {
	p, sum := make([]float64, 2*n+1), 0.0
	for i := range p {
		x := float64(i - n)
		p[i] = math.Exp(-x * x / (2 * sigma * sigma))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Samples have the exact probabilities: χ² over all values that come at least twenty times, within four deviations of
// its mean. The seeds are fixed, so the test gives the same every time.
func TestNoiseHasExactProbabilities(t *testing.T) {
	const draws = 400_000
	for _, sigma := range []uint64{1, 2, 3, 7, 40} {
		n := int(12 * sigma)
		p, got := mass(float64(sigma), n), make([]int, 2*n+1)
		s := newNoise([32]byte{byte(sigma)}, sigma)
		for range draws {
			got[int(s.draw())+n]++
		}
		chi, cells, left, leftGot := 0.0, 0.0, 1.0, draws
		for i, count := range got {
			if want := draws * p[i]; want >= 20 {
				chi += (float64(count) - want) * (float64(count) - want) / want
				cells++
				left -= p[i]
				leftGot -= count
			}
		}
		if apart := (chi - (cells - 1)) / math.Sqrt(2*(cells-1)); math.Abs(apart) > 4 {
			t.Errorf("σ %d: χ² of %g over %g values is %.1f deviations from its mean", sigma, chi, cells, apart)
		}
		if want := draws * left; math.Abs(float64(leftGot)-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("σ %d: %d draws in the tails, expected %.0f", sigma, leftGot, want)
		}
	}
}

// The noise of Edges has mean 0, variance σ² and the fourth moment of a normal distribution, within five standard
// errors each, and neighbouring samples do not depend on each other.
func TestNoiseMoments(t *testing.T) {
	const draws = 200_000
	s := newNoise([32]byte{9}, sigma)
	var m1, m2, m4, lag, last float64
	for range draws {
		x := float64(s.draw()) / sigma
		m1, m2, m4, lag, last = m1+x, m2+x*x, m4+x*x*x*x, lag+x*last, x
	}
	for _, c := range []struct {
		what              string
		got, want, spread float64
	}{{"mean", m1, 0, 1}, {"variance", m2, 1, math.Sqrt(2)}, {"fourth moment", m4, 3, math.Sqrt(96)},
		{"product of neighbours", lag, 0, 1}} {
		if d := (c.got/draws - c.want) * math.Sqrt(draws) / c.spread; math.Abs(d) > 5 {
			t.Errorf("%s: %g, expected %g: %.1f standard errors", c.what, c.got/draws, c.want, d)
		}
	}
}

// A normal value, rounded by a discrete Gaussian of parameter smoothing, has the probabilities of the
// discrete Gaussian: what deviationSquared rests on, for a smaller σ and by summing densities.
func TestDiscreteIsSmoothedNormal(t *testing.T) {
	const sigma, tau, n, steps = 5.0, float64(smoothing), 60, 64
	p := mass(sigma, n)
	s2 := sigma*sigma - tau*tau
	for at := -12; at <= 12; at++ {
		got := 0.0
		for i := -n * steps; i <= n*steps; i++ {
			x := (float64(i) + 0.5) / steps
			sum := 0.0
			for k := math.Floor(x) - 40; k <= math.Ceil(x)+40; k++ {
				sum += math.Exp(-(k - x) * (k - x) / (2 * tau * tau))
			}
			d := float64(at) - x
			got += math.Exp(-x*x/(2*s2)) / math.Sqrt(2*math.Pi*s2) / steps * math.Exp(-d*d/(2*tau*tau)) / sum
		}
		if want := p[at+n]; math.Abs(got-want) > 1e-10*want+1e-14 {
			t.Errorf("probability of %d: %g, expected %g", at, got, want)
		}
	}
}

func BenchmarkNoise(b *testing.B) {
	s := newNoise([32]byte{9}, sigma)
	for b.Loop() {
		s.draw()
	}
}
