package nn

import "math"

// exp returns eˣ for x ≤ 0, within 2 ulp: 2ᵏ·eʳ with |r| ≤ ½·ln 2 and eʳ by its Taylor series to r⁷. Below −87 it is 0.
func exp(x float32) float32 {
	if !(x > -87) {
		if x != x {
			return x
		}
		return 0
	}
	const high, low = 0.693359375, -2.12194440e-4 // ln 2 = high + low; k·high is exact
	k := int32(float32(x*math.Log2E) - 0.5)
	r := x - float32(float32(k)*high) - float32(float32(k)*low)
	p := float32(r*(1.0/5040)) + 1.0/720
	p = float32(p*r) + 1.0/120
	p = float32(p*r) + 1.0/24
	p = float32(p*r) + 1.0/6
	p = float32(p*r) + 0.5
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return p * math.Float32frombits(uint32(k+127)<<23)
}

// expm1 returns eˣ − 1 for x ≤ 0, within 4 ulp: by its Taylor series to x⁸ where the subtraction would lose digits.
func expm1(x float32) float32 {
	if !(x > -0.35) {
		return exp(x) - 1
	}
	p := float32(x*(1.0/40320)) + 1.0/5040
	p = float32(p*x) + 1.0/720
	p = float32(p*x) + 1.0/120
	p = float32(p*x) + 1.0/24
	p = float32(p*x) + 1.0/6
	p = float32(p*x) + 0.5
	p = float32(p*x) + 1
	return p * x
}
