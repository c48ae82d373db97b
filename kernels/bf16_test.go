package kernels

import (
	"math"
	"slices"
	"testing"
)

// widened returns x as float32.
func widened(x []uint16) []float32 {
	y := make([]float32, len(x))
	fromBF16Generic(x, y)
	return y
}

// TestToBF16Generic checks that plain Go rounds to the nearest, ties to even.
func TestToBF16Generic(t *testing.T) {
	for _, c := range []struct {
		in   uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f817fff, 0x3f81},
		{0x80000000, 0x8000}, {0x00000001, 0}, {0x00008001, 1}, {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80},
		{0x7f800001, 0x7fc0}, {0xffffffff, 0xffff}, {0x7fc10000, 0x7fc1},
	} {
		var got [1]uint16
		toBF16Generic([]float32{math.Float32frombits(c.in)}, got[:])
		if got[0] != c.want {
			t.Errorf("%#x: %#x, must be %#x", c.in, got[0], c.want)
		}
	}
}

// TestConversions checks that every set gives the bits of plain Go.
func TestConversions(t *testing.T) {
	each(t, func(t *testing.T) {
		for i, n := range lengths() {
			offset := i % 7
			for _, fill := range []func(uint64, []float32) []float32{noise, special} {
				x := fill(1, make([]float32, n+offset))[offset:]
				const canary = 0xabcd
				all := slices.Repeat([]uint16{canary}, n+40)
				y, want := all[20:20+n:20+n], make([]uint16, n)
				ToBF16(x, y)
				toBF16Generic(x, want)
				if !slices.Equal(y, want) {
					t.Fatalf("ToBF16 of %d differs", n)
				}
				if slices.ContainsFunc(slices.Concat(all[:20], all[20+n:]),
					func(v uint16) bool { return v != canary }) {
					t.Fatalf("ToBF16 of %d wrote outside", n)
				}
				back, check := fenced(t, offset, n)
				FromBF16(y, back)
				check()
				same(t, "FromBF16", back, widened(want))
			}
			if n > 1003 {
				continue
			}
			x := noise(uint64(i), make([]float32, n+offset))[offset:]
			all := slices.Repeat([]int8{99}, n+80)
			y, want := all[40:40+n:40+n], make([]int8, n)
			scale := ToInt8(x, y)
			if top := maxAbsGeneric(x); n > 0 {
				toInt8Generic(127/top, x, want)
				if scale != top/127 {
					t.Fatalf("scale %g, must be %g", scale, top/127)
				}
			}
			if !slices.Equal(y, want) {
				t.Fatalf("ToInt8 of %d: %v, must be %v", n, y, want)
			}
			if slices.ContainsFunc(slices.Concat(all[:40], all[40+n:]), func(v int8) bool { return v != 99 }) {
				t.Fatalf("ToInt8 of %d wrote outside", n)
			}
			back, check := fenced(t, offset, n)
			FromInt8(scale, y, back)
			check()
			for k, v := range back {
				if v != scale*float32(y[k]) || math.Abs(float64(v-x[k])) > float64(scale)*0.5001 {
					t.Fatalf("FromInt8 of %d, scale %g: %g for %g", y[k], scale, v, x[k])
				}
			}
		}
		for _, c := range []struct{ odd, want float32 }{{0, 0}, {1e-40, 0},
			{float32(math.Inf(-1)), float32(math.Inf(1))}, {float32(math.NaN()), float32(math.NaN())}} {
			x, y := make([]float32, 21), slices.Repeat([]int8{5}, 21)
			for _, at := range []int{3, 20} {
				clear(x)
				x[at] = c.odd
				same(t, "scale", []float32{ToInt8(x, y)}, []float32{c.want})
				if slices.ContainsFunc(y, func(v int8) bool { return v != 0 }) {
					t.Fatalf("%g: %v, must be zeros", c.odd, y)
				}
			}
		}
	})
}
