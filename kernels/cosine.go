package kernels

import "math"

// Waves computes y = √2·cos(y + phase). The bits are math.Cos's, except on processors that fuse products with sums.
func Waves(phase, y []float32) {
	checkLength("y of Waves", len(y), len(phase))
	reads(phase)
	writes(y)
	active.waves(phase, y)
}

func wavesGeneric(phase, y []float32) {
	for j, p := range phase {
		y[j] = wave(y[j], p)
	}
}

// far is where math.Cos needs more digits of π/4.
const far = 1 << 29

// wave is its own function because a conversion to float64 leaves half of its destination register unchanged. Here that
// is the register of its operand, so the processor can start a value before the last one is done.
//
//go:noinline
func wave(x, phase float32) float32 { return float32(math.Sqrt2 * cosine(float64(x)+float64(phase))) }

// cosine is math.Cos (Cephes, Moshier) without branches on the octant, which no processor predicts: both series are
// computed, and the bits of one are selected.
func cosine(x float64) float64 {
	const (
		part1 = 7.85398125648498535156e-1 // π/4 in three parts
		part2 = 3.77489470793079817668e-8
		part3 = 2.69515142907905952645e-15
	)
	if x = math.Abs(x); !(x < far) {
		return math.Cos(x)
	}
	octant := int64(x * (4 / math.Pi))
	octant += octant & 1
	k := float64(octant)
	z := ((x - float64(k*part1)) - float64(k*part2)) - float64(k*part3)
	zz := float64(z * z)
	s := float64(1.58962301576546568060e-10*zz) + -2.50507477628578072866e-8
	s = float64(s*zz) + 2.75573136213857245213e-6
	s = float64(s*zz) + -1.98412698295895385996e-4
	s = float64(s*zz) + 8.33333333332211858878e-3
	s = float64(s*zz) + -1.66666666666666307295e-1
	s = z + float64(float64(z*zz)*s)
	c := float64(-1.13585365213876817300e-11*zz) + 2.08757008419747316778e-9
	c = float64(c*zz) + -2.75573141792967388112e-7
	c = float64(c*zz) + 2.48015872888517045348e-5
	c = float64(c*zz) + -1.38888888888730564116e-3
	c = float64(c*zz) + 4.16666666666665929218e-2
	c = 1.0 - float64(0.5*zz) + float64(float64(zz*zz)*c)
	sine := uint64(-(octant >> 1 & 1)) // all bits set in the octants about π/2 and 3π/2
	negative := uint64(octant+2) >> 2 << 63
	return math.Float64frombits((math.Float64bits(s)&sine | math.Float64bits(c)&^sine) ^ negative)
}
