package partition

import (
	"cmp"
	"slices"
)

// ledger is an assignment of a level's nodes within caps.
type ledger struct {
	*level
	holding
	caps  *caps // caps of the level: weight is [n×D]
	owner []int32
}

// newLedger returns the ledger of an assignment, with the parts' weights counted.
func newLedger(l *level, c *caps, owner []int32) *ledger {
	b := &ledger{l, holding{&c.limits, make([]int64, len(c.most))}, c, owner}
	b.count()
	return b
}

// count recomputes the parts' weights. A node with an owner below 0 is in no part.
func (b *ledger) count() {
	clear(b.used)
	for v, p := range b.owner {
		if p >= 0 {
			b.add(b.caps.of(int32(v)), p, 1)
		}
	}
}

// fits reports whether part p has space for node v.
func (b *ledger) fits(v, p int32) bool { return b.holding.fits(b.caps.of(v), p) }

// spill moves nodes from parts that exceed their caps to parts with space, first those that lose the fewest neighbours.
func (b *ledger) spill() {
	if b.excess() == 0 {
		return
	}
	near := make([]int64, len(b.share))
	for range near { // moves can only free space, so once a part is enough
		type candidate struct {
			v    int32
			loss int64
		}
		var list []candidate
		for v, p := range b.owner {
			if b.over(b.caps.of(int32(v)), p) {
				if q := b.nearest(int32(v), near); q >= 0 {
					list = append(list, candidate{int32(v), near[p] - near[q]})
				}
			}
		}
		if len(list) == 0 {
			break
		}
		slices.SortFunc(list,
			func(x, y candidate) int { return cmp.Or(cmp.Compare(x.loss, y.loss), cmp.Compare(x.v, y.v)) })
		for _, c := range list {
			if w, p := b.caps.of(c.v), b.owner[c.v]; b.over(w, p) {
				if q := b.nearest(c.v, near); q >= 0 {
					b.add(w, p, -1)
					b.add(w, q, 1)
					b.owner[c.v] = q
				}
			}
		}
	}
}

// nearest returns the part, except v's own, with space for v and the most of its neighbours, or −1. near becomes the
// weight of v's edges to each part.
func (b *ledger) nearest(v int32, near []int64) int32 {
	clear(near)
	for e := b.ptr[v]; e < b.ptr[v+1]; e++ {
		near[b.owner[b.col[e]]] += int64(b.weight(e))
	}
	best, room := int32(-1), 0.0
	for q := range int32(len(near)) {
		if q == b.owner[v] || !b.fits(v, q) {
			continue
		}
		if r := b.room(b.caps.of(v), q); best < 0 || near[q] > near[best] || near[q] == near[best] && r < room {
			best, room = q, r
		}
	}
	return best
}
