package kernels

import (
	"bytes"
	"math/big"
	"slices"
	"testing"
)

// TestIntegers: packed integers are added and subtracted modulo 2^bits, whatever their number, with nothing carried
// from one to the next and nothing written beside them.
func TestIntegers(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, bits := range []int{8, 16, 32, 64} {
			for n := range 400 * 8 / bits {
				x, y := make([]byte, n*bits/8), make([]byte, n*bits/8)
				for i := range x {
					// Many bytes are 0x00, 0x7f, 0x80 or 0xff, from which there is much to carry.
					edge := []byte{0x00, 0x7f, 0x80, 0xff, byte(31 * i), byte(7*i + n), 0xff, 0x01}
					x[i], y[i] = edge[(i*i+n)%8], edge[(3*i*i/5+i+n)%8]
				}
				for _, minus := range []bool{false, true} {
					room := slices.Concat([]byte{42}, y, []byte{42})
					if minus {
						SubIntegers(bits, x, room[1:len(room)-1])
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

// wideIntegers returns y ± x of integers that are taken one by one, with all their digits.
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
