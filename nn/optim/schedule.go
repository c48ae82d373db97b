package optim

import (
	"errors"
	"fmt"
	"math"
)

// Schedule is a factor of the learning rate over steps: it rises in equal parts to 1 over the first
// Warmup steps, then is constant, or falls to 0 at step Total, linearly or along a half cosine
// (Loshchilov and Hutter, ICLR 2017).
type Schedule struct {
	Kind   string `json:"kind,omitempty"`   // "constant", "linear" or "cosine"; "": constant
	Warmup int    `json:"warmup,omitempty"` // steps, ≥ 0; 0: none
	Total  int    `json:"total,omitempty"`  // steps, > Warmup; unused and may be 0 where the kind is constant
}

// Validate returns every fault of s, joined, or nil.
func (s Schedule) Validate() error {
	var faults []error
	switch s.Kind {
	case "", "constant":
	case "linear", "cosine":
		if s.Total <= max(s.Warmup, 0) {
			faults = append(faults, fmt.Errorf("optim: schedule total must be more than warmup, %d (got %d)",
				max(s.Warmup, 0), s.Total))
		}
	default:
		faults = append(faults, fmt.Errorf(`optim: schedule kind must be "constant", "linear" or "cosine" (got %q)`,
			s.Kind))
	}
	if s.Warmup < 0 {
		faults = append(faults, fmt.Errorf("optim: schedule warmup must be at least 0 (got %d)", s.Warmup))
	}
	return errors.Join(faults...)
}

// At returns the factor, in [0, 1], of the given step; the first step is 0. From step Total on a
// falling schedule is 0.
func (s Schedule) At(step int) float32 {
	if step < s.Warmup {
		return float32(float64(step+1) / float64(s.Warmup))
	}
	if s.Kind == "" || s.Kind == "constant" {
		return 1
	}
	if step >= s.Total {
		return 0
	}
	done := float64(step-s.Warmup) / float64(s.Total-s.Warmup)
	if s.Kind == "linear" {
		return float32(1 - done)
	}
	c := cosine(done * (math.Pi / 2))
	return float32(c * c) // (1 + cos 2x) / 2
}

// cosine returns cos x for x in [0, π/2] by its Taylor series to x²², without fused products:
// math.Cos does not promise the same last bit on every processor, and peers must take the same
// step.
func cosine(x float64) float64 {
	y := x * x
	c := 1.0
	for k := 22; k > 0; k -= 2 {
		c = 1 - float64(c*y)/float64(k*(k-1))
	}
	return c
}
