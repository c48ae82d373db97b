package kernels

import "testing"

// TestRoom: whatever the system says, there are as many zeros as were asked for, and they can be written.
func TestRoom(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 1 << 19, 3<<19 + 7} {
		x := Room(n)
		if len(x) != n {
			t.Fatalf("%d values, want %d", len(x), n)
		}
		for i, v := range x {
			if v != 0 {
				t.Fatalf("value %d of %d is %g", i, n, v)
			}
			x[i] = float32(i)
		}
		for i, v := range x {
			if v != float32(i) {
				t.Fatalf("value %d of %d is %g", i, n, v)
			}
		}
	}
}
