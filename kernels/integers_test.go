package kernels

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"testing"
)

// TestIntegers checks that packed integers are added and subtracted modulo 2^bits, for any length. Nothing is carried
// from one integer to the next, and nothing next to them is written.
func TestIntegers(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, bits := range []int{8, 16, 32, 64} {
			for n := range 400 * 8 / bits {
				x, y := make([]byte, n*bits/8), make([]byte, n*bits/8)
				for i := range x {
					// Many bytes are 0x00, 0x7f, 0x80 or 0xff, which cause many carries.
					edge := []byte{0x00, 0x7f, 0x80, 0xff, byte(31 * i), byte(7*i + n), 0xff, 0x01}
					x[i], y[i] = edge[(i*i+n)%8], edge[(3*i*i/5+i+n)%8]
				}
				for _, minus := range []bool{false, true} {
					room := slices.Concat([]byte{42}, y, []byte{42})
					if minus {
						integers(bits, x, room[1:len(room)-1], true)
					} else {
						AddIntegers(bits, x, room[1:len(room)-1])
					}
					if want := slices.Concat([]byte{42}, wideIntegers(bits, x, y, minus),
						[]byte{42}); !bytes.Equal(room, want) {
						t.Fatalf("%d integers of %d bits, minus %t: must be %x (got %x)", n, bits, minus, want, room)
					}
				}
			}
		}
	})
}

// wideIntegers returns y ± x, computed one by one with all digits.
func wideIntegers(bits int, x, y []byte, minus bool) (all []byte) {
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	at := func(b []byte) *big.Int {
		b = bytes.Clone(b)
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	for w := bits / 8; len(x) > 0; x, y = x[w:], y[w:] {
		sum := new(big.Int).Add(at(y[:w]), at(x[:w]))
		if minus {
			sum.Sub(at(y[:w]), at(x[:w]))
		}
		b := sum.Mod(sum, modulus).FillBytes(make([]byte, w))
		slices.Reverse(b)
		all = append(all, b...)
	}
	return all
}

func BenchmarkIntegers(b *testing.B) {
	x, y := make([]byte, 8<<10), make([]byte, 8<<10)
	b.SetBytes(8 << 10)
	for b.Loop() {
		AddIntegers(32, x, y)
	}
}

// TestFixed compares the conversions to integers of 32 bits, rounded half to even, and back with float64 arithmetic.
func TestFixed(t *testing.T) {
	each(t, func(t *testing.T) {
		for n := range 100 {
			x, up, steps := make([]float32, n), make([]float64, n), make([]float64, n)
			for i := range x {
				x[i] = []float32{0.5, -0.5, 1.5, -2.5, 0, float32(math.Copysign(0, -1)), 1e-30, -3.25, 1 << 30,
					7.49}[i%10]
				up[i] = []float64{1, 1.9, 0, 0.3}[(i/10+n)%4]
				steps[i] = float64(i) * 0x1.1p-9
			}
			b, back := make([]byte, 4*n), make([]float32, n)
			ToFixed(x, up, b)
			Fixed(b, steps, back)
			for i, v := range x {
				want := int32(int64(math.RoundToEven(float64(v) * up[i])))
				if got := int32(binary.LittleEndian.Uint32(b[4*i:])); got != want {
					t.Fatalf("number %d of %d: %g·%g must be %d (got %d)", i, n, v, up[i], want, got)
				}
				if w := float32(float64(want) * steps[i]); back[i] != w {
					t.Fatalf("number %d of %d: %d·%g must be %g (got %g)", i, n, want, steps[i], w, back[i])
				}
			}
		}
	})
}

func BenchmarkFixed(b *testing.B) {
	x, steps, y := make([]float32, 256), make([]float64, 256), make([]byte, 1024)
	b.SetBytes(1024)
	for b.Loop() {
		ToFixed(x, steps, y)
		Fixed(y, steps, x)
	}
}
