package kernels

// The AVX2 conversions process eights in assembly and the last values in Go, which rounds in the same way.

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

func toFixedAVX2(x []float32, up []float64, b []byte) {
	n := len(x) &^ 7
	toFixed8AVX2(x[:n], up, b)
	toFixedGeneric(x[n:], up[n:], b[4*n:])
}

func fixedAVX2(b []byte, steps []float64, x []float32) {
	n := len(x) &^ 7
	fixed8AVX2(b, steps, x[:n])
	fixedGeneric(b[4*n:], steps[n:], x[n:])
}

func toFixedAVX512(x []float32, up []float64, b []byte) {
	n := len(x) &^ 15
	toFixed16AVX512(x[:n], up, b)
	toFixedGeneric(x[n:], up[n:], b[4*n:])
}

func fixedAVX512(b []byte, steps []float64, x []float32) {
	n := len(x) &^ 15
	fixed16AVX512(b, steps, x[:n])
	fixedGeneric(b[4*n:], steps[n:], x[n:])
}
