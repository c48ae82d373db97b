package partition

import (
	"github.com/heddle-gnn/heddle/internal/rng"
)

// A stream of nodes meets most of them before their neighbours, and then scatters what belongs together. Passes that
// let every node join its neighbours in small clusters, and clusters then be dealt to parts by a graph of their own,
// give the passes over parts a start (as 2PS, Mayer et al., ICDE 2022, does for edges; the clusters are those of
// Multilevel).
const (
	clusterings  = 2
	smallest     = 16      // clusters a part at least,
	fewest       = 256     // and in all
	inside       = 0.08    // share of the edges inside clusters below which there are none to speak of
	mostClusters = 1 << 20 // that get a part; nodes of smaller ones are left to the passes
	sampled      = 1 << 23 // edges between clusters that are in memory, of more a sample
)

// cluster is a pass in which each node joins the cluster, of limited size, to which its edges are densest.
func (a *assigner) cluster(first bool) error {
	label := a.owner
	size := make([]int32, len(label))
	if first {
		for v := range label {
			label[v], size[v] = int32(v), 1
		}
	} else {
		for _, at := range label {
			size[at]++
		}
	}
	limit := a.mostInCluster()
	near := newCounts()
	return a.src.runs(true, func(r *run) error {
		for i := range r.n() {
			v := r.first + int32(i)
			near.reset(len(r.sources(i)))
			for _, u := range r.sources(i) {
				near.add(label[u], 1)
			}
			own := label[v]
			best, most := own, float32(0)
			if c := near.of(own); c > 0 && size[own] > 1 {
				most = density(c, size[own]-1)
			}
			for _, slot := range near.met {
				at, c := near.key[slot], near.count[slot]
				if at != own && size[at] < limit {
					if x := density(c, size[at]); x > most {
						best, most = at, x
					}
				}
			}
			if best != own {
				size[own]--
				size[best]++
				label[v] = best
			}
		}
		return nil
	})
}

// mostInCluster returns how many nodes a cluster may have.
func (a *assigner) mostInCluster() int32 {
	return int32(max(len(a.owner)/max(a.view.Parts()*smallest, fewest), 2))
}

// density is what draws a node to a cluster of that size to which it has so many edges: small ones grow first, so that
// none swallows its surroundings before they have formed.
func density(edges, size int32) float32 { return float32(edges) * float32(edges) / float32(size) }

// counts counts by keys, few at a time: an open hash table that fits into the nearest cache.
type counts struct {
	key   []int32
	count []int32 // 0: the slot is free
	met   []int32 // slots in use
	shift uint
}

func newCounts() *counts {
	c := &counts{shift: 32 - 6}
	c.key, c.count = make([]int32, 1<<6), make([]int32, 1<<6)
	return c
}

// reset empties the table and makes room for n keys.
func (c *counts) reset(n int) {
	for _, slot := range c.met {
		c.count[slot] = 0
	}
	c.met = c.met[:0]
	for 2*n > len(c.key) {
		c.shift--
		c.key, c.count = make([]int32, 2*len(c.key)), make([]int32, 2*len(c.key))
	}
}

func (c *counts) slot(key int32) uint32 {
	mask := uint32(len(c.key) - 1)
	at := uint32(key) * 0x9e3779b1 >> c.shift
	for c.count[at&mask] != 0 && c.key[at&mask] != key {
		at++
	}
	return at & mask
}

func (c *counts) add(key, n int32) {
	at := c.slot(key)
	if c.count[at] == 0 {
		c.key[at] = key
		c.met = append(c.met, int32(at))
	}
	c.count[at] += n
}

func (c *counts) of(key int32) int32 { return c.count[c.slot(key)] }

// join gives each cluster to a part: the graph of clusters is partitioned as Multilevel does. In a graph without
// clusters it leaves all to the passes to come.
func (a *assigner) join() error {
	n := a.nameClusters()
	c := &caps{*a.view.hold.limits, nil}
	dims := len(c.bounds)
	c.weight = make([]int64, int(n)*dims)
	w := make([]int64, dims)
	err := a.src.runs(false, func(r *run) error {
		for i := range r.n() {
			at := int(a.owner[int(r.first)+i])
			if at < 0 {
				continue
			}
			c.weigh(w, r, i)
			for d, x := range w {
				c.weight[at*dims+d] += x
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l, err := a.between(int(n))
	if err != nil {
		return err
	}
	if l == nil {
		for v := range a.owner {
			a.owner[v] = -1
		}
		return nil
	}
	part := cycleOnce(l, c, nil, EdgeCut, quick, a.key.FoldString("join"))
	for v, at := range a.owner {
		if at >= 0 {
			a.owner[v] = part[at]
		}
	}
	return nil
}

// nameClusters numbers the clusters, as many as there may be, and returns how many. Nodes of others are in none.
func (a *assigner) nameClusters() (n int32) {
	name := make([]int32, len(a.owner)) // first the size, then the complement of the number
	for _, at := range a.owner {
		name[at]++
	}
	of := make([]int, a.mostInCluster()+2) // clusters of that size
	for _, size := range name {
		of[size]++
	}
	least, sum := int32(len(of)-1), 0
	for ; least > 1 && sum+of[least-1] <= mostClusters; least-- {
		sum += of[least-1]
	}
	for v, at := range a.owner {
		if name[at] >= 0 {
			if name[at] < least {
				a.owner[v] = -1
				continue
			}
			name[at] = ^n
			n++
		}
		a.owner[v] = ^name[at]
	}
	return n
}

// between returns the graph of n clusters, of a sample of the edges where they are many; nil where too few are inside.
func (a *assigner) between(n int) (*level, error) {
	type pair struct{ a, b int32 }
	rate, key, m, kept := 1.0, a.key.FoldString("between"), a.src.size().Edges, int64(0)
	if m > sampled {
		rate = sampled / float64(m)
	}
	var pairs []pair
	l := &level{ptr: make([]int64, n+1)}
	err := a.src.runs(true, func(r *run) error {
		for i := range r.n() {
			v := r.first + int32(i)
			at := a.owner[v]
			if at < 0 {
				continue
			}
			for _, u := range r.sources(i) {
				to := a.owner[u]
				if to == at {
					kept++
					continue
				}
				if to < 0 || rate < 1 && !chosen(key, v, u, rate) {
					continue
				}
				pairs = append(pairs, pair{at, to})
				l.ptr[at+1]++
				l.ptr[to+1]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if float64(kept) < inside*float64(m) {
		return nil, nil
	}
	for at := range n {
		l.ptr[at+1] += l.ptr[at]
	}
	col, next := make([]int32, l.ptr[n]), append([]int64(nil), l.ptr[:n]...)
	for _, p := range pairs {
		col[next[p.a]] = p.b
		next[p.a]++
		col[next[p.b]] = p.a
		next[p.b]++
	}
	pairs = nil
	// Each neighbour once, with the number of edges as the weight.
	place, end := next, int64(0) // of a neighbour among those of the cluster at hand, past its start
	clear(place)
	l.edge = make([]int32, len(col))
	for at := range n {
		lo, hi := l.ptr[at], l.ptr[at+1]
		l.ptr[at] = end
		first := end
		for _, to := range col[lo:hi] {
			if k := place[to]; k > first {
				l.edge[k-1]++
				continue
			}
			col[end], l.edge[end] = to, 1
			end++
			place[to] = end
		}
	}
	l.ptr[n] = end
	l.col, l.edge = col[:end], l.edge[:end]
	return l, nil
}

// chosen reports whether the edge between u and v is in the sample.
func chosen(key rng.Key, u, v int32, rate float64) bool {
	return key.Float64(uint64(uint32(min(u, v)))<<32|uint64(uint32(max(u, v)))) < rate
}
