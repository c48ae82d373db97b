package kernels

import (
	"slices"
	"unsafe"
)

//go:noescape
func gather8AVX(q []float32, table []float32, ld int, col []int32)

//go:noescape
func gather4AVX(q []float32, table []float32, ld int, col []int32)

func pickAVX(q, table []float32, ld, pad int, col []int32) {
	switch pad {
	case 8:
		gather8AVX(q, table, ld, col)
	case 4:
		gather4AVX(q, table, ld, col)
	default:
		pickGeneric(q, table, ld, pad, col)
	}
}

//go:noescape
func scatter8AVX(q []float32, table []float32, ld int, col []int32, lo, hi int)

//go:noescape
func scatter4AVX(q []float32, table []float32, ld int, col []int32, lo, hi int)

func addPickedAVX(q, table []float32, ld, pad int, col []int32, lo, hi int) {
	switch pad {
	case 8:
		scatter8AVX(q, table, ld, col, lo, hi)
	case 4:
		scatter4AVX(q, table, ld, col, lo, hi)
	default:
		addPickedGeneric(q, table, ld, pad, col, lo, hi)
	}
}

//go:noescape
func logitsAVX512(q []float32, slope float32, own, top *headLanes)

//go:noescape
func logitsAVX2(q []float32, slope float32, own, top *headLanes)

//go:noescape
func weightsAVX2(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)

//go:noescape
func logitGradsAVX2(n int, slopes, keep, dots, base, out *float32, sum *headLanes)

//go:noescape
func weightsAVX512(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)

//go:noescape
func logitGradsAVX512(n int, slopes, keep, dots, base, out *float32, sum *headLanes)

// Masks of edges; bytes is how many bytes of keys 16 values read.

//go:noescape
func dropEdgesAVX512(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)

//go:noescape
func dropEdgesAVX2(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)

func dropAVX512(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	dropEdgesAVX512(keys, 128/p.pad, p, limit, up, keep)
}

func dropAVX2(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	if p.pad == 1 {
		dropGeneric(keys, p, limit, up, keep)
	} else {
		dropEdgesAVX2(keys, 128/p.pad, p, limit, up, keep)
	}
}

// Weighted sums over edges, Σ w·x, for cols columns of the rows of Y that rowPtr describes. w advances by step bytes an
// edge, and head has the index of each column's weight. For the first `far` edges, rows of X are prefetched 16 edges
// ahead.

//go:noescape
func attend128AVX512(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy int, head unsafe.Pointer, cols, far int, acc bool)

//go:noescape
func attend64AVX512(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy int, head unsafe.Pointer, cols, far int, acc bool)

//go:noescape
func attend48AVX2(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy int, head unsafe.Pointer, cols, far int, acc bool)

//go:noescape
func attend8AVX2(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy int, head unsafe.Pointer, cols, far int, acc bool)

type attendAsm func(rows int, rowPtr, col, w unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer,
	ldy int, head unsafe.Pointer, cols, far int, acc bool)

func attendAVX512(g *attentionGroup, r *room, lo, rows, e, n int) {
	for j := 0; j < g.width; {
		if left := g.width - j; left >= 128 {
			j = g.columns(attend128AVX512, r, lo, rows, e, n, j, 128)
		} else {
			j = g.columns(attend64AVX512, r, lo, rows, e, n, j, min(left, 64))
		}
	}
}

func attendAVX2(g *attentionGroup, r *room, lo, rows, e, n int) {
	for j := 0; j < g.width; {
		if left := g.width - j; left >= 48 {
			j = g.columns(attend48AVX2, r, lo, rows, e, n, j, 48)
		} else {
			j = g.columns(attend8AVX2, r, lo, rows, e, n, j, min(left, 8))
		}
	}
}

// columns computes columns [j, j+cols) of the group, for rows from lo on and n edges from e on, and returns j+cols.
func (g *attentionGroup) columns(f attendAsm, r *room, lo, rows, e, n, j, cols int) int {
	const vectors = 128 // the most values of head that f reads
	if r.headDim != g.Dim || len(r.head) < j+vectors {
		r.headDim, r.head = g.Dim, slices.Grow(r.head[:0], g.width+vectors)
		for c := range g.width + vectors {
			r.head = append(r.head, int32(c/g.Dim))
		}
	}
	far := 0
	if !g.backward { // in the backward pass attendDots has just read the rows
		far = g.ahead(e, n)
	}
	at := lo*g.ldy + g.h0*g.Dim + j
	f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.w), 4*g.pad,
		unsafe.Pointer(&g.x[g.h0*g.Dim+j]), g.ldx, unsafe.Pointer(&g.y[at]), g.ldy, unsafe.Pointer(&r.head[j]), cols,
		far, r.acc)
	return j + cols
}

// ahead returns for how many of n edges from e on rows of X are prefetched: none if X fits in L2.
func (g *attentionGroup) ahead(e, n int) int {
	const ahead, cached = 16, 1 << 20 // edges; bytes
	if 4*len(g.x) <= cached {
		return 0
	}
	return max(0, min(n, len(g.col)-e-ahead))
}

// Products by heads: each edge writes, step bytes apart, Σ x·z for each head of dim columns, for up to eight or four
// heads.

//go:noescape
func headDots8AVX512(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim, far int)

//go:noescape
func headDots4AVX512(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim, far int)

//go:noescape
func headDots8AVX2(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim, far int)

//go:noescape
func headDots4AVX2(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim, far int)

type headDotsAsm func(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim, far int)

// Both in one kernel, for strips of whole heads with a fixed number of vectors a head.

//go:noescape
func attendDots8x2AVX512(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots8x1AVX512(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots4x4AVX512(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots4x1AVX512(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots2x4AVX2(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots4x2AVX2(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

//go:noescape
func attendDots4x1AVX2(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

type attendDotsAsm func(rows int, rowPtr, col, w, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int,
	z unsafe.Pointer, ldz int, y unsafe.Pointer, ldy, heads, dim, far int, acc bool)

func attendDotsAVX512(g *attentionGroup, r *room, lo, rows, e, n int) {
	switch vectors := (g.Dim + 15) / 16; {
	case vectors == 1 && g.pad <= 4:
		g.both(attendDots4x1AVX512, 4, r, lo, rows, e, n)
	case vectors == 1:
		g.both(attendDots8x1AVX512, 8, r, lo, rows, e, n)
	case vectors == 2:
		g.both(attendDots8x2AVX512, 8, r, lo, rows, e, n)
	case vectors == 4:
		g.both(attendDots4x4AVX512, 4, r, lo, rows, e, n)
	default:
		g.products(headDots8AVX512, headDots4AVX512, r, lo, rows, e, n)
		attendAVX512(g, r, lo, rows, e, n)
	}
}

func attendDotsAVX2(g *attentionGroup, r *room, lo, rows, e, n int) {
	switch vectors := (g.Dim + 7) / 8; vectors {
	case 1:
		g.both(attendDots4x1AVX2, 4, r, lo, rows, e, n)
	case 2:
		g.both(attendDots4x2AVX2, 4, r, lo, rows, e, n)
	case 4:
		g.both(attendDots2x4AVX2, 2, r, lo, rows, e, n)
	default:
		g.products(headDots8AVX2, headDots4AVX2, r, lo, rows, e, n)
		attendAVX2(g, r, lo, rows, e, n)
	}
}

// both computes the heads in strips of `strip` heads.
func (g *attentionGroup) both(f attendDotsAsm, strip int, r *room, lo, rows, e, n int) {
	if g.heads < g.pad {
		clear(r.dots[:n*g.pad])
	}
	far := g.ahead(e, n) // f prefetches whole rows
	for h := 0; h < g.heads; h += strip {
		at := (g.h0 + h) * g.Dim
		f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.w[h]),
			unsafe.Pointer(&r.dots[h]), 4*g.pad, unsafe.Pointer(&g.x[at]), g.ldx, unsafe.Pointer(&g.z[lo*g.ldz+at]),
			g.ldz, unsafe.Pointer(&g.y[lo*g.ldy+at]), g.ldy, min(strip, g.heads-h), g.Dim, far, r.acc)
		far = 0
	}
}

func (g *attentionGroup) products(eight, four headDotsAsm, r *room, lo, rows, e, n int) {
	f := four
	if g.pad > 4 {
		f = eight
	}
	f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.dots), 4*g.pad,
		unsafe.Pointer(&g.x[g.h0*g.Dim]), g.ldx, unsafe.Pointer(&g.z[lo*g.ldz+g.h0*g.Dim]), g.ldz, g.heads, g.Dim,
		g.ahead(e, n))
}
