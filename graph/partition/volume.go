package partition

// volume makes the volume smaller by moving single nodes, until a pass does not by a thousandth. Of node v that goes
// from part p to q: v is needed in p if a neighbour is there, no longer in q; a neighbour u of another part is no
// longer needed in p if v was its only neighbour there, and is needed in q if it had none.
func (r *refiner) volume() {
	parts := len(r.caps.share)
	has := make([]int32, parts) // neighbours of v that are in the part or needed there
	total := int64(0)
	for v, p := range r.owner {
		part, _ := r.near(int32(v))
		total += int64(len(part))
		for _, q := range part {
			if q == p {
				total--
			}
		}
	}
	for range volumePasses {
		fell := int64(0)
		for v := range int32(r.n()) {
			p := r.owner[v]
			part, _ := r.near(v)
			if len(part) == 0 || len(part) == 1 && part[0] == p {
				continue
			}
			q, delta := r.lighter(v, has)
			if q >= 0 {
				r.move(v, q)
				fell -= int64(delta)
			}
		}
		if total -= fell; fell*1000 <= total {
			return
		}
	}
}

const volumePasses = 10

// lighter returns the part with room to which v's move makes the volume change by the least, and by how much: less
// than 0, or 0 and the cut falls. Otherwise −1.
func (r *refiner) lighter(v int32, has []int32) (to, change int32) {
	p := r.owner[v]
	clear(has)
	freed := int32(0)
	for e := r.ptr[v]; e < r.ptr[v+1]; e++ {
		u, w := r.col[e], r.weight(e)
		part, conn := r.near(u)
		home := r.owner[u]
		has[home]++
		for k, q := range part {
			if q != home {
				has[q]++
				if q == p && conn[k] == w {
					freed++
				}
			}
		}
	}
	part, conn := r.near(v)
	inside := int32(0)
	for k, q := range part {
		if q == p {
			inside = conn[k]
		}
	}
	stay := int32(0)
	if inside > 0 {
		stay = 1
	}
	degree := int32(r.ptr[v+1] - r.ptr[v])
	to, cut := -1, int32(0)
	for k, q := range part {
		if q == p {
			continue
		}
		d := stay - 1 - freed + degree - has[q]
		if (d < change || d == change && conn[k]-inside > cut) && r.fits(v, q) {
			to, change, cut = q, d, conn[k]-inside
		}
	}
	return to, change
}
