package kernels

import "unsafe"

//go:noescape
func logits16NEON(q []float32, slope float32, own, top *headLanes)

//go:noescape
func weights16NEON(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes)

//go:noescape
func logitGrads16NEON(n int, slopes, keep, dots, base, out *float32, sum *headLanes)

//go:noescape
func dotsNEON(rows int, rowPtr, col, dots unsafe.Pointer, step int, x unsafe.Pointer, ldx int, z unsafe.Pointer,
	ldz, heads, dim int)

func logitsNEON(q []float32, slope float32, own, top *headLanes) {
	n := len(q) &^ 15
	logits16NEON(q[:n], slope, own, top)
	logitsGeneric(q[n:], slope, own, top)
}

func weightsNEON(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes) {
	many := n &^ 15
	weights16NEON(many, q, shift, step, keep, w, slopes, slope, sum)
	if many == n {
		return
	}
	if step != 0 {
		shift = on(shift, many)
	}
	weightsGeneric(n-many, on(q, many), shift, step, on(keep, many), on(w, many), on(slopes, many), slope, sum)
}

func logitGradsNEON(n int, slopes, keep, dots, base, out *float32, sum *headLanes) {
	many := n &^ 15
	logitGrads16NEON(many, slopes, keep, dots, base, out, sum)
	if many < n {
		logitGradsGeneric(n-many, on(slopes, many), on(keep, many), on(dots, many), on(base, many), on(out, many), sum)
	}
}

// on returns a pointer to the value `by` values after p, or nil if p is nil.
func on(p *float32, by int) *float32 {
	if p == nil {
		return nil
	}
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*by))
}

func attendDotsNEON(g *attentionGroup, r *room, lo, rows, e, n int) {
	if g.heads < g.pad {
		clear(r.dots[:n*g.pad])
	}
	dotsNEON(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.dots), 4*g.pad,
		unsafe.Pointer(&g.x[g.h0*g.Dim]), g.ldx, unsafe.Pointer(&g.z[lo*g.ldz+g.h0*g.Dim]), g.ldz, g.heads, g.Dim)
	attendNEON(g, r, lo, rows, e, n)
}

func dropEdgesNEON(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	for k, key := range keys {
		maskNEON(uint32(key)+p.add[0], uint32(key>>32), limit, up, keep[k*p.pad:(k+1)*p.pad])
	}
}

// attendNEON computes one head after another with the kernels of SpMM.
func attendNEON(g *attentionGroup, r *room, lo, rows, e, n int) {
	for h := range g.heads {
		for j := h * g.Dim; j < (h+1)*g.Dim; {
			at, left := lo*g.ldy+g.h0*g.Dim+j, (h+1)*g.Dim-j
			f, cols := spmm1NEON, 1
			switch {
			case left >= 64:
				f, cols = spmm64NEON, 64
			case left >= 16:
				f, cols = spmm16NEON, 16
			case left >= 4:
				f, cols = spmm4NEON, 4
			case left >= 2:
				f, cols = spmm2NEON, 2
			}
			f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(&r.w[h]), 4*g.pad,
				unsafe.Pointer(&g.x[g.h0*g.Dim+j]), g.ldx, unsafe.Pointer(&g.y[at]), g.ldy, cols, 0, r.acc)
			j += cols
		}
	}
}
