package recovery

import "math"

// MostApart is how far from its own, in proportion, the numbers may lie that a peer takes from another one: rounding on
// another processor is nearer by far. Beyond it one of the two is at fault.
const MostApart = 1e-4

// Distance is ‖x − y‖ over the larger of ‖x‖ and ‖y‖; 0 where both are 0.
func Distance(x, y []float32) float64 {
	var apart, xx, yy float64
	for i, v := range x {
		d := float64(v) - float64(y[i])
		apart, xx, yy = apart+d*d, xx+float64(v)*float64(v), yy+float64(y[i])*float64(y[i])
	}
	if apart == 0 {
		return 0
	}
	return math.Sqrt(apart / max(xx, yy))
}
