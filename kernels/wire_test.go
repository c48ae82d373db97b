package kernels

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestFloats: the view has the values that encoding/binary reads, at any address that allows a view.
func TestFloats(t *testing.T) {
	b := make([]byte, 67)
	for i := range b {
		b[i] = byte(37*i + 11)
	}
	views := 0
	for lo := range 8 {
		x, ok := Floats(b[lo:])
		if !ok {
			continue
		}
		views++
		if len(x) != (len(b)-lo)/4 {
			t.Fatalf("%d values of %d bytes", len(x), len(b)-lo)
		}
		for i, v := range x {
			if want := binary.LittleEndian.Uint32(b[lo+4*i:]); math.Float32bits(v) != want {
				t.Errorf("offset %d, value %d: %#x, must be %#x", lo, i, math.Float32bits(v), want)
			}
		}
	}
	if littleEndian && views != 2 {
		t.Errorf("%d of 8 addresses give a view, must be the 2 aligned ones", views)
	}
	if x, ok := Floats(nil); !ok || len(x) != 0 {
		t.Errorf("no bytes: %v, %t", x, ok)
	}
}

// TestAddWide: it sums in float64, bit for bit, for any length.
func TestAddWide(t *testing.T) {
	for n := range 70 {
		x, sum, want := make([]float32, n), make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float32(i+1) * 0.1
			sum[i] = 1e8 + float64(i)
			want[i] = sum[i] + float64(x[i])
		}
		active.addWide(x, sum)
		for i := range sum {
			if sum[i] != want[i] {
				t.Fatalf("%d values: sum %d is %v, must be %v", n, i, sum[i], want[i])
			}
		}
	}
}
