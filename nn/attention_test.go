package nn

import (
	"math"
	"testing"
)

func TestExp(t *testing.T) {
	for x := float32(0); x > -90; x -= 0.00137 {
		want := math.Exp(float64(x))
		if x < -87 {
			want = 0
		}
		if d := math.Abs(float64(exp(x)) - want); d > 2.4e-7*want {
			t.Fatalf("exp(%v) is %v, want %v", x, exp(x), want)
		}
	}
	if exp(float32(math.Inf(-1))) != 0 || exp(0) != 1 {
		t.Fatal("exp(−Inf) is not 0 or exp(0) is not 1")
	}
	if nan := exp(float32(math.NaN())); nan == nan {
		t.Fatal("exp(NaN) is a number")
	}
}
