package kernels

import "unsafe"

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
func logitsAVX512(q []float32, slope float32, own, top *headLanes)

//go:noescape
func logitsAVX2(q []float32, slope float32, own, top *headLanes)

//go:noescape
func weightsAVX2(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)

//go:noescape
func weightsAVX512(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)

// Masks of edges: bytes is how far 16 values reach in the keys.

//go:noescape
func dropEdgesAVX512(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)

//go:noescape
func dropEdgesAVX2(keys []uint64, bytes int, p *dropPattern, limit uint32, up float32, keep []float32)

func dropAVX512(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	if p.pad == 1 {
		dropGeneric(keys, p, limit, up, keep)
	} else {
		dropEdgesAVX512(keys, 128/p.pad, p, limit, up, keep)
	}
}

func dropAVX2(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	if p.pad == 1 {
		dropGeneric(keys, p, limit, up, keep)
	} else {
		dropEdgesAVX2(keys, 128/p.pad, p, limit, up, keep)
	}
}

// Sums over edges: to cols columns of the rows of Y that the row pointers are of, Σ w0·x, and to those of its slope
// Σ w1·x. Weights go on by step bytes an edge and head says which of them is a column's; the rows of X for the first far
// edges are fetched 16 edges ahead.

//go:noescape
func attend128AVX512(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)

//go:noescape
func attend64AVX512(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)

//go:noescape
func attend32AVX2(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)

//go:noescape
func attend8AVX2(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)

type attendAsm func(rows int, rowPtr, col, w0, w1 unsafe.Pointer, step int, x unsafe.Pointer, ldx int, y unsafe.Pointer, ldy int, slope unsafe.Pointer, lds int, head unsafe.Pointer, cols, far int)

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
		if left := g.width - j; left >= 32 {
			j = g.columns(attend32AVX2, r, lo, rows, e, n, j, 32)
		} else {
			j = g.columns(attend8AVX2, r, lo, rows, e, n, j, min(left, 8))
		}
	}
}

// columns computes columns [j, j+cols) of the group for rows from lo on and n edges from e on, and returns j+cols.
func (g *attentionGroup) columns(f attendAsm, r *room, lo, rows, e, n, j, cols int) int {
	const ahead, cached = 16, 1 << 20 // edges; bytes of X that L2 has room for
	if r.headDim != g.Dim || r.headFrom != j {
		r.headDim, r.headFrom = g.Dim, j
		for c := range r.head {
			r.head[c] = int32((j + c) / g.Dim)
		}
	}
	far := 0
	if 4*len(g.x) > cached {
		far = max(0, min(n, len(g.col)-e-ahead))
	}
	at := lo*g.ldy + g.h0*g.Dim + j
	slope, lds := unsafe.Pointer(&r.unwanted), 0
	switch {
	case g.backward:
		slope, lds = unsafe.Pointer(&r.slope[j]), g.width
	case g.slanted:
		slope, lds = unsafe.Pointer(&g.ySlope[at]), g.ldy
	}
	f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.w[0]), unsafe.Pointer(&r.w[1]), 4*g.pad,
		unsafe.Pointer(&g.x[g.h0*g.Dim+j]), g.ldx, unsafe.Pointer(&g.y[at]), g.ldy, slope, lds, unsafe.Pointer(&r.head), cols, far)
	return j + cols
}
