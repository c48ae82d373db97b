package kernels

import "unsafe"

// Room returns n zeros. For megabytes it requests large pages from the system: rows that are
// gathered from all over small ones miss the processor's list of pages as well as its caches.
func Room(n int) []float32 {
	x := make([]float32, n)
	if bytes := 4 * uintptr(n); bytes >= largePage {
		adviseLarge(uintptr(unsafe.Pointer(unsafe.SliceData(x))), bytes)
	}
	return x
}

// largePage is the bytes of a large page.
const largePage = 2 << 20
