package kernels

import (
	"sync"
	"unsafe"
)

// Blocks of a GEMM (Goto and van de Geijn, ACM TOMS 34(3), 2008): a sliver of B, blockK×tile columns, stays in L1
// while slivers of A, tile rows×blockK, pass by; blocks of A and B stay in L2. Blocks of k leave their sums in C,
// which a float32 survives unchanged: the order of summation is that of one long loop.
const (
	blockK = 256
	blockM = 224 // 16 tiles of 14 rows
	blockN = 512
	gapK   = 16 // between packed rows, so that they do not meet in one cache set
)

// scratch is what one worker packs into.
type scratch struct {
	a    [(blockM + 16) * (blockK + gapK)]float32
	b    [blockK * blockN]float32
	wide [2 * blockN]float64 // sums of columns
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// gemmBlocked computes the rectangle [i0,i1)×[j0,j1) of C with the micro-kernel g.tiles.
func gemmBlocked(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	for jc := j0; jc < j1; jc += blockN {
		nc := min(blockN, j1-jc)
		for pc := 0; pc < g.k; pc += blockK {
			kc := min(blockK, g.k-pc)
			s.packB(g, pc, kc, jc, nc)
			for ic := i0; ic < i1; ic += blockM {
				s.block(g, ic, min(blockM, i1-ic), jc, nc, pc, kc)
			}
		}
	}
}

// block multiplies rows [i, i+m) of A by the packed block of B.
func (s *scratch) block(g *gemm, i, m, j, n, p, k int) {
	t := g.tiles
	// A is read where it lies, unless its parts would meet in a few cache sets: rows a power of two apart, or columns,
	// which then must be used more than once to repay the copy.
	packed := m > t.rows && n >= 64 && (g.form == tn || g.lda%256 == 0)
	if packed {
		s.packA(g, i, m, p, k)
	}
	for jp := 0; jp < n; jp += t.cols {
		cols := min(t.cols, n-jp)
		for ip := 0; ip < m; {
			height := t.height(m - ip)
			rows := min(height, m-ip)
			var a unsafe.Pointer
			rs, cs := blockK+gapK, 1
			if g.form == tn {
				rs, cs = 1, blockM+gapK
			}
			switch {
			case packed:
				a = unsafe.Pointer(&s.a[ip*rs])
			case rows < height: // what lacks must at least be readable
				s.packA(g, i+ip, rows, p, k)
				a = unsafe.Pointer(&s.a[0])
			case g.form == tn:
				a, cs = unsafe.Pointer(&g.a[p*g.lda+i+ip]), g.lda
			default:
				a, rs = unsafe.Pointer(&g.a[(i+ip)*g.lda+p]), g.lda
			}
			t.run(height, rows, cols, k, a, rs, cs, unsafe.Pointer(&s.b[jp*k]),
				unsafe.Pointer(&g.c[(i+ip)*g.ldc+j+jp]), g.ldc, g.acc || p > 0)
			ip += rows
		}
	}
}

// packA copies k columns of rows [i, i+m) of A, or of Aᵀ where A is stored transposed, with gaps between.
func (s *scratch) packA(g *gemm, i, m, p, k int) {
	if g.form == tn {
		for q := range k {
			copy(s.a[q*(blockM+gapK):][:m], g.a[(p+q)*g.lda+i:])
		}
		return
	}
	for r := range m {
		copy(s.a[r*(blockK+gapK):][:k], g.a[(i+r)*g.lda+p:])
	}
}

// packB copies rows [p, p+k) and columns [j, j+n) of B into panels as wide as a tile, the last one no wider
// than need be, panel after panel and within one row after row. What a panel has too much is never stored in C.
func (s *scratch) packB(g *gemm, p, k, j, n int) {
	cols := g.tiles.cols
	if g.form == nt {
		for c := 0; c < n; c += cols {
			s.packBT(g, s.b[c*k:], min(cols, n-c), panel(cols, n-c), p, k, j+c)
		}
		return
	}
	for q := range k {
		row := g.b[(p+q)*g.ldb+j:][:n]
		for c := 0; len(row) > 0; c += cols {
			switch {
			case len(row) >= 32 && cols == 32:
				*(*[32]float32)(s.b[c*k+q*32:]) = *(*[32]float32)(row)
			case len(row) >= 16 && cols == 16:
				*(*[16]float32)(s.b[c*k+q*16:]) = *(*[16]float32)(row)
			case len(row) >= 8 && cols == 8:
				*(*[8]float32)(s.b[c*k+q*8:]) = *(*[8]float32)(row)
			default:
				copy(s.b[c*k+q*panel(cols, len(row)):], row[:min(cols, len(row))])
			}
			row = row[min(cols, len(row)):]
		}
	}
}

// packBT packs one panel of a transposed B, eight of its rows at a time.
func (s *scratch) packBT(g *gemm, to []float32, n, width, p, k, j int) {
	row := func(c int) []float32 { return g.b[(j+c)*g.ldb+p:][:k] }
	c := 0
	for ; c+8 <= n; c += 8 {
		b0, b1, b2, b3, b4, b5, b6, b7 := row(c), row(c+1), row(c+2), row(c+3), row(c+4), row(c+5), row(c+6), row(c+7)
		for q := range k {
			*(*[8]float32)(to[q*width+c:]) = [8]float32{b0[q], b1[q], b2[q], b3[q], b4[q], b5[q], b6[q], b7[q]}
		}
	}
	for ; c < n; c++ {
		for q, v := range row(c) {
			to[q*width+c] = v
		}
	}
}

// panel returns the width of a panel that holds the next of n columns: that of a tile, halved while they fit in, down
// to the 8 of the narrowest tile.
func panel(cols, n int) int {
	for cols > 8 && n <= cols/2 {
		cols /= 2
	}
	return cols
}
