package nn

import (
	"math"
	"testing"
)

func TestExp(t *testing.T) {
	for x := float32(-1e-6); x > -90; x -= 0.00137 {
		want := math.Exp(float64(x))
		if x < -87 {
			want = 0
		}
		if d := math.Abs(float64(exp(x)) - want); d > 2.4e-7*want {
			t.Fatalf("exp(%v) is %v, want %v", x, exp(x), want)
		}
		if want := math.Expm1(float64(x)); math.Abs(float64(expm1(x))-want) > 4.8e-7*math.Abs(want) {
			t.Fatalf("expm1(%v) is %v, want %v", x, expm1(x), want)
		}
	}
	if exp(float32(math.Inf(-1))) != 0 || exp(0) != 1 || expm1(0) != 0 {
		t.Fatal("exp(−Inf) is not 0 or exp(0) is not 1")
	}
	nan := float32(math.NaN())
	if a, b := exp(nan), expm1(nan); a == a || b == b {
		t.Fatal("exp(NaN) is a number")
	}
}
