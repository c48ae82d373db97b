package partition

import (
	"cmp"
	"fmt"
	"slices"
)

// repair moves nodes out of parts that hold more than they may, those first that lose the fewest neighbours. Where that
// does not do, it packs anew: heavy nodes first, each where it was, or else (second try) where there is most room. To
// fit or not is bin packing, so that an error says only that no way was found.
func (b *ledger) repair() error {
	if b.spill() {
		return nil
	}
	was := slices.Clone(b.owner)
	for _, stay := range []bool{true, false} {
		if b.pack(was, stay) {
			return nil
		}
	}
	return fmt.Errorf("partition: found no way to fit: %w", b.caps.check(b.owner))
}

// ledger is an assignment of a level's nodes within caps.
type ledger struct {
	*level
	caps  *caps // of the level: weight is [n×D]
	owner []int32
	used  []int64 // [K×D]
}

func newLedger(l *level, c *caps, owner []int32) *ledger {
	return &ledger{level: l, caps: c, owner: owner, used: c.used(owner)}
}

// fits reports whether part p has room for node v.
func (b *ledger) fits(v, p int32) bool {
	dims := len(b.caps.bounds)
	w, u, m := b.caps.weight[int(v)*dims:][:dims], b.used[int(p)*dims:][:dims], b.caps.most[int(p)*dims:][:dims]
	for d := range dims {
		if u[d]+w[d] > m[d] {
			return false
		}
	}
	return true
}

// add counts node v in part p, sign times.
func (b *ledger) add(v, p int32, sign int64) {
	dims := len(b.caps.bounds)
	w, u := b.caps.weight[int(v)*dims:][:dims], b.used[int(p)*dims:][:dims]
	for d := range dims {
		u[d] += sign * w[d]
	}
}

// over reports whether part p holds too much of something that node v has.
func (b *ledger) over(v, p int32) bool {
	dims := len(b.caps.bounds)
	for d := range dims {
		if at := int(p)*dims + d; b.used[at] > b.caps.most[at] && b.caps.weight[int(v)*dims+d] > 0 {
			return true
		}
	}
	return false
}

// room returns the share of what part p may hold that it would hold with node v, of the scarcest weight.
func (b *ledger) room(v, p int32) float64 {
	dims, most := len(b.caps.bounds), 0.0
	for d := range dims {
		at := int(p)*dims + d
		most = max(most, float64(b.used[at]+b.caps.weight[int(v)*dims+d])/float64(max(b.caps.most[at], 1)))
	}
	return most
}

// spill moves nodes from parts that are too full to parts where they fit, and reports whether all parts are within
// their caps then.
func (b *ledger) spill() bool {
	if len(b.caps.bounds) == 0 {
		return true
	}
	near := make([]int64, len(b.caps.share))
	for range len(near) { // what is moved can only free room: once a part at most
		type candidate struct {
			v    int32
			loss int64
		}
		var list []candidate
		for v, p := range b.owner {
			if b.over(int32(v), p) {
				if q := b.nearest(int32(v), near); q >= 0 {
					list = append(list, candidate{int32(v), near[p] - near[q]})
				}
			}
		}
		if len(list) == 0 {
			break
		}
		slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.loss, y.loss) })
		for _, c := range list {
			if p := b.owner[c.v]; b.over(c.v, p) {
				if q := b.nearest(c.v, near); q >= 0 {
					b.add(c.v, p, -1)
					b.add(c.v, q, 1)
					b.owner[c.v] = q
				}
			}
		}
	}
	for k, u := range b.used {
		if u > b.caps.most[k] {
			return false
		}
	}
	return true
}

// nearest returns the part, not v's own, with room for v and the most of its neighbours, or −1; near is then the
// weight of v's edges to each part.
func (b *ledger) nearest(v int32, near []int64) int32 {
	clear(near)
	b.each(v, func(u int32, w int32) { near[b.owner[u]] += int64(w) })
	best, room := int32(-1), 0.0
	for q := range int32(len(near)) {
		if q == b.owner[v] || !b.fits(v, q) {
			continue
		}
		if r := b.room(v, q); best < 0 || near[q] > near[best] || near[q] == near[best] && r < room {
			best, room = q, r
		}
	}
	return best
}

// pack assigns all nodes anew, those first that take the largest share of a part.
func (b *ledger) pack(was []int32, stay bool) bool {
	parts, dims := int32(len(b.caps.share)), len(b.caps.bounds)
	order, size := make([]int32, len(was)), make([]float64, len(was))
	for v := range order {
		order[v] = int32(v)
		for d := range dims {
			for p := range int(parts) {
				size[v] = max(size[v], float64(b.caps.weight[v*dims+d])/float64(max(b.caps.most[p*dims+d], 1)))
			}
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(size[y], size[x]) })
	clear(b.used)
	for _, v := range order {
		p := was[v]
		if !stay || !b.fits(v, p) {
			p = 0
			for q := range parts {
				if b.room(v, q) < b.room(v, p) {
					p = q
				}
			}
		}
		b.owner[v] = p
		b.add(v, p, 1)
	}
	for k, u := range b.used {
		if u > b.caps.most[k] {
			return false
		}
	}
	return true
}
