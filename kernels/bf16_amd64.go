package kernels

import "unsafe"

// spmmBF16AVX512 goes through the edges once for every 256 columns, and again for what is left.
func spmmBF16AVX512(s *spmm, lo, hi int) {
	j := 0
	for s.n-j >= 256 {
		j = s.columns(spmmBF16x256AVX512, lo, hi, j, 256)
	}
	s.vectors(&spmmsBF16AVX512, 16, lo, hi, j)
}

func spmmBF16AVX2(s *spmm, lo, hi int) {
	for j := 0; j < s.n; {
		switch left := s.n - j; {
		case left >= 64:
			j = s.columns(spmmBF16x64AVX2, lo, hi, j, 64)
		case left >= 8:
			j = s.columns(spmmBF16x8AVX2, lo, hi, j, 8)
		case left >= 4:
			j = s.columns(spmmBF16x4AVX2, lo, hi, j, 4)
		case left >= 2:
			j = s.columns(spmmBF16x2AVX2, lo, hi, j, 2)
		default:
			j = s.columns(spmmBF16x1AVX2, lo, hi, j, 1)
		}
	}
}

func tileBF16(height, rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer, ldc, next int, acc bool) {
	tall := height == 14
	switch {
	case tall && cols > 16:
		gemm14x32BF16(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case tall:
		gemm14x16BF16(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	case cols > 16:
		gemm8x32BF16(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	default:
		gemm8x16BF16(rows, cols, k, a, rs, cs, b, ldb, c, ldc, next, acc)
	}
}

// The conversions of AVX2 take eights in assembly and the last values in Go, which rounds in the same way.

func toBF16AVX2(x []float32, y []uint16) {
	n := len(x) &^ 7
	toBF16x8AVX2(x[:n], y)
	toBF16Generic(x[n:], y[n:])
}

func fromBF16AVX2(x []uint16, y []float32) {
	n := len(x) &^ 7
	fromBF16x8AVX2(x[:n], y)
	fromBF16Generic(x[n:], y[n:])
}

func maxAbsAVX2(x []float32) float32 {
	n := len(x) &^ 7
	a, b := maxAbs8AVX2(x[:n]), maxAbsGeneric(x[n:])
	if a != a || a >= b {
		return a
	}
	return b
}

func toInt8AVX2(up float32, x []float32, y []int8) {
	n := len(x) &^ 7
	toInt8x8AVX2(up, x[:n], y)
	toInt8Generic(up, x[n:], y[n:])
}

func fromInt8AVX2(scale float32, x []int8, y []float32) {
	n := len(x) &^ 7
	fromInt8x8AVX2(scale, x[:n], y)
	fromInt8Generic(scale, x[n:], y[n:])
}
