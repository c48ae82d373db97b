package dp

import (
	_ "embed"
	"encoding/json"
	"math"
	"testing"
)

//go:embed testdata/accountant.json
var accountant []byte

// The accountant agrees with Google's dp-accounting 0.6.0 (testdata/accountant.py): analytically for
// one mechanism, and within the grid of its privacy loss distribution for many.
func TestAgainstDPAccounting(t *testing.T) {
	var frozen struct {
		One []struct {
			Z, Epsilon, Delta float64
		}
		Many []struct {
			Z     []float64
			Delta float64
			PLD   float64 `json:"epsilon_pld"`
			RDP   float64 `json:"epsilon_rdp"`
		}
		Interval float64
	}
	if err := json.Unmarshal(accountant, &frozen); err != nil || len(frozen.One) < 30 || len(frozen.Many) != 6 {
		t.Fatalf("%d and %d cases, %v", len(frozen.One), len(frozen.Many), err)
	}
	for _, c := range frozen.One {
		// Their method subtracts two tails of the size of 1; ours has no cancellation.
		got := Gaussian(1 / c.Z).Delta(c.Epsilon)
		if math.Abs(got-c.Delta) > 1e-9*c.Delta+1e-15 {
			t.Errorf("z %g, ε %g: δ must be %g (got %g)", c.Z, c.Epsilon, c.Delta, got)
		}
	}
	for _, c := range frozen.Many {
		var all []Gaussian
		for _, z := range c.Z {
			all = append(all, Gaussian(1/z))
		}
		got := compose(all...).Epsilon(c.Delta)
		if got > c.PLD || got < c.PLD-frozen.Interval*float64(1+len(c.Z)) || got >= c.RDP {
			t.Errorf("%d mechanisms of z %g: ε must be just below %g (got %g)", len(c.Z), c.Z[0], c.PLD, got)
		}
	}
}

// δ(ε) and ε(δ) are each other's inverse, and Within is the inverse of both: to parts in 10⁹, and never on the side
// that would overstate the guarantee.
func TestInverse(t *testing.T) {
	for _, delta := range []float64{1e-30, 1e-12, 1e-9, 1e-5, 1e-2, 0.3} {
		for _, epsilon := range []float64{1e-3, 0.1, 1, 4, 8, 30, 100} {
			mu := Within(Guarantee{epsilon, delta})
			if d := mu.Delta(epsilon); d > delta || d < delta*(1-1e-5) {
				t.Errorf("ε %g, δ %g: μ %g gives δ %g", epsilon, delta, mu, d)
			}
			if e := mu.Epsilon(delta); e > epsilon || e < epsilon*(1-1e-7)-1e-9 {
				t.Errorf("ε %g, δ %g: μ %g gives ε %g", epsilon, delta, mu, e)
			}
		}
	}
	if e := Gaussian(1e-9).Epsilon(1e-5); e != 0 {
		t.Errorf("a mechanism that tells less than δ must have ε 0 (got %g)", e)
	}
	if e := Gaussian(1e4).Epsilon(1e-5); !math.IsInf(e, 1) {
		t.Errorf("ε of μ 10⁴ must be +Inf (got %g)", e)
	}
}

// The two forms of δ agree where one takes over from the other.
func TestDeltaIsContinuous(t *testing.T) {
	for _, mu := range []Gaussian{0.01, 0.5, 2, 9} {
		m := float64(mu)
		for _, x := range []float64{smallArgument, smallArgument - m} { // of the first tail and of the second
			epsilon := m * (x + m/2)
			if epsilon < 0 {
				continue
			}
			before, behind := mu.Delta(epsilon*(1-1e-13)), mu.Delta(epsilon*(1+1e-13))
			if math.Abs(before-behind) > 1e-8*before {
				t.Errorf("μ %g: δ jumps from %g to %g at ε %g", m, before, behind, epsilon)
			}
		}
	}
}
