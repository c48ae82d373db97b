package kernels

import (
	"math"
	"testing"
)

// TestGemmSpecial checks that NaN and infinity reach the row or column that they are multiplied into, despite zero
// factors, and no others: neither packing nor the edges of tiles spread them.
func TestGemmSpecial(t *testing.T) {
	type product func(m, n, k int, a, b, c []float32)
	forms := []struct {
		name   string
		run    product
		tn, nt bool
	}{
		{"NN", func(m, n, k int, a, b, c []float32) { GemmNN(m, n, k, a, k, b, n, c, n, false) }, false, false},
		{"TN", func(m, n, k int, a, b, c []float32) { GemmTN(m, n, k, a, m, b, n, c, n, false) }, true, false},
		{"NNBF16", func(m, n, k int, a, b, c []float32) { gemmNNBF16(m, n, k, a, k, b, n, c, n, false) }, false, false},
		{"TNBF16", func(m, n, k int, a, b, c []float32) { GemmTNBF16(m, n, k, a, m, b, n, c, n, false) }, true, false},
		{"NTBF16", func(m, n, k int, a, b, c []float32) { GemmNTBF16(m, n, k, a, k, b, k, c, n, false) }, false, true},
		{"NT", func(m, n, k int, a, b, c []float32) { GemmNT(m, n, k, a, k, b, k, c, n, false) }, false, true},
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	each(t, func(t *testing.T) {
		for _, d := range [][3]int{{3, 2, 5}, {9, 7, 33}, {17, 47, 20}, {40, 100, 97}, {300, 10, 65}} {
			m, n, k := d[0], d[1], d[2]
			// row bad of A begins with NaN; B has Inf in column `column` of row p, and A has 0 in column p of row
			// hidden
			bad, hidden, column, p := m/2, m-1, n/2, k-1
			for _, f := range forms {
				a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
				atA := func(i, q int) *float32 {
					if f.tn {
						return &a[q*m+i]
					}
					return &a[i*k+q]
				}
				atB := func(q, j int) *float32 {
					if f.nt {
						return &b[j*k+q]
					}
					return &b[q*n+j]
				}
				for i := range m {
					for q := range k {
						*atA(i, q) = 1
					}
				}
				for j := range n {
					for q := 1; q < k; q++ { // zeros at q > 0 do not hide the NaN
						*atB(q, j) = 2
					}
				}
				*atA(bad, 0), *atA(hidden, p), *atB(p, column) = nan, 0, inf
				f.run(m, n, k, a, b, c)
				for i := range m {
					for j := range n {
						want := float32(2 * (k - 1))
						switch {
						case i == bad || i == hidden && j == column:
							want = nan
						case j == column:
							want = inf
						case i == hidden:
							want -= 2
						}
						if got := c[i*n+j]; got != want && (got == got || want == want) {
							t.Fatalf("%s %v: C[%d,%d] = %g, must be %g", f.name, d, i, j, got, want)
						}
					}
				}
			}
		}
	})
}
