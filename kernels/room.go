package kernels

// Room returns n zeros. Where that is megabytes, the system is asked for large pages: rows that are gathered from all over
// small ones miss the processor's list of pages as well as its caches.
func Room(n int) []float32 {
	x := make([]float32, n)
	if 4*n >= largePage {
		adviseLarge(x)
	}
	return x
}

// largePage is the bytes of a large page.
const largePage = 2 << 20
