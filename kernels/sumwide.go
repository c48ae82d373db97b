package kernels

// SumWide makes dst the elementwise sum of the vectors in terms, each as long as dst. It adds in their order, in
// float64, and rounds to float32 once. dst may be one of them. Without terms, dst is unchanged.
func SumWide(dst []float32, terms [][]float32) {
	for _, x := range terms {
		checkLength("a term of SumWide", len(x), len(dst))
		reads(x)
	}
	writes(dst)
	if len(terms) > 0 {
		active.sumWide(dst, terms)
	}
}

func sumWideGeneric(dst []float32, terms [][]float32) { sumWideFrom(0, dst, terms) }

// sumWideFrom sums from element i on: the elements after the last whole register.
func sumWideFrom(i int, dst []float32, terms [][]float32) {
	for ; i < len(dst); i++ {
		s := float64(terms[0][i])
		for _, x := range terms[1:] {
			s += float64(x[i])
		}
		dst[i] = float32(s)
	}
}
