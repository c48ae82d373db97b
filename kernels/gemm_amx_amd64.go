package kernels

import "unsafe"

const (
	sideAMX  = 32 // rows and columns of C in four tiles
	cellsAMX = 16 // pairs in a row of a tile
)

// tileShape has the number of rows of each tile and the bytes of a row.
type tileShape struct {
	palette uint8
	_       [15]uint8
	bytes   [16]uint16
	rows    [16]uint8
}

func (s *tileShape) set(tile, rows, cols int) {
	if rows > 0 && cols > 0 {
		s.rows[tile], s.bytes[tile] = uint8(rows), uint16(4*cols)
	}
}

//go:noescape
func tileAMX(shape *tileShape, rows, cols, k int, a unsafe.Pointer, lda int, b unsafe.Pointer, ldb int,
	c unsafe.Pointer, ldc int, acc bool)

//go:noescape
func roundAMX(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)

//go:noescape
func pairAMX(rows, n int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int)

// gemmAMX is gemmBlocked with A and B rounded to bfloat16. It packs pairs of values that are adjacent in k; each pair
// has the size of a float32. A row of pairs is padded with zeros.
func gemmAMX(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	const deep = 2 * blockK
	for j := j0; j < j1; j += blockN {
		n := min(blockN, j1-j)
		for p := 0; p < g.k; p += deep {
			k := min(deep, g.k-p)
			s.packPairsB(g, p, k, j, n)
			s.blockAMX(g, i0, i1, j, n, p, k)
		}
	}
}

// pairsAMX returns how many pairs a row of k values is packed into: the number that fills whole tiles.
func pairsAMX(k int) int { return (k + 2*cellsAMX - 1) / (2 * cellsAMX) * cellsAMX }

// blockAMX computes the product of k columns of A, from p on, and the packed block of B. It adds the product to rows
// [i0,i1) and columns [j, j+n) of C, or overwrites them.
func (s *scratch) blockAMX(g *gemm, i0, i1, j, n, p, k int) {
	pairs := pairsAMX(k)
	for i := i0; i < i1; i += sideAMX {
		rows := min(sideAMX, i1-i)
		s.packPairsA(g, i, rows, p, k)
		for at, cols := 0, 0; at < n; at += cols {
			cols = n - at
			if cols > sideAMX { // full tiles side by side
				cols = cols / sideAMX * sideAMX
			}
			shape := tileShape{palette: 1}
			for t := range 2 {
				for u := range 2 {
					shape.set(2*t+u, min(16, rows-16*t), min(16, cols-16*u)) // C
				}
				shape.set(4+t, min(16, rows-16*t), cellsAMX) // A
				shape.set(6+t, cellsAMX, min(16, cols-16*t)) // B
			}
			tileAMX(&shape, rows, cols, pairs, unsafe.Pointer(&s.a), blockK+gapK, unsafe.Pointer(&s.b[at*pairs]),
				panelAMX(cols), unsafe.Pointer(&g.c[i*g.ldc+j+at]), g.ldc, g.acc || p > 0)
		}
		if p+k == g.k {
			g.finish(i, i+rows, j, j+n)
		}
	}
}

// panelAMX returns the width of the panel of B for the next of n columns.
func panelAMX(n int) int {
	if n <= sideAMX/2 {
		return sideAMX / 2
	}
	return sideAMX
}

// packPairsA packs k columns, from p on, of m rows of A, from i on.
func (s *scratch) packPairsA(g *gemm, i, m, p, k int) {
	const ld = blockK + gapK
	if g.form != tn {
		roundAMX(m, k, unsafe.Pointer(&g.a[i*g.lda+p]), g.lda, unsafe.Pointer(&s.a), ld)
		return
	}
	var some [cellsAMX * sideAMX]float32 // rows of pairs, which become columns
	for q := 0; q < k; q += 2 * cellsAMX {
		rows := min(2*cellsAMX, k-q)
		pairAMX(rows, m, unsafe.Pointer(&g.a[(p+q)*g.lda+i]), g.lda, unsafe.Pointer(&some), sideAMX)
		transposeAVX512((rows+1)/2, m, unsafe.Pointer(&some), sideAMX, unsafe.Pointer(&s.a[q/2]), ld)
	}
	for r := range m {
		clear(s.a[r*ld+(k+1)/2 : r*ld+pairsAMX(k)])
	}
}

// packPairsB packs rows [p, p+k) and columns [j, j+n) of B into panels.
func (s *scratch) packPairsB(g *gemm, p, k, j, n int) {
	pairs := pairsAMX(k)
	for c := 0; c < n; c += sideAMX {
		to, cols, width := s.b[c*pairs:], min(sideAMX, n-c), panelAMX(n-c)
		if g.form != nt {
			pairAMX(k, cols, unsafe.Pointer(&g.b[p*g.ldb+j+c]), g.ldb, unsafe.Pointer(&to[0]), width)
			clear(to[(k+1)/2*width : pairs*width])
			continue
		}
		var some [cellsAMX * cellsAMX]float32
		for r := 0; r < cols; r += cellsAMX {
			for q := 0; q < k; q += 2 * cellsAMX {
				rows, place := min(cellsAMX, cols-r), unsafe.Pointer(&to[q/2*width+r])
				roundAMX(rows, min(2*cellsAMX, k-q), unsafe.Pointer(&g.b[(j+c+r)*g.ldb+p+q]), g.ldb,
					unsafe.Pointer(&some), cellsAMX)
				transposeAVX512(rows, cellsAMX, unsafe.Pointer(&some), cellsAMX, place, width)
			}
		}
	}
}
