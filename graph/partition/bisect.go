package partition

import (
	"math"
	"math/bits"

	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// bisect returns a partition of l by recursive bisection. One side grows from a random node by the best gain (Karypis
// and Kumar, SISC 1998, greedy graph growing), then both are refined. It may break caps if l's nodes are heavy.
func bisect(l *level, c *caps, e effort, key rng.Key) []int32 {
	owner := make([]int32, l.n())
	var split func(nodes []int32, lo, hi int, key rng.Key)
	split = func(nodes []int32, lo, hi int, key rng.Key) {
		if hi-lo == 1 || len(nodes) == 0 {
			for _, v := range nodes {
				owner[v] = int32(lo)
			}
			return
		}
		mid := (lo + hi) / 2
		side := halve(l.induced(nodes), c.halves(nodes, lo, mid, hi).loosened(), e, key)
		var sides [2][]int32
		for k, v := range nodes {
			sides[side[k]] = append(sides[side[k]], v)
		}
		split(sides[0], lo, mid, key.Fold(0))
		split(sides[1], mid, hi, key.Fold(1))
	}
	split(mat.EveryRow(l.n()), 0, len(c.share), key)
	return owner
}

// induced returns the graph of those nodes, ascending, with the edges between them.
func (l *level) induced(nodes []int32) *level {
	to := make([]int32, l.n())
	for k, v := range nodes {
		to[v] = int32(k) + 1
	}
	out := &level{ptr: make([]int64, len(nodes)+1)}
	for k, v := range nodes {
		for e := l.ptr[v]; e < l.ptr[v+1]; e++ {
			if u := to[l.col[e]]; u > 0 {
				out.col, out.edge = append(out.col, u-1), append(out.edge, l.weight(e))
			}
		}
		out.ptr[k+1] = int64(len(out.col))
	}
	return out
}

// halves returns the caps of parts [lo, mid) and of parts [mid, hi), for those nodes. The slack is spread over the
// bisections to come.
func (c *caps) halves(nodes []int32, lo, mid, hi int) *caps {
	dims := len(c.bounds)
	out := &caps{limits{bounds: c.bounds, most: make([]int64, 2*dims), share: make([]float64, 2)},
		make([]int64, 0, len(nodes)*dims)}
	total := make([]int64, dims)
	for _, v := range nodes {
		for d := range dims {
			w := c.weight[int(v)*dims+d]
			out.weight = append(out.weight, w)
			total[d] += w
		}
	}
	for p := lo; p < hi; p++ {
		s := 0
		if p >= mid {
			s = 1
		}
		out.share[s] += c.share[p]
		for d := range dims {
			out.most[s*dims+d] += c.most[p*dims+d]
		}
	}
	whole, levels := out.share[0]+out.share[1], bits.Len(uint(hi-lo-1))
	for d := range dims {
		slack := float64(out.most[d]+out.most[dims+d]) / float64(max(total[d], 1))
		for s := range 2 {
			fair := float64(total[d]) * out.share[s] / whole
			out.most[s*dims+d] = min(out.most[s*dims+d],
				int64(math.Ceil(fair*max(math.Pow(slack, 1/float64(levels)), 1))))
		}
	}
	out.share[0], out.share[1] = out.share[0]/whole, out.share[1]/whole
	return out
}

// halve returns the best of several bisections: the least excess over the caps, then the least cut.
func halve(l *level, c *caps, e effort, key rng.Key) (best []int32) {
	h := newHalves(l, c)
	var bestOver, bestCut int64
	for try := range uint64(e.tries) {
		h.grow(key.Fold(2 + try))
		if h.excess() > 0 {
			h.spill()
			h.weigh()
		}
		h.refine(e.rounds)
		if over := h.excess(); best == nil || over < bestOver || over == bestOver && h.cut < bestCut {
			best, bestOver, bestCut = append(best[:0], h.owner...), over, h.cut
		}
	}
	return best
}

// excess returns how much the parts exceed their bounds.
func (b *ledger) excess() (sum int64) {
	for k, u := range b.used {
		sum += max(u-b.caps.most[k], 0)
	}
	return sum
}

// halves is a ledger of two parts, in which a node has one gain.
type halves struct {
	*ledger
	degree []int32 // [n] weight of a node's edges
	gain   []int32 // [n] how much the cut falls if the node moves
	cut    int64
	queue  heap
	done   []bool
	path   []int32 // moved nodes, for undo
}

// newHalves returns a ledger with all nodes of l in part 0.
func newHalves(l *level, c *caps) *halves {
	n := l.n()
	h := &halves{ledger: newLedger(l, c, make([]int32, n)), degree: make([]int32, n), gain: make([]int32, n),
		done: make([]bool, n)}
	for v := range h.degree {
		for e := l.ptr[v]; e < l.ptr[v+1]; e++ {
			h.degree[v] += l.weight(e)
		}
	}
	return h
}

// weigh recomputes gains and cut.
func (h *halves) weigh() {
	h.cut = 0
	for v, p := range h.owner {
		gain := int32(0)
		for e := h.ptr[v]; e < h.ptr[v+1]; e++ {
			w := h.weight(e)
			if h.owner[h.col[e]] == p {
				w = -w
			}
			gain += w
		}
		h.gain[v] = gain
		h.cut += int64(gain+h.degree[v]) / 2
	}
	h.cut /= 2
}

// move moves v to the other side, and calls met for each neighbour, whose gain has changed.
func (h *halves) move(v int32, met func(u int32)) {
	p := h.owner[v]
	w := h.caps.of(v)
	h.add(w, p, -1)
	h.add(w, 1-p, 1)
	h.owner[v] = 1 - p
	h.cut -= int64(h.gain[v])
	h.gain[v] = -h.gain[v]
	for e := h.ptr[v]; e < h.ptr[v+1]; e++ {
		u := h.col[e]
		w := 2 * h.weight(e)
		if h.owner[u] == p {
			h.gain[u] += w
		} else {
			h.gain[u] -= w
		}
		met(u)
	}
}

// grow gives part 0 its share of the nodes, and part 1 the rest. It always adds the adjacent node with the best gain,
// or a random one if there is none.
func (h *halves) grow(key rng.Key) {
	n, dims := h.n(), len(h.caps.bounds)
	h.cut = 0
	for v := range n {
		h.owner[v], h.gain[v] = 1, -h.degree[v]
	}
	h.count()
	total := append([]int64(nil), h.used[dims:]...)
	enough := func() bool {
		for d := range dims {
			if float64(h.used[d]) >= float64(total[d])*h.caps.share[0] && total[d] > 0 {
				return true
			}
		}
		return false
	}
	h.queue.reset(n)
	next := func(u int32) {
		if h.owner[u] == 1 {
			h.queue.put(u, h.gain[u])
		}
	}
	at, order := 0, key.Perm(n)
	for !enough() {
		v := int32(-1)
		if h.queue.len() > 0 {
			v, _ = h.queue.pop()
		} else {
			for at < n && h.owner[order[at]] == 0 {
				at++
			}
			if at == n {
				return
			}
			v = order[at]
			at++
		}
		if h.fits(v, 0) {
			h.move(v, next)
		}
	}
}

// refine reduces the cut, for that many rounds or until a round does not. The node with the best gain moves, each node
// once, until many moves bring nothing; moves after the best state are undone (Fiduccia and Mattheyses, DAC 1982).
func (h *halves) refine(rounds int) {
	n := h.n()
	for range rounds {
		h.queue.reset(n)
		clear(h.done)
		for v, gain := range h.gain {
			if gain+h.degree[v] > 0 {
				h.queue.put(int32(v), gain)
			}
		}
		h.path = h.path[:0]
		before, best, at := h.cut, h.cut, 0
		next := func(u int32) {
			if !h.done[u] {
				h.queue.put(u, h.gain[u])
			}
		}
		for h.queue.len() > 0 && len(h.path)-at < max(patience, n/patience) {
			v, _ := h.queue.pop()
			if !h.fits(v, 1-h.owner[v]) {
				continue
			}
			h.done[v] = true
			h.path = append(h.path, v)
			h.move(v, next)
			if h.cut < best {
				best, at = h.cut, len(h.path)
			}
		}
		for k := len(h.path) - 1; k >= at; k-- {
			h.move(h.path[k], func(int32) {})
		}
		if best == before {
			return
		}
	}
}
