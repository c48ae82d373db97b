package kernels

import "testing"

// TestRoom: Room returns n writable zeros, whether or not the system gives large pages.
func TestRoom(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 1 << 19, 3<<19 + 7} {
		testRoom(t, n, Room(n))
		testRoom(t, n, onLargePages(n)[:n])
	}
}

func testRoom(t *testing.T, n int, x []float32) {
	t.Helper()
	if len(x) != n {
		t.Fatalf("%d values, must be %d", len(x), n)
	}
	for i, v := range x {
		if v != 0 {
			t.Fatalf("value %d of %d is %v", i, n, v)
		}
		x[i] = float32(i % 1000)
	}
	for i, v := range x {
		if v != float32(i%1000) {
			t.Fatalf("value %d of %d is %v", i, n, v)
		}
	}
}
