package optim

import (
	"fmt"
	"math"
)

// Schedule is a factor of the learning rate over steps: it is constant, or falls from 1 to 0 at step Total, linearly or
// along a half cosine (Loshchilov and Hutter, ICLR 2017).
type Schedule struct {
	Kind  string `json:"kind,omitempty"`  // "constant", "linear" or "cosine"; "": constant
	Total int    `json:"total,omitempty"` // steps, ≥ 1; unused and may be 0 if the kind is constant
}

// Validate returns what is wrong with s, or nil.
func (s Schedule) Validate() error {
	switch s.Kind {
	case "", "constant":
	case "linear", "cosine":
		if s.Total < 1 {
			return fmt.Errorf("schedule total must be at least 1 (got %d)", s.Total)
		}
	default:
		return fmt.Errorf(`optim: schedule kind must be "constant", "linear" or "cosine" (got %q)`, s.Kind)
	}
	return nil
}

// At returns the factor, in [0, 1], of the given step; the first step is 0. From step Total on a
// falling schedule is 0.
func (s Schedule) At(step int) float32 {
	if s.Kind == "" || s.Kind == "constant" {
		return 1
	}
	if step >= s.Total {
		return 0
	}
	done := float64(step) / float64(s.Total)
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
