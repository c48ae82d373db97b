package kernels

import "unsafe"

// Room returns n zeros. For megabytes it requests large pages from the system: rows gathered from all over small pages
// miss the TLB as well as the caches.
func Room(n int) []float32 {
	x := make([]float32, n)
	if bytes := 4 * uintptr(n); bytes >= largePage {
		adviseLarge(uintptr(unsafe.Pointer(unsafe.SliceData(x))), bytes)
	}
	return x
}

// largePage is the size of a large page in bytes.
const largePage = 2 << 20
