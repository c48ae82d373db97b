package kernels

import "unsafe"

// Tiles of a GEMM: C, 8×8, from k columns of A and packed rows of B. A is stored by rows, or by columns (T).

//go:noescape
func gemm8x8NEON(k int, a unsafe.Pointer, lda int, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func gemm8x8TNEON(k int, a unsafe.Pointer, lda int, b, c unsafe.Pointer, ldc int, acc bool)

// Sparse times dense, for a number of columns of the rows of Y that rowPtr describes. val advances by step bytes an
// edge; for the first `far` edges, rows of X are prefetched 16 edges ahead.

//go:noescape
func spmm64NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

//go:noescape
func spmm16NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

//go:noescape
func spmm4NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

//go:noescape
func spmm2NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

//go:noescape
func spmm1NEON(rows int, rowPtr, col, val unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy, cols, far int, acc bool)

// Loops over slices. The first slice gives the length, a multiple of 4.

//go:noescape
func axpy4NEON(a float32, x, y []float32)

//go:noescape
func dot4NEON(x, y []float32) float32

//go:noescape
func add4NEON(x, y []float32)

//go:noescape
func mul4NEON(x, y []float32)

//go:noescape
func scale4NEON(a float32, x []float32)

//go:noescape
func relu4NEON(x, y []float32)

//go:noescape
func reluGrad4NEON(y, dy, dx []float32)

//go:noescape
func where4NEON(e int32, arg []int32, x, y []float32)

//go:noescape
func elu4NEON(x, y []float32)

//go:noescape
func eluGrad4NEON(y, dy, dx []float32)

//go:noescape
func adam4NEON(p, g, m, v []float32, c *adam)

//go:noescape
func mask4NEON(lo, hi, limit uint32, up float32, keep []float32)

//go:noescape
func addWide4NEON(x []float32, sum []float64)

//go:noescape
func maxIndex4NEON(col []int32) uint32

//go:noescape
func toBF16x4NEON(x []float32, y []uint16)

//go:noescape
func fromBF16x4NEON(x []uint16, y []float32)

// Bytes: lengths are multiples of 16.

//go:noescape
func maxAbs16NEON(x []float32) float32

//go:noescape
func toInt8x16NEON(up float32, x []float32, y []int8)

//go:noescape
func fromInt8x16NEON(scale float32, x []int8, y []float32)
