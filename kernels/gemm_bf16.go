package kernels

import "sync"

// rounded has copies of parts of A and B, rounded to bfloat16 and stored as float32.
type rounded struct{ a, b [blockK * blockN]float32 }

var roundeds = sync.Pool{New: func() any { return new(rounded) }}

// gemmRounded computes the rectangle [i0,i1)×[j0,j1) of C from rounded copies, by the set's float32 product. A product
// of two bfloat16 is exact in float32.
func gemmRounded(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	r := roundeds.Get().(*rounded)
	defer roundeds.Put(r)
	for j := j0; j < j1; j += blockN {
		for p := 0; p < g.k; p += blockK {
			sub := gemm{form: g.form, n: min(blockN, j1-j), k: min(blockK, g.k-p), acc: g.acc || p > 0, ldc: g.ldc,
				a: r.a[:], b: r.b[:], tiles: g.tiles}
			if g.form == nt {
				sub.ldb = sub.k
				roundRows(sub.n, sub.k, g.b[j*g.ldb+p:], g.ldb, r.b[:])
			} else {
				sub.ldb = sub.n
				roundRows(sub.k, sub.n, g.b[p*g.ldb+j:], g.ldb, r.b[:])
			}
			if p+sub.k == g.k {
				sub.add, sub.relu = g.add, g.relu
				if g.bias != nil {
					sub.bias = g.bias[j:][:sub.n]
				}
			}
			for i := i0; i < i1; i += blockN {
				sub.m, sub.c = min(blockN, i1-i), g.c[i*g.ldc+j:]
				if g.form == tn {
					sub.lda = sub.m
					roundRows(sub.k, sub.m, g.a[p*g.lda+i:], g.lda, r.a[:])
				} else {
					sub.lda = sub.k
					roundRows(sub.m, sub.k, g.a[i*g.lda+p:], g.lda, r.a[:])
				}
				active.gemm(&sub, s, 0, sub.m, 0, sub.n)
			}
		}
	}
}

// roundRows copies the rows of x, n values each, to consecutive memory in y, rounded.
func roundRows(rows, n int, x []float32, ldx int, y []float32) {
	var half [blockN]uint16
	for i := range rows {
		active.toBF16(x[i*ldx:][:n], half[:n])
		active.fromBF16(half[:n], y[i*n:][:n])
	}
}
