package kernels

import "unsafe"

// Tiles of a GEMM: C, rows×cols, from k columns of A and packed rows of B.

//go:noescape
func gemm14x32AVX512(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm8x32AVX512(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm14x16AVX512(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm8x16AVX512(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm6x16AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm6x8AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b, c unsafe.Pointer, ldc int, acc bool)
