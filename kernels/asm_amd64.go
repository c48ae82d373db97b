package kernels

import "unsafe"

// Tiles of a GEMM: C, rows×cols, from k columns of A and packed rows of B.

//go:noescape
func gemm6x16AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
	ldc, next int, acc bool)

//go:noescape
func gemm6x8AVX2(rows, cols, k int, a unsafe.Pointer, rs, cs int, b unsafe.Pointer, ldb int, c unsafe.Pointer,
	ldc, next int, acc bool)

// Loops over slices. The first slice gives the length.

//go:noescape
func axpyAVX2(a float32, x, y []float32)

//go:noescape
func dotAVX2(x, y []float32) float32

//go:noescape
func addAVX2(x, y []float32)

//go:noescape
func scaleAVX2(a float32, x []float32)

//go:noescape
func reluAVX2(x, y []float32)

//go:noescape
func reluGradAVX2(y, dy, dx []float32)

//go:noescape
func whereAVX2(e int32, arg []int32, x, y []float32)

//go:noescape
func leakyDotAVX2(slope float32, v, x, y []float32) float32

//go:noescape
func leakyGradAVX2(d, slope float32, v, x, y, dv, dy []float32)

//go:noescape
func leakySourceAVX2(p, d, slope float32, dh, v, x, y, dx []float32)

//go:noescape
func eluAVX2(x, y []float32)

//go:noescape
func eluGradAVX2(y, dy, dx []float32)

//go:noescape
func adamAVX2(p, g, m, v []float32, c adam)

//go:noescape
func dropoutAVX2(lo, hi, limit uint32, up float32, x, y []float32, add, past bool)

//go:noescape
func keptAVX2(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) int

//go:noescape
func addWideAVX2(x []float32, sum []float64)

//go:noescape
func maxIndexAVX2(col []int32) uint32

//go:noescape
func axpyAVX512(a float32, x, y []float32)

//go:noescape
func dotAVX512(x, y []float32) float32

//go:noescape
func addAVX512(x, y []float32)

//go:noescape
func scaleAVX512(a float32, x []float32)

//go:noescape
func reluAVX512(x, y []float32)

//go:noescape
func reluGradAVX512(y, dy, dx []float32)

//go:noescape
func whereAVX512(e int32, arg []int32, x, y []float32)

//go:noescape
func leakyDotAVX512(slope float32, v, x, y []float32) float32

//go:noescape
func leakyGradAVX512(d, slope float32, v, x, y, dv, dy []float32)

//go:noescape
func leakySourceAVX512(p, d, slope float32, dh, v, x, y, dx []float32)

//go:noescape
func eluAVX512(x, y []float32)

//go:noescape
func eluGradAVX512(y, dy, dx []float32)

//go:noescape
func adamAVX512(p, g, m, v []float32, c adam)

//go:noescape
func dropoutAVX512(lo, hi, limit uint32, up float32, x, y []float32, add, past bool)

//go:noescape
func keptAVX512(lo, hi, limit uint32, col []int32, x []float32, mask *uint16) int

//go:noescape
func packKeptAVX2(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) int

//go:noescape
func turnKeptAVX2(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32, bits *uint16) int

//go:noescape
func packKeptAVX512(mask *uint16, up float32, col []int32, x []float32, at []int32, y []float32) int

//go:noescape
func turnKeptAVX512(mask *uint16, up float32, place []uint32, x []float32, at []int32, y []float32, bits *uint16) int

//go:noescape
func addWideAVX512(x []float32, sum []float64)

//go:noescape
func maxIndexAVX512(col []int32) uint32

// Maxima over edges, for cols columns of the rows that rowPtr describes.

//go:noescape
func spmax64AVX512(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

//go:noescape
func spmax16AVX512(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

//go:noescape
func spmax32AVX2(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

//go:noescape
func spmax8AVX2(rows int, rowPtr, col, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, arg unsafe.Pointer,
	lda, cols int)

// Rows of LayerNorm and softmax. The first slice gives the length.

//go:noescape
func sumAVX512(x []float32) float64

//go:noescape
func sumSquaresAVX512(x []float32, mean float32) float64

//go:noescape
func normaliseAVX512(x, gain, bias, y []float32, mean, inv float32, past bool)

//go:noescape
func normSumsAVX512(x, dy, gain []float32, mean, inv float32) (a, b float64)

//go:noescape
func normGradAVX512(x, dy, gain, dx []float32, mean, inv, ma, mb float32)

//go:noescape
func addNormAVX512(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)

//go:noescape
func maxAVX512(x []float32) float32

//go:noescape
func expSumAVX512(shift float32, x, y []float32) float64

// fence makes writes past the caches visible to other threads.
func fence()

//go:noescape
func softmaxAVX512(b *entropyBlock, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)

//go:noescape
func softmaxAVX2(b *entropyBlock, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)

//go:noescape
func sumAVX2(x []float32) float64

//go:noescape
func sumSquaresAVX2(x []float32, mean float32) float64

//go:noescape
func normaliseAVX2(x, gain, bias, y []float32, mean, inv float32, past bool)

//go:noescape
func normSumsAVX2(x, dy, gain []float32, mean, inv float32) (a, b float64)

//go:noescape
func normGradAVX2(x, dy, gain, dx []float32, mean, inv, ma, mb float32)

//go:noescape
func addNormAVX2(rows int, x []float32, ldx int, dy []float32, lddy int, stats []float32, gain, bias []float64)

//go:noescape
func maxAVX2(x []float32) float32

//go:noescape
func expSumAVX2(shift float32, x, y []float32) float64

// Conversions. The first slice gives the length; for AVX2, it is a multiple of 8.

//go:noescape
func toBF16AVX512(x []float32, y []uint16)

//go:noescape
func fromBF16AVX512(x []uint16, y []float32)

//go:noescape
func maxAbsAVX512(x []float32) float32

//go:noescape
func toInt8AVX512(up float32, x []float32, y []int8)

//go:noescape
func fromInt8AVX512(scale float32, x []int8, y []float32)

//go:noescape
func toBF16x8AVX2(x []float32, y []uint16)

//go:noescape
func fromBF16x8AVX2(x []uint16, y []float32)

//go:noescape
func maxAbs8AVX2(x []float32) float32

//go:noescape
func toInt8x8AVX2(up float32, x []float32, y []int8)

//go:noescape
func fromInt8x8AVX2(scale float32, x []int8, y []float32)

//go:noescape
func toFixed8AVX2(x []float32, up []float64, b []byte)

//go:noescape
func fixed8AVX2(b []byte, steps []float64, x []float32)

//go:noescape
func toFixed16AVX512(x []float32, up []float64, b []byte)

//go:noescape
func fixed16AVX512(b []byte, steps []float64, x []float32)
