package kernels

import "unsafe"

// gemmQuads computes the rectangle [i0,i1)×[j0,j1) of C by BFMMLA, which adds to 2×2 values of C the products of two rows
// of A and two columns of B, four values of k each. Both are packed in quads, four values that follow in k, those of
// eight rows or columns after each other; quads that are not full end in zeros.
func gemmQuads(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	const deep = 2 * blockK // two values fill a float32 of scratch
	a, b := Halves(s.a[:]), Halves(s.b[:])
	for jc := j0; jc < j1; jc += blockN {
		nc := min(blockN, j1-jc)
		for pc := 0; pc < g.k; pc += deep {
			kc := min(deep, g.k-pc)
			quads := (kc + 3) / 4
			for j := 0; j < nc; j += 8 {
				packQuads(b[4*j*quads:], g.b16, g.ldb, g.form == nt, jc+j, min(8, nc-j), pc, kc)
			}
			for i := i0; i < i1; i += 8 {
				rows := min(8, i1-i)
				packQuads(a, g.a16, g.lda, g.form != tn, i, rows, pc, kc)
				for j := 0; j < nc; j += 8 {
					tileQuads(rows, min(8, nc-j), quads, a, b[4*j*quads:], g.c[i*g.ldc+jc+j:], g.ldc, g.acc || pc > 0)
				}
				if pc+kc == g.k {
					g.finish(i, i+rows, jc, jc+nc)
				}
			}
		}
	}
}

// packQuads packs values [p, p+k) of n lines of x from line first on. Lines are rows of x where they lie along k, and
// columns otherwise. Of fewer than eight lines, the others stay as they are: what comes of them is not stored.
func packQuads(to, x []uint16, ldx int, along bool, first, n, p, k int) {
	done := 0
	next, apart := ldx, 1 // from a value to that of the next k; from a line to the next
	if along {
		next, apart = 1, ldx
	}
	x = x[first*apart+p*next:]
	if whole := k / 4; n == 8 && whole > 0 {
		if along {
			quadsAlong(whole, unsafe.Pointer(&x[0]), ldx, unsafe.Pointer(&to[0]))
		} else {
			quadsDown(whole, unsafe.Pointer(&x[0]), ldx, unsafe.Pointer(&to[0]))
		}
		done = 4 * whole
	}
	for q := done; q < k; q += 4 {
		quads := to[8*q:][:32]
		for r := range n {
			quad := quads[4*r:][:4]
			clear(quad)
			for i := range min(4, k-q) {
				quad[i] = x[r*apart+(q+i)*next]
			}
		}
	}
}

func tileQuads(rows, cols, quads int, a, b []uint16, c []float32, ldc int, acc bool) {
	if rows == 8 && cols == 8 {
		bfmmla8x8(quads, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0]), ldc, acc)
		return
	}
	var e edge
	if acc {
		e.get(rows, cols, c, ldc)
	}
	bfmmla8x8(quads, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&e), 8, acc)
	e.put(rows, cols, c, ldc)
}

//go:noescape
func bfmmla8x8(quads int, a, b, c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func quadsAlong(quads int, x unsafe.Pointer, ldx int, to unsafe.Pointer)

//go:noescape
func quadsDown(quads int, x unsafe.Pointer, ldx int, to unsafe.Pointer)
