package kernels

import "unsafe"

// spmmAVX512 processes the edges once for every 256 columns, and again for each 128 and for the rest. Few columns use
// short vectors, which more often stay within one cache line: a vector across two lines takes twice as long, even if
// masked.
func spmmAVX512(s *spmm, lo, hi int) {
	if s.n <= 8 {
		s.columns(spmm8AVX2, lo, hi, 0, s.n)
		return
	}
	j := 0
	for ; s.n-j >= 256; j += 256 {
		s.columns(spmm256AVX512, lo, hi, j, 256)
	}
	s.vectors(&spmmsAVX512, 16, lo, hi, j)
}

func spmmAVX2(s *spmm, lo, hi int) { s.vectors(&spmmsAVX2, 8, lo, hi, 0) }

// vectors computes the columns from j on of rows [lo, hi). Kernel k sums k+1 vectors of `lanes` columns, so each pass
// over the edges computes up to len(kernels)·lanes columns.
func (s *spmm) vectors(kernels *[8]spmmAsm, lanes, lo, hi, j int) {
	for j < s.n {
		cols := min(s.n-j, len(kernels)*lanes)
		j = s.columns(kernels[(cols-1)/lanes], lo, hi, j, cols)
	}
}

type spmaxAsm func(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

func spmaxAVX512(s *spmax, lo, hi int) {
	for j := 0; j < s.n; {
		if left := s.n - j; left > 16 {
			j = s.columns(spmax64AVX512, lo, hi, j, min(left, 64))
		} else {
			j = s.columns(spmax16AVX512, lo, hi, j, left)
		}
	}
}

func spmaxAVX2(s *spmax, lo, hi int) {
	for j := 0; j < s.n; {
		if left := s.n - j; left >= 32 {
			j = s.columns(spmax32AVX2, lo, hi, j, 32)
		} else {
			j = s.columns(spmax8AVX2, lo, hi, j, min(left, 8))
		}
	}
}

// columns computes columns [j, j+cols) of rows [lo, hi) and returns j+cols.
func (s *spmax) columns(f spmaxAsm, lo, hi, j, cols int) int {
	if s.rowPtr[lo] < s.rowPtr[hi] {
		f(hi-lo, unsafe.Pointer(&s.rowPtr[lo]), unsafe.Pointer(&s.col[0]), unsafe.Pointer(&s.x[j]), s.ldx,
			unsafe.Pointer(&s.y[lo*s.ldy+j]), s.ldy, unsafe.Pointer(&s.arg[lo*s.lda+j]), s.lda, cols)
	}
	return j + cols
}
