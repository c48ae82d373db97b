package comm

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestRounding: encode gives the integers of math.RoundToEven, and decode takes them back, for ties, their
// neighbours, every exponent, both zeros and the largest that fit, in every number of bits.
func TestRounding(t *testing.T) {
	for _, bits := range []int{8, 16, 32, 64} {
		limit := math.Ldexp(1, min(bits, 63)-1)
		var x []float32
		for _, v := range append(roundingEdges(limit), patterns(200_000)...) {
			for _, v := range []float32{v, -v} {
				if a := math.Abs(float64(v)); a < limit-0.5 { // not NaN
					x = append(x, v)
				}
			}
		}
		inverses := []float64{1, 0.5, 0x1p-20, 0x1p-149, 0} // nothing here becomes larger
		if bits < 64 {
			inverses = append(inverses, 1/1.37, 1/3.0, math.Nextafter(1, 0), 0.1)
		}
		ties := 0
		for _, inverse := range inverses {
			factors, b := make([]float64, len(x)), make([]byte, len(x)*bits/8)
			for i := range factors {
				factors[i] = inverse
			}
			encode(bits, x, factors, b)
			back := make([]float32, len(x))
			decode(bits, b, factors, back)
			for i, v := range x {
				z := float64(v) * inverse
				want := int64(math.RoundToEven(z))
				if got := intAt(b, i, bits); got != want {
					t.Fatalf("%d bits: %g times %g must be %d (got %d)", bits, v, inverse, want, got)
				}
				if want := float32(float64(want) * inverse); math.Float32bits(back[i]) != math.Float32bits(want) {
					t.Fatalf("%d bits: integer %d must stand for %g (got %g)", bits, i, want, back[i])
				}
				if z-math.Floor(z) == 0.5 {
					ties++
				}
			}
		}
		if ties < 100 {
			t.Errorf("%d bits: only %d ties", bits, ties)
		}
	}
}

// roundingEdges are numbers up to limit at which rounding may go wrong.
func roundingEdges(limit float64) (x []float32) {
	for e := -149; e <= 62; e++ {
		for _, m := range []float64{1, 1.5, 1.25, 1.75, 1 + 0x1p-23, 2 - 0x1p-23} {
			x = append(x, float32(math.Ldexp(m, e)))
		}
	}
	for n := range 200 {
		for _, at := range []float64{float64(n), math.Ldexp(1, 23) - float64(n)/2, limit - float64(n),
			limit/2 + float64(n)} {
			tie := float32(at + 0.5)
			x = append(x, float32(at), tie, math.Nextafter32(tie, 0), math.Nextafter32(tie, math.MaxFloat32))
		}
	}
	return append(x, 0, math.SmallestNonzeroFloat32)
}

// TestResidualOfZeros: what rounding leaves out of either zero is 0.
func TestResidualOfZeros(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), 1}
	residual := []float32{7, 7, 7}
	form, err := (&Contribution{Update: x, Bits: 8, Residual: residual}).Fixed(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := form.Agree([]float32{2}); err != nil {
		t.Fatal(err)
	}
	form.encode(0, len(x), form.Integers().B)
	for i, v := range residual[:2] {
		if math.Float32bits(v) != 0 {
			t.Errorf("residual[%d] must be 0 (got %g)", i, v)
		}
	}
}

// BenchmarkFixed takes a million numbers to fixed point and back, without a sum.
func BenchmarkFixed(b *testing.B) {
	x := make([]float32, 1_000_000)
	for i := range x {
		x[i] = float32(int32(binary.LittleEndian.Uint32([]byte{byte(i), byte(i >> 5), byte(3 * i), 0}))-1<<23) / 999
	}
	for _, size := range []struct {
		name          string
		bits, columns int
	}{{"bits=32", 32, 0}, {"bits=64", 64, 0}, {"bits=8", 8, 0}, {"bits=32/columns=50", 32, 50}} {
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(4_000_000)
			for b.Loop() {
				form, err := (&Contribution{Update: x, Bits: size.bits, Columns: size.columns}).Fixed(2)
				if err != nil {
					b.Fatal(err)
				}
				most := form.Magnitudes()
				for j := range most {
					most[j] *= 2
				}
				if err := form.Agree(most); err != nil {
					b.Fatal(err)
				}
				v := form.Integers()
				form.encode(0, len(x), v.B)
				form.decode(0, v.B)
			}
		})
	}
}
