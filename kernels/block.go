package kernels

import (
	"sync"
	"unsafe"
)

// Blocks of a GEMM (after Goto and van de Geijn, ACM TOMS 34(3), 2008): a tile's rows of A, blockK columns of them,
// stay in L1, while slivers of B, blockK×tile columns, are read from L2. Between blocks of k, sums are stored in C as
// float32, which is exact. The order of summation is the order of one long loop, or of one loop a slice if k is cut
// into slices.
const (
	blockK  = 384
	blockN  = 512
	tallest = 32 // rows of the tallest tile
	gapK    = 16 // values between packed rows, so that they do not share one cache set
	repay   = 96 // columns of C from which on transposing a sliver of A saves time
)

// scratch is the memory that one worker packs into.
type scratch struct {
	a    [tallest * (blockK + gapK)]float32
	b    [blockK * blockN]float32
	wide [2 * blockN]float64 // sums by column
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// gemmBlocked computes the rectangle [i0,i1)×[j0,j1) of C with the micro-kernel g.tiles.
func gemmBlocked(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	m, n := i1-i0, j1-j0
	if g.form == tn && g.tiles.masks && n <= g.tiles.rows && m > 2*n {
		gemmThin(g, s, i0, i1, j0, j1)
		return
	}
	inPlace, deep := g.placed(m, n)
	for jc := j0; jc < j1; jc += blockN {
		nc := min(blockN, j1-jc)
		for pc := 0; pc < g.k; pc += deep {
			kc := min(deep, g.k-pc)
			if !inPlace {
				s.packB(g, pc, kc, jc, nc)
			}
			s.block(g, i0, m, jc, nc, pc, kc, inPlace)
		}
	}
}

// placed reports whether a rectangle m×n reads B in place, without a copy, and the depth of its blocks of k. To copy B,
// or a transposed A, saves time only if each value is used often. The gradient of weights (Aᵀ·B with tall A and B)
// makes no copies; its blocks are so shallow that their strided reads stay in L1.
func (g *gemm) placed(m, n int) (inPlace bool, deep int) {
	switch {
	case !g.tiles.masks || g.form == nt:
		return false, blockK
	case g.form == nn:
		return m <= 256, blockK
	case g.k <= blockK/2:
		return m < 128 || n < 96, blockK
	case n > 64 && m <= 256:
		return true, 128
	default:
		return true, 48
	}
}

// gemmThin computes Cᵀ = Bᵀ·A if C is too narrow to fill a vector. The rows of Cᵀ use the memory of the packed block of
// B, which is free then.
func gemmThin(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	n := j1 - j0
	c := s.b[:n*blockN]
	for i := i0; i < i1; i += blockN {
		m := min(blockN, i1-i)
		clear(c)
		for q := 0; q < m && g.acc; q++ {
			for j, v := range g.c[(i+q)*g.ldc+j0:][:n] {
				c[j*blockN+q] = v
			}
		}
		t := gemm{form: tn, m: n, n: m, k: g.k, lda: g.ldb, ldb: g.lda, ldc: blockN, acc: true, a: g.b[j0:], b: g.a[i:],
			c: c, tiles: g.tiles}
		const deep = 48 // as in placed
		for p := 0; p < g.k; p += deep {
			s.block(&t, 0, n, 0, m, p, min(deep, g.k-p), true)
		}
		for q := range m {
			row := g.c[(i+q)*g.ldc+j0:][:n]
			for j := range row {
				row[j] = c[j*blockN+q]
			}
		}
	}
}

// block computes the product of k columns of A, from p on, and the packed block of B, or B in place. It adds the
// product to rows [i, i+m) and columns [j, j+n) of C, or overwrites them.
func (s *scratch) block(g *gemm, i, m, j, n, p, k int, inPlace bool) {
	t := g.tiles
	// A is read in place unless its parts would share a few cache sets: rows a power of two apart, or columns. Columns
	// are copied only if they are used more than once.
	packed := m > t.rows && n >= 64 && (g.form == tn && !inPlace || g.form != tn && g.lda%256 == 0)
	turned := t.transpose != nil && !inPlace && (n >= repay || packed) // if a copy is needed, it is transposed
	for end := i + m; i < end; {
		height := t.height(end - i)
		rows := min(height, end-i)
		var a unsafe.Pointer
		var rs, cs int
		switch {
		case turned && g.form != tn:
			a, rs, cs = unsafe.Pointer(&s.a), 1, height
			t.transpose(rows, k, unsafe.Pointer(&g.a[i*g.lda+p]), g.lda, a, height)
		case packed || rows < height: // missing rows must at least be readable
			a, rs, cs = s.packA(g, i, rows, height, p, k)
		case g.form == tn:
			a, rs, cs = unsafe.Pointer(&g.a[p*g.lda+i]), 1, g.lda
		default:
			a, rs, cs = unsafe.Pointer(&g.a[i*g.lda+p]), g.lda, 1
		}
		for jp := 0; jp < n; jp += t.cols {
			b, ldb := unsafe.Pointer(&s.b[jp*k]), panel(t.cols, n-jp)
			if inPlace {
				b, ldb = unsafe.Pointer(&g.b[p*g.ldb+j+jp]), g.ldb
			}
			cols, next := t.cols, t.cols
			if left := n - jp; left <= cols {
				cols, next = left, rows*g.ldc-jp
			}
			t.run(height, rows, cols, k, a, rs, cs, b, ldb, unsafe.Pointer(&g.c[i*g.ldc+j+jp]), g.ldc, next, g.acc ||
				p > 0)
		}
		if p+k == g.k {
			g.finish(i, i+rows, j, j+n)
		}
		i += rows
	}
}

// packA copies k columns of rows [i, i+m) of A with gaps between them; or, for Aᵀ, k rows with the stride height.
func (s *scratch) packA(g *gemm, i, m, height, p, k int) (a unsafe.Pointer, rs, cs int) {
	if g.form == tn {
		if lay := g.tiles.lay; lay != nil {
			lay(k, m, unsafe.Pointer(&g.a[p*g.lda+i]), g.lda, unsafe.Pointer(&s.a), height)
			return unsafe.Pointer(&s.a), 1, height
		}
		for q := range k {
			switch row := g.a[(p+q)*g.lda+i:][:m]; m {
			case 8: // for NEON: a call takes longer than the copy
				*(*[8]float32)(s.a[q*height:]) = *(*[8]float32)(row)
			default:
				copy(s.a[q*height:], row)
			}
		}
		return unsafe.Pointer(&s.a), 1, height
	}
	for r := range m {
		copy(s.a[r*(blockK+gapK):][:k], g.a[(i+r)*g.lda+p:])
	}
	return unsafe.Pointer(&s.a), blockK + gapK, 1
}

// packB copies rows [p, p+k) and columns [j, j+n) of B into panels as wide as a tile; the last one is as narrow as
// possible. Panels follow one another, and rows follow one another within a panel. Surplus columns of a panel are never
// stored in C.
func (s *scratch) packB(g *gemm, p, k, j, n int) {
	cols := g.tiles.cols
	if g.form == nt {
		for c := 0; c < n; c += cols {
			s.packBT(g, s.b[c*k:], min(cols, n-c), panel(cols, n-c), p, k, j+c)
		}
		return
	}
	if lay := g.tiles.lay; lay != nil {
		for c := 0; c < n; c += cols {
			lay(k, min(cols, n-c), unsafe.Pointer(&g.b[p*g.ldb+j+c]), g.ldb, unsafe.Pointer(&s.b[c*k]),
				panel(cols, n-c))
		}
		return
	}
	for q := range k {
		row := g.b[(p+q)*g.ldb+j:][:n]
		for c := 0; len(row) > 0; c += cols {
			switch {
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
	if transpose := g.tiles.transpose; transpose != nil {
		for ; c < n; c += 16 {
			transpose(min(16, n-c), k, unsafe.Pointer(&g.b[(j+c)*g.ldb+p]), g.ldb, unsafe.Pointer(&to[c]), width)
		}
	}
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

// panel returns the width of the panel for the next of n columns: a tile's width, halved as long as the columns fit,
// down to the narrowest tile's 8.
func panel(cols, n int) int {
	for cols > 8 && n <= cols/2 {
		cols /= 2
	}
	return cols
}
