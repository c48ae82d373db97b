package kernels

// ELU computes y = x if x > 0, else exp(x) − 1 (Clevert, Unterthiner and Hochreiter, ICLR 2016, α = 1), within 4 units
// in the last place. y may be x.
func ELU(x, y []float32) {
	checkLength("y of ELU", len(y), len(x))
	vectors(vector{op: opELU, x: x, y: y}, 8)
}

// ELUGrad computes dx = dy·min(1, 1 + y); y is ELU's output. dx may be dy.
func ELUGrad(y, dy, dx []float32) {
	checkLength("dy of ELUGrad", len(dy), len(y))
	checkLength("dx of ELUGrad", len(dx), len(y))
	vectors(vector{op: opELUGrad, x: y, z: dy, y: dx}, 12)
}

// eluGeneric uses the Taylor series to x⁸ near 0, where the subtraction would lose digits.
func eluGeneric(x, y []float32) {
	y = y[:len(x)]
	for c, v := range x {
		switch {
		case v > 0:
			y[c] = v
		case v > -0.35:
			p := float32(v*(1.0/40320)) + 1.0/5040
			p = float32(p*v) + 1.0/720
			p = float32(p*v) + 1.0/120
			p = float32(p*v) + 1.0/24
			p = float32(p*v) + 1.0/6
			p = float32(p*v) + 0.5
			p = float32(p*v) + 1
			y[c] = p * v
		default:
			y[c] = exp(v) - 1
		}
	}
}

func eluGradGeneric(y, dy, dx []float32) {
	dy, dx = dy[:len(y)], dx[:len(y)]
	for c, v := range y {
		dx[c] = dy[c] * min(1, 1+v)
	}
}
