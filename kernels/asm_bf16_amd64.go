package kernels

// Conversions. Lengths are those of the first slice; for AVX2, multiples of 8.

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
