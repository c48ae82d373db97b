package kernels

import "unsafe"

// GemmNNBF16 is GemmNNBiasBF16 without a bias.
func GemmNNBF16(m, n, k int, a []uint16, lda int, b []uint16, ldb int, c []float32, ldc int, acc bool) {
	GemmNNBiasBF16(m, n, k, a, lda, b, ldb, c, ldc, acc, nil)
}

// GemmNNBiasBF16 is GemmNNBias with A and B in bfloat16. Products and sums are float32; where the processor multiplies pairs of
// bfloat16 (avx512bf16, amx, neonbf16), denormal numbers count as zeros, and amx sums 16 pairs before it adds them to C.
func GemmNNBiasBF16(m, n, k int, a []uint16, lda int, b []uint16, ldb int, c []float32, ldc int, acc bool, bias []float32) {
	checkMatrix("A of GemmNNBF16", m, k, lda, a)
	checkMatrix("B of GemmNNBF16", k, n, ldb, b)
	if bias != nil {
		checkLength("bias of GemmNNBiasBF16", len(bias), n)
	}
	gemms(gemm{form: nn, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a16: a, b16: b, half: true, c: c, bias: bias, add: active.add, tiles: &active.tiles16})
}

// GemmTNBF16 is GemmTN with A and B in bfloat16, as GemmNNBF16 is GemmNN.
func GemmTNBF16(m, n, k int, a []uint16, lda int, b []uint16, ldb int, c []float32, ldc int, acc bool) {
	checkMatrix("A of GemmTNBF16", k, m, lda, a)
	checkMatrix("B of GemmTNBF16", k, n, ldb, b)
	gemms(gemm{form: tn, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a16: a, b16: b, half: true, c: c, tiles: &active.tiles16})
}

// GemmNTBF16 is GemmNT with A and B in bfloat16, as GemmNNBF16 is GemmNN.
func GemmNTBF16(m, n, k int, a []uint16, lda int, b []uint16, ldb int, c []float32, ldc int, acc bool) {
	checkMatrix("A of GemmNTBF16", m, k, lda, a)
	checkMatrix("B of GemmNTBF16", n, k, ldb, b)
	gemms(gemm{form: nt, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, acc: acc, a16: a, b16: b, half: true, c: c, tiles: &active.tiles16})
}

// gemmBlocked16 is gemmBlocked where A and B are bfloat16. What is packed has cells of four bytes: a value widened to
// float32, or, for tiles that multiply pairs, two values that follow each other in k.
func gemmBlocked16(g *gemm, s *scratch, i0, i1, j0, j1 int) {
	deep := blockK * g.tiles.cell
	for jc := j0; jc < j1; jc += blockN {
		nc := min(blockN, j1-jc)
		for pc := 0; pc < g.k; pc += deep {
			kc := min(deep, g.k-pc)
			s.packB16(g, pc, kc, jc, nc)
			s.block16(g, i0, i1-i0, jc, nc, pc, kc)
		}
	}
}

// cells returns how many cells of k values a tile takes; what is packed ends in zeros.
func (t *tiles) cells(k int) int {
	return ((k+t.cell-1)/t.cell + t.whole - 1) / t.whole * t.whole
}

// block16 multiplies rows [i, i+m) of A by the packed block of B.
func (s *scratch) block16(g *gemm, i, m, j, n, p, k int) {
	t := g.tiles
	cells := t.cells(k)
	// Pairs of a row are read where they lie, where they begin at whole cells and the last one is full.
	inPlace := t.cell == 2 && g.form != tn && g.lda%2 == 0 && k == 2*cells && (g.lda%512 != 0 || n < 64)
	for end := i + m; i < end; {
		height := t.height(end - i)
		rows := min(height, end-i)
		var a unsafe.Pointer
		var rs, cs int
		if inPlace && rows == height {
			a, rs, cs = unsafe.Pointer(&g.a16[i*g.lda+p]), g.lda/2, 1
		} else {
			a, rs, cs = s.packA16(g, i, rows, height, p, k)
		}
		for jp, cols := 0, 0; jp < n; jp += cols {
			cols = min(t.cols, n-jp)
			if t.strips {
				cols = max(cols, (n-jp)/t.cols*t.cols)
			}
			t.run(height, rows, cols, cells, a, rs, cs, unsafe.Pointer(&s.b[jp*cells]), panel16(t, n-jp),
				unsafe.Pointer(&g.c[i*g.ldc+j+jp]), g.ldc, cols, g.acc || p > 0)
		}
		if p+k == g.k {
			g.finish(i, i+rows, j, j+n)
		}
		i += rows
	}
}

// packA16 packs k columns of rows [i, i+m) of A as packA does.
func (s *scratch) packA16(g *gemm, i, m, height, p, k int) (a unsafe.Pointer, rs, cs int) {
	const ld = blockK + gapK
	t, cells := g.tiles, g.tiles.cells(k)
	a = unsafe.Pointer(&s.a)
	if g.form == tn && t.whole == 1 {
		if t.cell == 2 {
			t.pairs(k, m, unsafe.Pointer(&g.a16[p*g.lda+i]), g.lda, a, height)
			return a, 1, height
		}
		for q := range k {
			t.widen(g.a16[(p+q)*g.lda+i:][:m], s.a[q*height:])
		}
		return a, 1, height
	}
	if g.form == tn { // rows of pairs, sixteen at a time, become columns
		var pairs [16 * tallest]float32
		for q := 0; q < k; q += 32 {
			rows := min(32, k-q)
			t.pairs(rows, m, unsafe.Pointer(&g.a16[(p+q)*g.lda+i]), g.lda, unsafe.Pointer(&pairs), tallest)
			t.transpose((rows+1)/2, m, unsafe.Pointer(&pairs), tallest, unsafe.Pointer(&s.a[q/2]), ld)
		}
		for r := range m {
			clear(s.a[r*ld+(k+1)/2 : r*ld+cells])
		}
		return a, ld, 1
	}
	for r := range m {
		row, to := g.a16[(i+r)*g.lda+p:][:k], s.a[r*ld:][:cells]
		if t.cell == 1 {
			t.widen(row, to)
			continue
		}
		pairs := Halves(to)
		clear(pairs[copy(pairs, row):])
	}
	return a, ld, 1
}

// packB16 packs rows [p, p+k) and columns [j, j+n) of B as packB does.
func (s *scratch) packB16(g *gemm, p, k, j, n int) {
	cols, step, cells := g.tiles.cols, g.tiles.cell, g.tiles.cells(k)
	for c := 0; c < n; c += cols {
		to, width, panel := s.b[c*cells:], min(cols, n-c), panel16(g.tiles, n-c)
		clear(to[(k+step-1)/step*panel : cells*panel])
		if g.form == nt {
			for r := range width {
				packRow16(g.b16[(j+c+r)*g.ldb+p:][:k], to[r:], panel, step)
			}
			continue
		}
		if step == 2 {
			g.tiles.pairs(k, width, unsafe.Pointer(&g.b16[p*g.ldb+j+c]), g.ldb, unsafe.Pointer(&to[0]), panel)
			continue
		}
		for q := range k {
			g.tiles.widen(g.b16[(p+q)*g.ldb+j+c:][:width], to[q*panel:])
		}
	}
}

// panel16 is panel; tiles of pairs are 16 wide at least.
func panel16(t *tiles, n int) int {
	p := panel(t.cols, n)
	if t.cell == 2 {
		return max(p, 16)
	}
	return p
}

// packRow16 writes a row of a transposed B, cell by cell, to every width-th place.
func packRow16(x []uint16, to []float32, width, step int) {
	if step == 1 {
		for q, v := range x {
			to[q*width] = wide(v)
		}
		return
	}
	cells := words(to)
	for q := 0; q+1 < len(x); q += 2 {
		cells[q/2*width] = uint32(x[q]) | uint32(x[q+1])<<16
	}
	if q := len(x) - 1; q%2 == 0 {
		cells[q/2*width] = uint32(x[q])
	}
}

// halves and words view memory that is only ever copied through: the bits of pairs are no float32.

// Halves returns the memory of x as twice as many values of bfloat16.
func Halves(x []float32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

func words(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
