package kernels

// GemmNN computes C = A·B, or C += A·B where acc: A is m×k, B k×n, C m×n, all row-major with strides lda, ldb, ldc.
func GemmNN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	for i := range m {
		ci := c[i*ldc : i*ldc+n]
		if !acc {
			clear(ci)
		}
		for p := range k {
			if v := a[i*lda+p]; v != 0 {
				axpyGeneric(v, b[p*ldb:p*ldb+n], ci)
			}
		}
	}
}

// GemmTN computes C = Aᵀ·B, or C += Aᵀ·B where acc: A is k×m, B k×n, C m×n. It is a weight's gradient: A the
// inputs, B the gradients of the outputs.
func GemmTN(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	for i := range m {
		if !acc {
			clear(c[i*ldc : i*ldc+n])
		}
	}
	for p := range k {
		for i := range m {
			if v := a[p*lda+i]; v != 0 {
				axpyGeneric(v, b[p*ldb:p*ldb+n], c[i*ldc:i*ldc+n])
			}
		}
	}
}

// GemmNT computes C = A·Bᵀ, or C += A·Bᵀ where acc: A is m×k, B n×k, C m×n. It is an input's gradient: A the
// gradients of the outputs, B the weights.
func GemmNT(m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	for i := range m {
		for j := range n {
			s := dotGeneric(a[i*lda:i*lda+k], b[j*ldb:j*ldb+k])
			if acc {
				s += c[i*ldc+j]
			}
			c[i*ldc+j] = s
		}
	}
}
