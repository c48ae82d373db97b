package kernels

import "unsafe"

// spmmAVX512 goes through the edges once for every 128 columns, and again for what is left: fetching ahead takes no more
// than eight lines of a row at a time well.
func spmmAVX512(s *spmm, lo, hi int) {
	for j := 0; j < s.n; {
		switch left := s.n - j; {
		case left >= 128:
			j = s.columns(spmm128AVX512, lo, hi, j, 128)
		case left > 16:
			j = s.columns(spmm64AVX512, lo, hi, j, min(left, 64))
		default:
			j = s.columns(spmm16AVX512, lo, hi, j, left)
		}
	}
}

func spmmAVX2(s *spmm, lo, hi int) {
	for j := 0; j < s.n; {
		switch left := s.n - j; {
		case left >= 64:
			j = s.columns(spmm64AVX2, lo, hi, j, 64)
		case left >= 32:
			j = s.columns(spmm32AVX2, lo, hi, j, 32)
		default:
			j = s.columns(spmm8AVX2, lo, hi, j, min(left, 8))
		}
	}
}

type spmaxAsm func(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer, lda, cols int)

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
