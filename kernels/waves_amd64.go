package kernels

// The loops of assembly have no path for far values and NaN. |y + phase| is below far if the sum of both maxima is.

func wavesAVX2(phase, y []float32) {
	if maxAbsAVX2(phase)+maxAbsAVX2(y) < far {
		nearWavesAVX2(phase, y)
	} else {
		wavesGeneric(phase, y)
	}
}

func wavesAVX512(phase, y []float32) {
	if maxAbsAVX512(phase)+maxAbsAVX512(y) < far {
		nearWavesAVX512(phase, y)
	} else {
		wavesGeneric(phase, y)
	}
}

//go:noescape
func nearWavesAVX2(phase, y []float32)

//go:noescape
func nearWavesAVX512(phase, y []float32)
