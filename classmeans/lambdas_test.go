package classmeans

import (
	"math"
	"testing"
)

// TestLambdas: the penalties are half decades.
func TestLambdas(t *testing.T) {
	all := Lambdas()
	if len(all) != 15 {
		t.Fatalf("there must be 15 penalties (got %d)", len(all))
	}
	for i, x := range all {
		if want := math.Pow(10, float64(i-10)/2); math.Abs(x-want) > 1e-14*want {
			t.Errorf("penalty %d must be %v (got %v)", i, want, x)
		}
	}
}
