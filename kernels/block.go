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
	wide [blockN]float64 // sums of columns
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// gemmBlocked computes the rectangle [i0,i1)×[j0,j1) of C with the micro-kernel g.tiles.
func gemmBlocked(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	if g.k == 0 {
		gemmGeneric(g, s, i0, i1, j0, j1)
		return
	}
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
	// A lies in place where its rows do: tiles read it along k. Rows a power of two apart would all meet in the same
	// few cache sets, and columns are never read in place.
	packed := g.form == tn || n >= 64 && g.lda%256 == 0 && m > t.rows
	a, rs, cs := unsafe.Pointer(&s.a[0]), blockK+gapK, 1
	switch {
	case g.form == tn:
		rs, cs = 1, blockM+gapK
		for q := range k {
			copy(s.a[q*cs:][:m], g.a[(p+q)*g.lda+i:])
		}
	case packed:
		s.packRows(g, i, m, p, k)
	default:
		a, rs = unsafe.Pointer(&g.a[i*g.lda+p]), g.lda
	}
	for jp := 0; jp < n; jp += t.cols {
		cols := min(t.cols, n-jp)
		b := unsafe.Pointer(&s.b[jp*k])
		for ip := 0; ip < m; {
			height := t.height(m - ip)
			rows := min(height, m-ip)
			at, rs, cs := unsafe.Add(a, 4*ip*rs), rs, cs
			if rows < height && !packed { // the rows that lack must at least be readable
				s.packRows(g, i+ip, rows, p, k)
				at, rs = unsafe.Pointer(&s.a[0]), blockK+gapK
			}
			t.run(height, rows, cols, k, at, rs, cs, b, unsafe.Pointer(&g.c[(i+ip)*g.ldc+j+jp]), g.ldc, g.acc || p > 0)
			ip += rows
		}
	}
}

// packRows copies k columns of rows [i, i+m) of A into rows blockK+gapK apart.
func (s *scratch) packRows(g *gemm, i, m, p, k int) {
	for r := range m {
		copy(s.a[r*(blockK+gapK):][:k], g.a[(i+r)*g.lda+p:])
	}
}

// packB copies rows [p, p+k) and columns [j, j+n) of B into panels as wide as a tile, the last one filled up with
// zeros to a whole or half tile, panel after panel and within one row after row.
func (s *scratch) packB(g *gemm, p, k, j, n int) {
	cols := g.tiles.cols
	if g.form == nt {
		for c := range n {
			width := panel(cols, n-c/cols*cols)
			to := s.b[c/cols*cols*k+c%cols:]
			for q, v := range g.b[(j+c)*g.ldb+p:][:k] {
				to[q*width] = v
			}
		}
	} else {
		for q := range k {
			row := g.b[(p+q)*g.ldb+j:][:n]
			to := s.b[q*cols:]
			for len(row) >= cols {
				if cols == 32 {
					*(*[32]float32)(to) = *(*[32]float32)(row)
				} else {
					*(*[16]float32)(to) = *(*[16]float32)(row)
				}
				row = row[cols:]
				if len(row) > 0 {
					to = to[cols*k:]
				}
			}
			if len(row) > 0 {
				copy(s.b[(n-len(row))*k+q*panel(cols, len(row)):], row)
			}
		}
	}
	if rest := n % cols; rest > 0 {
		width := panel(cols, rest)
		last := s.b[(n-rest)*k:]
		for q := range k {
			clear(last[q*width+rest : (q+1)*width])
		}
	}
}

// panel returns the width of a panel that holds the next of n columns.
func panel(cols, n int) int {
	if n <= cols/2 {
		return cols / 2
	}
	return cols
}
