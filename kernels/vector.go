// Package kernels holds the float32 loops on slices that everything above is made of. A wrong length is the caller's
// bug and panics; nothing here allocates per element or keeps what it was given.
package kernels

import "math"

// Axpy computes y += a·x.
func Axpy(a float32, x, y []float32) { axpyGeneric(a, x, y) }

// Dot returns Σ x·y.
func Dot(x, y []float32) float32 { return dotGeneric(x, y) }

// Add computes y += x.
func Add(x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += v
	}
}

// Scale computes x *= a.
func Scale(a float32, x []float32) {
	for i := range x {
		x[i] *= a
	}
}

// AdamStep is one step of Adam (Kingma and Ba, ICLR 2015, algorithm 1) over a slab: p the parameters, g the
// gradients, m and v the moments. correct1 = 1−β₁ᵗ, correct2 = 1−β₂ᵗ. decay is added to the gradient (L2); decoupled
// scales p by 1−lr·decoupled first (AdamW, Loshchilov and Hutter, ICLR 2019). No product is fused with a sum, so that unlike processors keep
// the same bits.
func AdamStep(p, g, m, v []float32, lr, beta1, beta2, eps, correct1, correct2, decay, decoupled float32) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	shrink := 1 - float32(lr*decoupled)
	for i := range p {
		w := p[i]
		gi := g[i] + float32(decay*w)
		mi := float32(beta1*m[i]) + float32((1-beta1)*gi)
		vi := float32(beta2*v[i]) + float32(float32((1-beta2)*gi)*gi)
		m[i], v[i] = mi, vi
		step := float32(lr*(mi/correct1)) / (float32(math.Sqrt(float64(vi/correct2))) + eps)
		p[i] = float32(w*shrink) - step
	}
}

// DropoutMask writes to keep, for columns 0…n−1 of the row that key names, 1/(1−p) where the element stays and 0
// where it is dropped. p in [0, 1).
func DropoutMask(key uint64, p float32, keep []float32) {
	limit := uint32(min(float64(p)*0x1p32, math.MaxUint32))
	up := 1 / (1 - p)
	lo, hi := uint32(key), uint32(key>>32)
	for c := range keep {
		z := (lo + uint32(c)*0x9e3779b9) ^ hi
		z = (z ^ z>>16) * 0x7feb352d
		z = (z ^ z>>15) * 0x846ca68b
		z ^= z >> 16
		if z < limit {
			keep[c] = 0
		} else {
			keep[c] = up
		}
	}
}

func axpyGeneric(a float32, x, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

func dotGeneric(x, y []float32) float32 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += x[i] * y[i]
		s1 += x[i+1] * y[i+1]
		s2 += x[i+2] * y[i+2]
		s3 += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}
