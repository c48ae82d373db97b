package recovery

import "math"

// MostApart is the largest relative distance (Distance) between a peer's own numbers and those that it accepts from
// another peer. Rounding on another processor differs by far less; beyond it one of the two peers is at fault.
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
