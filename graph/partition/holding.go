package partition

import (
	"fmt"
	"math"
)

// holding is the parts' weights, with their limits.
type holding struct {
	*limits
	used []int64 // [K×D]
}

// holding returns the weights of the parts with these owners; a node with an owner below 0 is in no part.
func (l *limits) holding(of Source, owner []int32) (*holding, error) {
	h, w := &holding{l, make([]int64, len(l.most))}, make([]int64, len(l.bounds))
	if len(w) == 0 {
		return h, nil
	}
	return h, of.Runs(false, func(r *Run) error {
		for i := range r.N() {
			if p := owner[int(r.First)+i]; p >= 0 {
				l.weigh(w, r, i)
				h.add(w, p, 1)
			}
		}
		return nil
	})
}

// add counts a node with weights w in part p, sign times.
func (h *holding) add(w []int64, p int32, sign int64) {
	u := h.used[int(p)*len(w):][:len(w)]
	for d, x := range w {
		u[d] += sign * x
	}
}

// fits reports whether part p has space for w.
func (h *holding) fits(w []int64, p int32) bool {
	u, m := h.used[int(p)*len(w):][:len(w)], h.most[int(p)*len(w):][:len(w)]
	for d, x := range w {
		if u[d]+x > m[d] {
			return false
		}
	}
	return true
}

// keeps reports whether part p is within its limits.
func (h *holding) keeps(p int32) bool {
	dims := len(h.bounds)
	u, m := h.used[int(p)*dims:][:dims], h.most[int(p)*dims:][:dims]
	for d, x := range u {
		if x > m[d] {
			return false
		}
	}
	return true
}

// over reports whether part p exceeds a limit of a weight that w has.
func (h *holding) over(w []int64, p int32) bool {
	u, m := h.used[int(p)*len(w):][:len(w)], h.most[int(p)*len(w):][:len(w)]
	for d, x := range w {
		if u[d] > m[d] && x > 0 {
			return true
		}
	}
	return false
}

// room returns the share of its limit that part p would use with w (nil = that it uses), for the scarcest weight.
func (h *holding) room(w []int64, p int32) (most float64) {
	dims := len(h.bounds)
	for d := range dims {
		u := h.used[int(p)*dims+d]
		if w != nil {
			u += w[d]
		}
		most = max(most, float64(u)/float64(max(h.most[int(p)*dims+d], 1)))
	}
	return most
}

// check returns an error that names the first part that exceeds its limits, or nil.
func (h *holding) check() error {
	dims := len(h.bounds)
	for k, u := range h.used {
		if b := h.bounds[k%dims]; u > h.most[k] {
			return fmt.Errorf("part %d would hold %d %s, of at most %d: raise the bound on %s from %v, "+
				"or take fewer parts or another policy", k/dims, u, b.unit, h.most[k], b.name, b.most)
		}
	}
	return nil
}

// repair moves nodes out of parts that exceed their limits, first those that lose the fewest neighbours. They go to
// parts with space, then to parts in which they reduce the total excess. If that fails, it packs anew: heavy nodes
// first, each in its old part or else (second try) in the part with most space. This is bin packing, so an error only
// means that no solution was found.
func (h *holding) repair(of Source, owner []int32) error {
	for _, swap := range []bool{false, true} {
		for range max(len(h.share), swaps) {
			moved := 0
			for _, bar := range []float64{0, 0.25, 1} {
				if h.check() == nil {
					return nil
				}
				n, err := h.spill(of, owner, bar, swap)
				if err != nil {
					return err
				}
				moved += n
			}
			if moved == 0 {
				break
			}
		}
	}
	if h.check() == nil {
		return nil
	}
	for _, stay := range []bool{true, false} {
		if err := h.pack(of, owner, stay); err != nil {
			return err
		}
		if h.check() == nil {
			return nil
		}
	}
	return fmt.Errorf("%w (no way was found to fit)", h.check())
}

// swaps is how often repair passes over the nodes to reduce the excess, at most.
const swaps = 20

// relief returns how much the excess of parts p and q falls if weights w move from p to q, in shares of their limits.
// So a part with too many nodes can give light ones to a part with too many edges, which gives it hubs.
func (h *holding) relief(w []int64, p, q int32) (fell float64) {
	excess := func(part int32, d int, more int64) float64 {
		k := int(part)*len(w) + d
		most := h.most[k] - h.most[k]/256 // below the limit: else the last few nodes have no space
		return float64(max(h.used[k]+more-most, 0)) / float64(max(most, 1))
	}
	for d, x := range w {
		fell += excess(p, d, 0) - excess(p, d, -x) + excess(q, d, 0) - excess(q, d, x)
	}
	return fell
}

// spill moves nodes from parts that exceed their limits to the part with space that has most of their neighbours. With
// swap, the excess must also fall. A node moves only if it loses at most the share bar of its neighbours. spill returns
// how many nodes moved.
func (h *holding) spill(of Source, owner []int32, bar float64, swap bool) (moved int, err error) {
	w, near := make([]int64, len(h.bounds)), make([]int32, len(h.share))
	err = of.Runs(true, func(r *Run) error {
		for i := range r.N() {
			v := int(r.First) + i
			p := owner[v]
			if h.weigh(w, r, i); !h.over(w, p) {
				continue
			}
			clear(near)
			for _, u := range r.Sources(i) {
				near[owner[u]]++
			}
			best, room := int32(-1), 0.0
			for q := range int32(len(near)) {
				if q == p || !h.fits(w, q) && !(swap && h.relief(w, p, q) > 0) {
					continue
				}
				if x := h.room(w, q); best < 0 || near[q] > near[best] || near[q] == near[best] && x < room {
					best, room = q, x
				}
			}
			if best >= 0 && float64(near[p]-near[best]) <= bar*float64(r.Edges(i)) {
				h.add(w, p, -1)
				h.add(w, best, 1)
				owner[v] = best
				moved++
			}
		}
		return nil
	})
	return moved, err
}

const classes = 64 // classes of weight, a quarter of an octave each, by the largest share of a part that a node takes

// class returns the class of a node, heavy ones first. It uses exponents and halves of the mantissa, which are exact: a
// logarithm is rounded differently by different machines, and could put a node near a class's bound elsewhere.
func (h *holding) class(w []int64) int {
	size := 0.0
	for k, m := range h.most {
		size = max(size, float64(w[k%len(w)])/float64(max(m, 1)))
	}
	if size <= 0 {
		return classes - 1
	}
	frac, exp := math.Frexp(size) // frac in [1/2, 1)
	return min(max(-4*exp+4-int(frac*8-4)-1, 0), classes-1)
}

// pack assigns all nodes anew, class after class.
func (h *holding) pack(of Source, owner []int32, stay bool) error {
	clear(h.used)
	w := make([]int64, len(h.bounds))
	for c := range classes {
		err := of.Runs(false, func(r *Run) error {
			for i := range r.N() {
				h.weigh(w, r, i)
				if h.class(w) != c {
					continue
				}
				p := owner[int(r.First)+i]
				if !stay || !h.fits(w, p) {
					p = 0
					for q := range int32(len(h.share)) {
						if h.room(w, q) < h.room(w, p) {
							p = q
						}
					}
				}
				owner[int(r.First)+i] = p
				h.add(w, p, 1)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
