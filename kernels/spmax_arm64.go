package kernels

import "unsafe"

// Maxima over edges, for cols columns of the rows that rowPtr describes.

//go:noescape
func spmax16NEON(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

//go:noescape
func spmax4NEON(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

// spmaxNEON processes the edges once for every 16 columns, again for every four of the remaining columns, and computes
// the last ones in Go.
func spmaxNEON(s *spmax, lo, hi int) {
	if s.rowPtr[lo] == s.rowPtr[hi] {
		return
	}
	j := 0
	for s.n-j >= 4 {
		f, cols := spmax4NEON, 4
		if s.n-j >= 16 {
			f, cols = spmax16NEON, 16
		}
		f(hi-lo, unsafe.Pointer(&s.rowPtr[lo]), unsafe.Pointer(&s.col[0]), unsafe.Pointer(&s.x[j]), s.ldx,
			unsafe.Pointer(&s.y[lo*s.ldy+j]), s.ldy, unsafe.Pointer(&s.arg[lo*s.lda+j]), s.lda, cols)
		j += cols
	}
	spmaxColumns(s, lo, hi, j)
}
