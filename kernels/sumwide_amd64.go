package kernels

func sumWideAVX2(dst []float32, terms [][]float32) {
	n := len(dst) &^ 15
	if n > 0 {
		sumWide16AVX2(dst[:n], terms)
	}
	sumWideFrom(n, dst, terms)
}

func sumWideAVX512(dst []float32, terms [][]float32) {
	n := len(dst) &^ 31
	if n > 0 {
		sumWide32AVX512(dst[:n], terms)
	}
	sumWideFrom(n, dst, terms)
}

//go:noescape
func sumWide16AVX2(dst []float32, terms [][]float32)

//go:noescape
func sumWide32AVX512(dst []float32, terms [][]float32)
