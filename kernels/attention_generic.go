package kernels

import "unsafe"

// pickGeneric gathers: it copies the first pad values of row col[k] of table to q[k·pad:].
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

// dropGeneric writes the dropout factors of the edges with the given keys, for all heads of a group.
func dropGeneric(keys []uint64, p *dropPattern, limit uint32, up float32, keep []float32) {
	for k, key := range keys {
		maskGeneric(uint32(key)+p.add[0], uint32(key>>32), limit, up, keep[k*p.pad:(k+1)*p.pad])
	}
}

// logitsGeneric replaces q by LeakyReLU(q + own) and raises top to the maximum, lane by lane, ignoring NaN.
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

// weightsGeneric computes, for n logits q, w = p·keep and slopes = s·p, and adds p to sum, lane by lane. Here p = exp(q
// − shift), and s is LeakyReLU's slope. shift has n values if step is 64, and 16 repeated values if step is 0. If keep
// is nil, it is all ones.
func weightsGeneric(n int, q, shift *float32, step int, keep, w, slopes *float32, slope float32, sum *headLanes) {
	own := 16
	if step != 0 {
		own = n
	}
	shifts := unsafe.Slice(shift, own)
	for c, v := range unsafe.Slice(q, n) {
		p := exp(v - shifts[c%own])
		s := float32(1)
		if v < 0 {
			s = slope
		}
		sum[c%16] += p
		unsafe.Slice(slopes, n)[c] = p * s
		if keep != nil {
			p *= unsafe.Slice(keep, n)[c]
		}
		unsafe.Slice(w, n)[c] = p
	}
}

// attendGeneric adds Σ w·x over the n edges of a round, from e on, to rows of Y from lo on. Unless r.acc is set, it
// overwrites the rows that have edges.
func attendGeneric(g *attentionGroup, r *room, lo, rows, e, n int) {
	col := g.col[e : e+n]
	for row := range rows {
		y := g.y[(lo+row)*g.ldy+g.h0*g.Dim:][:g.width]
		for k := r.rowPtr[row]; k < r.rowPtr[row+1]; k++ {
			if k == r.rowPtr[row] && !r.acc {
				clear(y)
			}
			x := g.x[int(col[k])*g.ldx+g.h0*g.Dim:][:g.width]
			for h := range g.heads {
				lo, hi := h*g.Dim, (h+1)*g.Dim
				axpyGeneric(r.w[int(k)*g.pad+h], x[lo:hi], y[lo:hi])
			}
		}
	}
}

// attendDotsGeneric is attendGeneric that also writes Σ x·z over each head's columns to r.dots, for the edges of a
// round. z is the edge's row of g.z.
func attendDotsGeneric(g *attentionGroup, r *room, lo, rows, e, n int) {
	col := g.col[e : e+n]
	for row := range rows {
		z := g.z[(lo+row)*g.ldz+g.h0*g.Dim:][:g.width]
		for k := r.rowPtr[row]; k < r.rowPtr[row+1]; k++ {
			x := g.x[int(col[k])*g.ldx+g.h0*g.Dim:][:g.width]
			dots := r.dots[int(k)*g.pad:][:g.pad]
			clear(dots)
			for h := range g.heads {
				lo, hi := h*g.Dim, (h+1)*g.Dim
				dots[h] = dotGeneric(x[lo:hi], z[lo:hi])
			}
		}
	}
	attendGeneric(g, r, lo, rows, e, n)
}

// logitGradsGeneric writes out = slopes·(dots·keep − base) for n values, and adds it to sum, lane by lane. If keep is
// nil, it is all ones.
func logitGradsGeneric(n int, slopes, keep, dots, base, out *float32, sum *headLanes) {
	bases, to := unsafe.Slice(base, n), unsafe.Slice(out, n)
	for c, d := range unsafe.Slice(dots, n) {
		if keep != nil {
			d = float32(d * unsafe.Slice(keep, n)[c])
		}
		d = float32(unsafe.Slice(slopes, n)[c] * (d - bases[c]))
		to[c] = d
		sum[c%16] += d
	}
}

// addPickedGeneric scatters: it adds q[k·pad:] to the first pad values of row col[k] of table, if that row is in [lo,
// hi).
func addPickedGeneric(q, table []float32, ld, pad int, col []int32, lo, hi int) {
	for k, j := range col {
		if int(j) < lo || int(j) >= hi {
			continue
		}
		to := table[int(j)*ld:][:pad]
		for h, v := range q[k*pad : (k+1)*pad] {
			to[h] += v
		}
	}
}
