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

// Sparse times dense: cols columns of the rows of Y that the row pointers are of. val goes on by step bytes an edge;
// the rows of X for the first far edges are fetched 16 edges ahead.

//go:noescape
func spmm256AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm128AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm64AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm16AVX512(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm64AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm32AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)

//go:noescape
func spmm8AVX2(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy, cols, far int, acc bool)
