package partition

// volume reduces the volume: it moves each node at most once, to the part with the least volume. A second pass was
// tried: it takes as long and improves next to nothing. If node v moves from part p to q, v is needed in p if a
// neighbour is there, and no longer in q. A neighbour u in another part is no longer needed in p if v was its only
// neighbour there, and is needed in q if it had none.
func (r *refiner) volume() {
	has := make([]int32, len(r.caps.share)) // number of v's neighbours that are in the part or needed there
	for v := range int32(r.n()) {
		inside, other := int32(0), int32(0)
		part, conn := r.near(v)
		for k, q := range part {
			if q == r.owner[v] {
				inside = conn[k]
			} else {
				other = max(other, conn[k])
			}
		}
		if other == 0 || inside > 2*other { // the neighbours left behind would outweigh any gain
			continue
		}
		if q := r.lighter(v, has); q >= 0 {
			r.move(v, q)
		}
	}
}

// lighter returns the part with space for v whose move reduces the volume most, or keeps it and reduces the cut (−1 =
// none).
func (r *refiner) lighter(v int32, has []int32) (to int32) {
	p := r.owner[v]
	clear(has)
	freed, all := int32(0), int32(0)
	for e := r.ptr[v]; e < r.ptr[v+1]; e++ {
		u, w := r.col[e], r.weight(e)
		part, conn := r.near(u)
		home, size := r.owner[u], r.nodes(u)
		all += size
		has[home] += size
		for k, q := range part {
			if q != home {
				has[q] += size
				if q == p && conn[k] == w {
					freed += size
				}
			}
		}
	}
	part, conn := r.near(v)
	inside, stay := int32(0), -r.nodes(v)
	for k, q := range part {
		if q == p {
			inside, stay = conn[k], 0
		}
	}
	to, change, cut := int32(-1), int32(0), int32(0)
	for k, q := range part {
		if q == p {
			continue
		}
		d := stay - freed + all - has[q]
		if (d < change || d == change && conn[k]-inside > cut) && r.fits(v, q) {
			to, change, cut = q, d, conn[k]-inside
		}
	}
	return to
}
