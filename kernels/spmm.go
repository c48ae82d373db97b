package kernels

// SpMM computes Y = S·X, or Y += S·X where acc: S is a CSR of len(rowPtr)-1 rows with columns col and values val
// (nil: all 1), X has rows of n values with stride ldx, Y with stride ldy. It serves neighbour sums (S the adjacency)
// and sparse inputs (S the features, X the weights).
func SpMM(rowPtr []int64, col []int32, val []float32, n int, x []float32, ldx int, y []float32, ldy int, acc bool) {
	for i := range len(rowPtr) - 1 {
		yi := y[i*ldy : i*ldy+n]
		if !acc {
			clear(yi)
		}
		for k := rowPtr[i]; k < rowPtr[i+1]; k++ {
			v := float32(1)
			if val != nil {
				v = val[k]
			}
			j := int(col[k])
			axpyGeneric(v, x[j*ldx:j*ldx+n], yi)
		}
	}
}

// SpMax computes Y = max over the columns of each row of S of the rows of X, element by element, with arg the column
// that gave it (the first, where several tie). A row of S without columns leaves its row of Y and arg as they were,
// so that blocks can be taken one after another: begin with −Inf and −1.
func SpMax(rowPtr []int64, col []int32, n int, x []float32, ldx int, y []float32, ldy int, arg []int32, lda int) {
	for i := range len(rowPtr) - 1 {
		yi, ai := y[i*ldy:i*ldy+n], arg[i*lda:i*lda+n]
		for k := rowPtr[i]; k < rowPtr[i+1]; k++ {
			j := col[k]
			for c, v := range x[int(j)*ldx : int(j)*ldx+n] {
				if v > yi[c] {
					yi[c], ai[c] = v, j
				}
			}
		}
	}
}
