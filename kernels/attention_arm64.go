package kernels

import "unsafe"

//go:noescape
func logits16NEON(q []float32, slope float32, own, top *headLanes)

//go:noescape
func weights16NEON(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes)

func logitsNEON(q []float32, slope float32, own, top *headLanes) {
	n := len(q) &^ 15
	logits16NEON(q[:n], slope, own, top)
	logitsGeneric(q[n:], slope, own, top)
}

func weightsNEON(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes) {
	many := n &^ 15
	weights16NEON(many, q, shift, factor, step, keep, w0, w1, slope, sums)
	if many == n {
		return
	}
	on := func(p *float32, by int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(p), by)) }
	if step != 0 {
		shift, factor = on(shift, 4*many), on(factor, 4*many)
	}
	if keep != nil {
		keep = on(keep, 4*many)
	}
	weightsGeneric(n-many, on(q, 4*many), shift, factor, step, keep, on(w0, 4*many), on(w1, 4*many), slope, sums)
}

func dropEdgesNEON(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	for k, key := range keys {
		maskNEON(uint32(key)+p.add[0], uint32(key>>32), limit, up, keep[k*p.pad:(k+1)*p.pad])
	}
}

// attendNEON takes one head after another, by the kernels of SpMM.
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
			sum := func(w *float32, y *float32, ldy int) {
				f(rows, unsafe.Pointer(&r.rowPtr), unsafe.Pointer(&g.col[e]), unsafe.Pointer(w), 4*g.pad,
					unsafe.Pointer(&g.x[g.h0*g.Dim+j]), g.ldx, unsafe.Pointer(y), ldy, cols, 0, true)
			}
			sum(&r.w[0][h], &g.y[at], g.ldy)
			switch {
			case g.backward:
				sum(&r.w[1][h], &r.slope[j], g.width)
			case g.slanted:
				sum(&r.w[1][h], &g.ySlope[at], g.ldy)
			}
			j += cols
		}
	}
}
