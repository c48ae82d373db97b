package partition

import (
	"math"
	"math/bits"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// bisect returns a partition of l by recursive bisection: one side grows from a random node by the best gain (Karypis
// and Kumar, SISC 1998, greedy graph growing), then both are refined. It may break caps where l's nodes are heavy.
func bisect(l *level, c *caps, e effort, key rng.Key) []int32 {
	owner := make([]int32, l.n())
	all := make([]int32, l.n())
	for v := range all {
		all[v] = int32(v)
	}
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
	split(all, 0, len(c.share), key)
	return owner
}

// induced returns the graph of those nodes, ascending, and the edges between them.
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

// halves returns the caps of parts [lo, mid) and [mid, hi) together, for those nodes. What slack there is is spread
// over the bisections to come.
func (c *caps) halves(nodes []int32, lo, mid, hi int) *caps {
	dims := len(c.bounds)
	out := &caps{limits{bounds: c.bounds, most: make([]int64, 2*dims), share: make([]float64, 2)}, make([]int64, 0, len(nodes)*dims)}
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
			out.most[s*dims+d] = min(out.most[s*dims+d], int64(math.Ceil(fair*max(math.Pow(slack, 1/float64(levels)), 1))))
		}
	}
	out.share[0], out.share[1] = out.share[0]/whole, out.share[1]/whole
	return out
}

// halve returns the best of several bisections: that breaks caps least, then of the least cut.
func halve(l *level, c *caps, e effort, key rng.Key) (best []int32) {
	var bestOver, bestCut int64
	for try := range uint64(e.tries) {
		b := newLedger(l, c, make([]int32, l.n()))
		for v := range b.owner {
			b.owner[v] = 1
		}
		b.count()
		r := newRefiner(b)
		r.grow(key.Fold(2 + try))
		b.spill()
		r = newRefiner(b)
		r.refine(e)
		over, cut := b.excess(), r.cut()
		if best == nil || over < bestOver || over == bestOver && cut < bestCut {
			best, bestOver, bestCut = b.owner, over, cut
		}
	}
	return best
}

// excess returns by how much parts hold more than they may.
func (b *ledger) excess() (sum int64) {
	for k, u := range b.used {
		sum += max(u-b.caps.most[k], 0)
	}
	return sum
}

// grow gives part 0, in which nothing is, its share of the nodes: always that of the best gain of those next to it,
// and a random one where there is none.
func (r *refiner) grow(key rng.Key) {
	n, dims := r.n(), len(r.caps.bounds)
	total := make([]int64, dims)
	for d := range dims {
		total[d] = r.used[d] + r.used[dims+d]
	}
	enough := func() bool {
		for d := range dims {
			if float64(r.used[d]) >= float64(total[d])*r.caps.share[0] && total[d] > 0 {
				return true
			}
		}
		return false
	}
	r.queue.reset(n)
	at := 0
	order := key.Perm(n)
	for !enough() {
		v := int32(-1)
		if r.queue.len() > 0 {
			v, _ = r.queue.pop()
		} else {
			for at < n && r.owner[order[at]] == 0 {
				at++
			}
			if at == n {
				return
			}
			v = order[at]
		}
		if !r.fits(v, 0) {
			if r.queue.len() == 0 && at < n && order[at] == v {
				at++
			}
			continue
		}
		r.move(v, 0)
		for e := r.ptr[v]; e < r.ptr[v+1]; e++ {
			if u := r.col[e]; r.owner[u] == 1 {
				r.queue.put(u, r.to(u, 0)-r.to(u, 1))
			}
		}
	}
}
