package plan

import (
	"math"
	"testing"
	"time"
)

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		text, says string
		in, out    []float64
	}{
		{"", "at least  and at most ", []float64{-1e300, 0, 1e300}, []float64{math.NaN(), math.Inf(1)}},
		{"[0, 1)", "at least 0 and below 1", []float64{0, 0.99}, []float64{-0.01, 1, math.NaN()}},
		{"(0, )", "above 0", []float64{1e-9, 1e300}, []float64{0, -1, math.Inf(1)}},
		{"[1, 7]", "at least 1 and at most 7", []float64{1, 7}, []float64{0.9, 7.1}},
		{"[1s, 24h]", "at least 1s and at most 24h", []float64{float64(time.Second), float64(time.Hour)},
			[]float64{5, float64(25 * time.Hour)}},
	} {
		v := parseInterval(c.text)
		for _, x := range c.in {
			if !v.Has(x) {
				t.Errorf("%q must hold %v", c.text, x)
			}
		}
		for _, x := range c.out {
			if v.Has(x) {
				t.Errorf("%q must not hold %v", c.text, x)
			}
		}
		if c.text != "" && v.String() != c.says {
			t.Errorf("%q says %q, want %q", c.text, v, c.says)
		}
	}
}
