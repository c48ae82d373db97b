package kernels

import (
	"math"
	"math/bits"
	"reflect"
	"testing"
)

// each runs f once with every set of this machine.
func each(t *testing.T, f func(t *testing.T)) {
	before := active
	defer func() { active = before }()
	for _, s := range usable() {
		active = s
		t.Run(s.name, f)
	}
}

// distinct is each without the sets that share their float32 product with an earlier set.
func distinct(t *testing.T, f func(t *testing.T)) {
	seen := map[[2]uintptr]bool{}
	each(t, func(t *testing.T) {
		key := [2]uintptr{reflect.ValueOf(active.gemm).Pointer(), reflect.ValueOf(active.tiles.run).Pointer()}
		if !seen[key] {
			f(t)
		}
		seen[key] = true
	})
}

// TestChoice checks that tests run with the requested set.
func TestChoice(t *testing.T) {
	if err := Choice(); err != nil {
		t.Fatal(err)
	}
}

// noise fills x with values of a keyed sequence in [−1, 1).
func noise(seed uint64, x []float32) []float32 {
	for i := range x {
		h, l := bits.Mul64(seed+uint64(i)*0x9e3779b97f4a7c15+1, 0xd1342543de82ef95)
		x[i] = float32(int32((h^l)>>24)) * 0x1p-31
	}
	return x
}

// counts fills x with small integers, whose products and sums are exact.
func counts(seed uint64, x []float32) []float32 {
	for i := range noise(seed, x) {
		x[i] = float32(math.Round(float64(x[i] * 8)))
	}
	return x
}

// fenced returns n values at an odd offset of a larger array, and a check that nothing around them was written.
func fenced(t *testing.T, offset, n int) (x []float32, check func()) {
	const canary = float32(-12345.678)
	all := make([]float32, n+64+offset)
	for i := range all {
		all[i] = canary
	}
	lo := 32 + offset
	return all[lo : lo+n : lo+n], func() {
		t.Helper()
		for i, v := range all {
			if (i < lo || i >= lo+n) && v != canary {
				t.Fatalf("wrote %g at %d, outside of [0, %d)", v, i-lo, n)
			}
		}
	}
}

// same fails unless got and want have the same bits; any NaN equals any NaN.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: length %d, must be %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: [%d] = %g (%#x), must be %g (%#x)", what, i, got[i], math.Float32bits(got[i]), want[i],
				math.Float32bits(want[i]))
		}
	}
}
