package kernels

// Rows of GATv2's attention, u = x + y, whose logit is v·LeakyReLU(u). slope, in [0, 1], is LeakyReLU's slope below 0.

// LeakyDot returns Σ v·LeakyReLU(x+y).
func LeakyDot(slope float32, v, x, y []float32) float32 {
	checkLength("x of LeakyDot", len(x), len(v))
	checkLength("y of LeakyDot", len(y), len(v))
	reads(v)
	reads(x)
	reads(y)
	return active.leakyDot(slope, v, x, y)
}

// LeakyDotGrad is the backward pass of LeakyDot: dv += d·LeakyReLU(x+y) and dy += d·v·LeakyReLU'(x+y). d is the
// gradient of LeakyDot's result.
func LeakyDotGrad(d, slope float32, v, x, y, dv, dy []float32) {
	for _, s := range [][]float32{x, y, dv, dy} {
		checkLength("rows of LeakyDotGrad", len(s), len(v))
	}
	reads(v)
	reads(x)
	reads(y)
	writes(dv)
	writes(dy)
	active.leakyGrad(d, slope, v, x, y, dv, dy)
}

// LeakySourceGrad computes dx += p·dh + d·v·LeakyReLU'(x+y).
func LeakySourceGrad(p, d, slope float32, dh, v, x, y, dx []float32) {
	for _, s := range [][]float32{dh, x, y, dx} {
		checkLength("rows of LeakySourceGrad", len(s), len(v))
	}
	reads(dh)
	reads(v)
	reads(x)
	reads(y)
	writes(dx)
	active.leakySource(p, d, slope, dh, v, x, y, dx)
}

func leakyDotGeneric(slope float32, v, x, y []float32) (sum float32) {
	x, y = x[:len(v)], y[:len(v)]
	for c, w := range v {
		u := x[c] + y[c]
		if u < 0 {
			u *= slope
		}
		sum += float32(w * u)
	}
	return sum
}

func leakyGradGeneric(d, slope float32, v, x, y, dv, dy []float32) {
	x, y, dv, dy = x[:len(v)], y[:len(v)], dv[:len(v)], dy[:len(v)]
	below := d * slope
	for c, w := range v {
		u, f := x[c]+y[c], d
		if u < 0 {
			f = below
		}
		dv[c] += float32(f * u)
		dy[c] += float32(f * w)
	}
}

func leakySourceGeneric(p, d, slope float32, dh, v, x, y, dx []float32) {
	dh, x, y, dx = dh[:len(v)], x[:len(v)], y[:len(v)], dx[:len(v)]
	below := d * slope
	for c, w := range v {
		f := d
		if x[c]+y[c] < 0 {
			f = below
		}
		dx[c] += float32(p*dh[c]) + float32(f*w)
	}
}
