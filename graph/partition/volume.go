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
		for _, q := range part {
			if q != p {
				total += int64(r.nodes(int32(v)))
			}
		}
	}
	still := make([]bool, r.n()) // nothing next to the node has moved since it was looked at
	for range volumePasses {
		fell := int64(0)
		for v := range int32(r.n()) {
			p := r.owner[v]
			part, _ := r.near(v)
			if still[v] || len(part) == 0 || len(part) == 1 && part[0] == p {
				continue
			}
			still[v] = true
			q, delta := r.lighter(v, has)
			if q < 0 {
				continue
			}
			r.move(v, q)
			fell -= int64(delta)
			for _, u := range r.col[r.ptr[v]:r.ptr[v+1]] {
				still[u] = false
			}
		}
		if total -= fell; fell*1000 <= total {
			return
		}
	}
}

const volumePasses = 5

// lighter returns the part with room to which v's move makes the volume change by the least, and by how much: less
// than 0, or 0 and the cut falls. Otherwise −1.
func (r *refiner) lighter(v int32, has []int32) (to, change int32) {
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
	to, cut := int32(-1), int32(0)
	for k, q := range part {
		if q == p {
			continue
		}
		d := stay - freed + all - has[q]
		if (d < change || d == change && conn[k]-inside > cut) && r.fits(v, q) {
			to, change, cut = q, d, conn[k]-inside
		}
	}
	return to, change
}
