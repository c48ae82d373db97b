package kernels

import "unsafe"

// pickGeneric copies the first pad values of row col[k] of table to place k of q.
func pickGeneric(q, table []float32, ld, pad int, col []int32) {
	switch pad {
	case 1:
		for k, j := range col {
			q[k] = table[int(j)*ld]
		}
	case 2:
		for k, j := range col {
			*(*[2]float32)(q[2*k:]) = *(*[2]float32)(table[int(j)*ld:])
		}
	default:
		for k, j := range col {
			copy(q[k*pad:(k+1)*pad], table[int(j)*ld:])
		}
	}
}

// dropGeneric writes the dropout of the edges that have the keys, for all heads of a group.
func dropGeneric(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	for k, key := range keys {
		maskGeneric(uint32(key)+p.add[0], uint32(key>>32), limit, up, keep[k*p.pad:(k+1)*p.pad])
	}
}

// logitsGeneric makes LeakyReLU(q + own) of q and raises top to it, lane by lane; NaN is never the
// greatest.
func logitsGeneric(q []float32, slope float32, own, top *headLanes) {
	for c, v := range q {
		v += own[c%16]
		if v < 0 {
			v *= slope
		}
		q[c] = v
		if v > top[c%16] {
			top[c%16] = v
		}
	}
}

// weightsGeneric computes for n logits q, with p = exp(q − shift) and s the slope of LeakyReLU
// there, w0 = p·keep and w1 = s·w0, and adds p and s·p·factor to sums, lane by lane. shift and
// factor have n values where step is 64, and 16 that repeat where it is 0. keep may be nil: ones.
func weightsGeneric(n int, q, shift, factor *float32, step int, keep, w0, w1 *float32, slope float32, sums *[2]headLanes) {
	own := 16
	if step != 0 {
		own = n
	}
	shifts, factors := unsafe.Slice(shift, own), unsafe.Slice(factor, own)
	for c, v := range unsafe.Slice(q, n) {
		at := c % own
		p := exp(v - shifts[at])
		s := float32(1)
		if v < 0 {
			s = slope
		}
		w := p
		if keep != nil {
			w *= unsafe.Slice(keep, n)[c]
		}
		unsafe.Slice(w0, n)[c], unsafe.Slice(w1, n)[c] = w, w*s
		sums[0][c%16] += p
		sums[1][c%16] += float32(float32(p*s) * factors[at])
	}
}

// attendGeneric adds to rows of Y, from lo on, Σ w[0]·x over the n edges of a round, which are from
// e on, and Σ w[1]·x to the rows of its slope.
func attendGeneric(g *attentionGroup, r *room, lo, rows, e, n int) {
	col := g.col[e : e+n]
	for row := range rows {
		y, slope := g.sums(r, lo, row)
		for k := r.rowPtr[row]; k < r.rowPtr[row+1]; k++ {
			x := g.x[int(col[k])*g.ldx+g.h0*g.Dim:][:g.width]
			for h := range g.heads {
				lo, hi := h*g.Dim, (h+1)*g.Dim
				axpyGeneric(r.w[0][int(k)*g.pad+h], x[lo:hi], y[lo:hi])
				if slope != nil {
					axpyGeneric(r.w[1][int(k)*g.pad+h], x[lo:hi], slope[lo:hi])
				}
			}
		}
	}
}

// sums returns the group's columns of row lo+row of Y, and of its slope, or nil where that is not
// computed.
func (g *attentionGroup) sums(r *room, lo, row int) (y, slope []float32) {
	at := (lo+row)*g.ldy + g.h0*g.Dim
	y = g.y[at:][:g.width]
	switch {
	case g.backward:
		slope = r.slope[row*g.width:][:g.width]
	case g.slanted:
		slope = g.ySlope[at:][:g.width]
	}
	return y, slope
}

// dotShort is Σ x·y of the few columns of a head.
func dotShort(x, y []float32) float32 {
	if len(x) >= 32 {
		return active.dot(x, y)
	}
	return dotGeneric(x, y)
}
