package partition

// refiner moves nodes between parts, within their caps.
type refiner struct {
	*ledger
	// The parts that v has edges to, and the edges' weights: [start[v], start[v]+count[v]).
	start []int64
	count []int32
	part  []int32
	conn  []int32
	queue heap
}

// newRefiner returns a refiner with the edges of every node counted by part.
func newRefiner(b *ledger) *refiner {
	n, parts := b.n(), int64(len(b.caps.share))
	r := &refiner{ledger: b, start: make([]int64, n+1), count: make([]int32, n)}
	for v := range n {
		r.start[v+1] = r.start[v] + min(b.ptr[v+1]-b.ptr[v], parts)
	}
	r.part, r.conn = make([]int32, r.start[n]), make([]int32, r.start[n])
	place := make([]int64, parts) // index of each part among the current node's, plus 1
	for v := range n {
		lo := r.start[v]
		end := lo
		for e := b.ptr[v]; e < b.ptr[v+1]; e++ {
			p := b.owner[b.col[e]]
			if k := place[p]; k > lo {
				r.conn[k-1] += b.weight(e)
				continue
			}
			r.part[end], r.conn[end] = p, b.weight(e)
			end++
			place[p] = end
		}
		r.count[v] = int32(end - lo)
	}
	return r
}

// near returns the parts that v has edges to, and the edges' weights.
func (r *refiner) near(v int32) (part, conn []int32) {
	lo, hi := r.start[v], r.start[v]+int64(r.count[v])
	return r.part[lo:hi], r.conn[lo:hi]
}

// connect adds w to the weight of v's edges to part p.
func (r *refiner) connect(v, p, w int32) {
	part, conn := r.near(v)
	for k, q := range part {
		if q == p {
			if conn[k] += w; conn[k] == 0 {
				last := len(part) - 1
				part[k], conn[k] = part[last], conn[last]
				r.count[v]--
			}
			return
		}
	}
	at := r.start[v] + int64(r.count[v])
	r.part[at], r.conn[at] = p, w
	r.count[v]++
}

// move moves v to part q.
func (r *refiner) move(v, q int32) {
	p := r.owner[v]
	r.add(r.caps.of(v), p, -1)
	r.add(r.caps.of(v), q, 1)
	r.owner[v] = q
	for e := r.ptr[v]; e < r.ptr[v+1]; e++ {
		w := r.weight(e)
		r.connect(r.col[e], p, -w)
		r.connect(r.col[e], q, w)
	}
}

// best returns the part with space to which the move of v has the greatest gain, the emptier of equals, and how much
// the cut falls (−1 = none).
func (r *refiner) best(v int32) (to int32, gain int32) {
	part, conn := r.near(v)
	p, own := r.owner[v], int32(0)
	to = -1
	for k, q := range part {
		if q == p {
			own = conn[k]
		} else if (to < 0 || conn[k] > gain || conn[k] == gain && r.room(r.caps.of(v), q) < r.room(r.caps.of(v), to)) &&
			r.fits(v, q) {
			to, gain = q, conn[k]
		}
	}
	return to, gain - own
}

// most returns the gain of v's best move if every part had space, and whether v has a neighbour in another part.
func (r *refiner) most(v int32) (gain int32, border bool) {
	part, conn := r.near(v)
	p, own, other := r.owner[v], int32(0), int32(0)
	for k, q := range part {
		if q == p {
			own = conn[k]
		} else {
			other = max(other, conn[k])
		}
	}
	return other - own, other > 0
}

const patience = 50 // moves after the best state to try at least; among n nodes n/patience

// refine reduces the cut until a round reduces it by less than a two-hundredth.
func (r *refiner) refine(e effort) {
	cut := r.cut()
	for range e.rounds {
		gain := r.greedy()
		if e.search {
			gain += r.search()
		}
		if cut -= gain; gain*200 <= cut {
			return
		}
	}
}

// cut returns the weight of the edges between parts.
func (r *refiner) cut() (cut int64) {
	for v, p := range r.owner {
		part, conn := r.near(int32(v))
		for k, q := range part {
			if q != p {
				cut += int64(conn[k])
			}
		}
	}
	return cut / 2
}

// greedy moves each node once to its best part, and returns how much the cut fell.
func (r *refiner) greedy() (fell int64) {
	for v := range int32(r.n()) {
		if most, border := r.most(v); !border || most < 0 {
			continue
		}
		if q, gain := r.best(v); q >= 0 &&
			(gain > 0 || gain == 0 && r.room(r.caps.of(v), q) < r.room(nil, r.owner[v])) {
			r.move(v, q)
			fell += int64(gain)
		}
	}
	return fell
}

// search moves the node with the best gain, each node once, until many moves bring nothing. It undoes moves after the
// best state and returns how much the cut fell (Fiduccia and Mattheyses).
func (r *refiner) search() (fell int64) {
	n := int32(r.n())
	r.queue.reset(int(n))
	for v := range n {
		if gain, border := r.most(v); border {
			r.queue.put(v, gain)
		}
	}
	type step struct{ v, from int32 }
	var path []step
	done := make([]bool, n)
	now, at := int64(0), 0
	for r.queue.len() > 0 && len(path)-at < max(patience, int(n)/patience) {
		v, key := r.queue.pop()
		q, gain := r.best(v)
		if q < 0 {
			continue
		}
		if gain < key && r.queue.len() > 0 && gain < r.queue.top() { // v's best part is full: other nodes come first
			r.queue.put(v, gain)
			continue
		}
		path = append(path, step{v, r.owner[v]})
		done[v] = true
		r.move(v, q)
		if now += int64(gain); now > fell {
			fell, at = now, len(path)
		}
		for e := r.ptr[v]; e < r.ptr[v+1]; e++ {
			if u := r.col[e]; !done[u] {
				if most, border := r.most(u); border {
					r.queue.put(u, most)
				} else {
					r.queue.drop(u)
				}
			}
		}
	}
	for len(path) > at {
		last := path[len(path)-1]
		path = path[:len(path)-1]
		r.move(last.v, last.from)
	}
	return fell
}
