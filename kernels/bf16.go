package kernels

import (
	"encoding/binary"
	"math"
)

// A bfloat16 is the upper half of a float32: its exponent, and 8 bits of precision instead of 24.

// ToBF16 writes x to y, rounded to the nearest bfloat16, ties to even. NaN stays a quiet NaN.
func ToBF16(x []float32, y []uint16) {
	checkLength("y of ToBF16", len(y), len(x))
	vectors(vector{op: opToBF16, x: x, half: y}, 6)
}

// FromBF16 converts x to y exactly.
func FromBF16(x []uint16, y []float32) {
	checkLength("y of FromBF16", len(y), len(x))
	vectors(vector{op: opFromBF16, half: x, y: y}, 6)
}

// ToInt8 writes a row x to y as multiples of the scale that it returns, the greatest |x| over 127. y is x/scale,
// rounded to the nearest integer, ties to even; the error is at most half a scale. A row that is zero, or has NaN or
// infinity, gives zeros, with scale 0, NaN or infinity. A row below 2⁻¹⁰⁰ gives zeros and scale 0.
func ToInt8(x []float32, y []int8) (scale float32) {
	checkLength("y of ToInt8", len(y), len(x))
	reads(x)
	writes(y)
	top := active.maxAbs(x)
	if top < 0x1p-100 {
		clear(y)
		return 0
	}
	if !(top <= math.MaxFloat32) {
		clear(y)
		return top
	}
	active.toInt8(127/top, x, y)
	return top / 127
}

// FromInt8 writes scale·x to y.
func FromInt8(scale float32, x []int8, y []float32) {
	checkLength("y of FromInt8", len(y), len(x))
	reads(x)
	writes(y)
	active.fromInt8(scale, x, y)
}

// MaxAbs returns the greatest |x|: 0 if x is empty, NaN if x has one.
func MaxAbs(x []float32) float32 {
	reads(x)
	return active.maxAbs(x)
}

// ToFixed writes x·up to b as packed little-endian integers of 32 bits, rounded half to even. A product is first
// rounded to float64, and must be below 2³¹.
func ToFixed(x []float32, up []float64, b []byte) {
	checkLength("up of ToFixed", len(up), len(x))
	checkLength("b of ToFixed", len(b), 4*len(x))
	reads(x)
	writes(b)
	active.toFixed(x, up, b)
}

// Fixed reads the packed little-endian integers of 32 bits in b and writes them, times steps, to x.
func Fixed(b []byte, steps []float64, x []float32) {
	checkLength("steps of Fixed", len(steps), len(x))
	checkLength("b of Fixed", len(b), 4*len(x))
	reads(b)
	writes(x)
	active.fixed(b, steps, x)
}

// roundEven, added to a float64 below 2⁵¹, rounds it to the nearest integer, ties to even. The integer is in the lowest
// bits of the sum, in two's complement.
const roundEven = 0x1.8p52

func toFixedGeneric(x []float32, up []float64, b []byte) {
	up, b = up[:len(x)], b[:4*len(x)]
	for i, v := range x {
		// The conversion rounds the product: some processors would otherwise fuse it with the sum.
		binary.LittleEndian.PutUint32(b[4*i:], uint32(math.Float64bits(float64(float64(v)*up[i])+roundEven)))
	}
}

func fixedGeneric(b []byte, steps []float64, x []float32) {
	steps, b = steps[:len(x)], b[:4*len(x)]
	for i, s := range steps {
		x[i] = float32(float64(int32(binary.LittleEndian.Uint32(b[4*i:]))) * s)
	}
}

func toBF16Generic(x []float32, y []uint16) {
	y = y[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		if v != v {
			y[i] = uint16(b>>16 | 1<<6)
			continue
		}
		y[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}

func fromBF16Generic(x []uint16, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = wide(v)
	}
}

// wide returns the bfloat16 v as a float32.
func wide(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }

// maxAbsGeneric returns the greatest |x|, or NaN if x has one: as an unsigned integer, NaN is above infinity.
func maxAbsGeneric(x []float32) float32 {
	var top uint32
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(top)
}

func toInt8Generic(up float32, x []float32, y []int8) {
	const half = 3 << 22 // added and subtracted, it rounds to an integer, ties to even
	y = y[:len(x)]
	for i, v := range x {
		r := float32(float32(v*up) + half)
		y[i] = int8(r - half)
	}
}

func fromInt8Generic(scale float32, x []int8, y []float32) {
	y = y[:len(x)]
	for i, v := range x {
		y[i] = scale * float32(v)
	}
}
