package kernels

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// usable returns the sets that this processor and its operating system support, the slowest first.
func usable() []*set {
	sets := []*set{generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		sets = append(sets, avx2)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			sets = append(sets, avx512)
		}
	}
	return sets
}

var avx2 = &set{
	name: "avx2",

	axpy:     axpyAVX2,
	dot:      dotAVX2,
	add:      addAVX2,
	mul:      mulAVX2,
	scale:    scaleAVX2,
	relu:     reluAVX2,
	reluGrad: reluGradAVX2,
	adam:     adamAVX2,
	dropout:  dropoutAVX2,
	addWide:  addWideAVX2,
	maxIndex: maxIndexAVX2,

	gemm:  gemmBlocked,
	tiles: tiles{rows: 6, cols: 16, height: func(int) int { return 6 }, run: tileAVX2},
	spmm:  spmmAVX2,
	spmax: spmaxAVX2,
}

var avx512 = &set{
	name: "avx512",

	axpy:     axpyAVX512,
	dot:      dotAVX512,
	add:      addAVX512,
	mul:      mulAVX512,
	scale:    scaleAVX512,
	relu:     reluAVX512,
	reluGrad: reluGradAVX512,
	adam:     adamAVX512,
	dropout:  dropoutAVX512,
	addWide:  addWideAVX512,
	maxIndex: maxIndexAVX512,

	gemm:  gemmBlocked,
	tiles: tiles{rows: 14, cols: 32, height: heightAVX512, run: tileAVX512},
	spmm:  spmmAVX512,
	spmax: spmaxAVX512,
}

func tileAVX2(_, rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool) {
	if cols > 8 {
		gemm6x16AVX2(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	} else {
		gemm6x8AVX2(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	}
}

// heightAVX512 covers what is left with the fewest rows in vain.
func heightAVX512(left int) int {
	if left <= 8 || left == 15 || left == 16 {
		return 8
	}
	return 14
}

func tileAVX512(height, rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool) {
	tall := height == 14
	switch {
	case tall && cols > 16:
		gemm14x32AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	case tall && cols > 8:
		gemm14x16AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	case tall:
		gemm14x8AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	case cols > 16:
		gemm8x32AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	case cols > 8:
		gemm8x16AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	default:
		gemm8x8AVX512(rows, cols, k, a, rs, cs, b, c, ldc, acc)
	}
}
