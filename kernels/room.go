package kernels

import "unsafe"

// Room returns n zeros. For megabytes it requests large pages from the system: rows that are
// gathered from all over small ones miss the processor's list of pages as well as its caches.
func Room(n int) []float32 { return zeros[float32](n) }

// RoomBF16 is Room for values of bfloat16.
func RoomBF16(n int) []uint16 { return zeros[uint16](n) }

// largePage is the bytes of a large page.
const largePage = 2 << 20

func zeros[T any](n int) []T {
	x := make([]T, n)
	if bytes := uintptr(n) * unsafe.Sizeof(*new(T)); bytes >= largePage {
		adviseLarge(uintptr(unsafe.Pointer(unsafe.SliceData(x))), bytes)
	}
	return x
}
