package partition

import "math"

// A stream visits most nodes before their neighbours, and so scatters nodes that belong together. Therefore first
// passes let every node join its neighbours in small clusters. The clusters are then dealt to parts by their own graph,
// as a start for the passes over parts (as 2PS, Mayer et al., ICDE 2022, does for edges; the clusters are as in
// Multilevel).
const (
	clusterings  = 2       // passes, the second of which also finds ties between clusters
	smallest     = 16      // clusters a part, at least
	fewest       = 256     // clusters in all, at least
	inside       = 0.08    // least share of the edges inside clusters; below it the clusters are not used
	mostClusters = 1 << 20 // clusters that get a part; the passes assign nodes of smaller ones
	looked       = 32      // neighbours among which a node looks for a cluster; if it has more, every nth
	tied         = 3       // number of other clusters that a node ties its own to
	mostTies     = 1 << 22 // ties in memory; if there are more nodes, a sample
)

// cluster is a pass in which each node joins the cluster, of limited size, to which its edges are densest. If joined is
// given, cluster calls it with the node's new cluster and its number of neighbours in each cluster.
func (a *assigner) cluster(first bool, joined func(v, to int32, near *counts)) error {
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
	var near counts
	return a.src.Runs(true, func(r *Run) error {
		for i := range r.N() {
			v := r.First + int32(i)
			near.count(r.Sources(i), label)
			own := label[v]
			best := uint64(math.MaxUint32) // bits of a density, which have the order of densities, and a slot
			if c := near.of(own); c > 0 && size[own] > 1 {
				best |= uint64(math.Float32bits(density(c, size[own]-1))) << 32
			}
			for _, slot := range near.met {
				at, c := near.at(slot)
				has := size[at]
				// all bits, or none; a branch would be slower, since it cannot be predicted
				room := uint64(int64(has-limit) >> 63)
				best = max(best, (uint64(math.Float32bits(density(c, has)))<<32|uint64(slot))&room)
			}
			to := own
			if slot := uint32(best); slot != math.MaxUint32 {
				to, _ = near.at(slot)
				size[own]--
				size[to]++
				label[v] = to
			}
			if joined != nil {
				joined(v, to, &near)
			}
		}
		return nil
	})
}

// mostInCluster returns the greatest number of nodes in a cluster.
func (a *assigner) mostInCluster() int32 {
	return int32(max(len(a.owner)/max(len(a.load)*smallest, fewest), 2))
}

// density attracts a node to a cluster of that size to which it has that many edges. Small clusters grow first, so that
// none absorbs its neighbourhood before other clusters have formed.
func density(edges, size int32) float32 { return float32(edges) * float32(edges) / float32(size) }

// counts counts labels, few at a time, in an open hash table.
type counts struct {
	slots []uint64 // label and count (0 = free)
	met   []uint32 // slots in use
}

const countBits = 7 // a table of four slots a label

// count counts the labels of the given nodes, of at most looked of them. Earlier counts are cleared.
func (c *counts) count(nodes, label []int32) {
	if c.slots == nil {
		c.slots, c.met = make([]uint64, 1<<countBits), make([]uint32, looked+1)
	}
	for _, slot := range c.met {
		c.slots[slot] = 0
	}
	slots, met, n := c.slots, c.met[:looked+1], 0
	step := max(len(nodes)<<16/looked, 1<<16) // in 65536ths
	for k := 0; k>>16 < len(nodes); k += step {
		key := label[nodes[k>>16]]
		at := uint32(key) * 0x9e3779b1 >> (32 - countBits)
		was := slots[at]
		for was != 0 && int32(was>>32) != key {
			if at++; int(at) == len(slots) {
				at = 0
			}
			was = slots[at]
		}
		met[n] = at
		if was == 0 {
			n++
		}
		slots[at] = uint64(key)<<32 | uint64(uint32(was)+1)
	}
	c.met = met[:n]
}

// at returns the label and count of a slot.
func (c *counts) at(slot uint32) (label, count int32) {
	x := c.slots[slot]
	return int32(x >> 32), int32(uint32(x))
}

// of returns how often a label was counted.
func (c *counts) of(label int32) int32 {
	at := uint32(label) * 0x9e3779b1 >> (32 - countBits)
	for {
		switch key, n := c.at(at); {
		case n == 0 || key == label:
			return n
		}
		if at++; int(at) == len(c.slots) {
			at = 0
		}
	}
}

// tie is how many edges a node of cluster a has to cluster b.
type tie struct{ a, b, edges int32 }

// join runs the last clustering pass and gives each cluster to a part: the graph of clusters, with their nodes' ties,
// is partitioned as in Multilevel. In a graph without clusters it leaves all nodes to the passes to come.
func (a *assigner) join() error {
	rate, key := min(mostTies/(tied*float64(len(a.owner))), 1), a.key.FoldString("ties")
	ties := make([]tie, 0, min(tied*len(a.owner), mostTies+mostTies/8)) // a sample is at most an eighth larger
	inner, all := 0, 0
	err := a.cluster(false, func(v, to int32, near *counts) {
		var top [tied + 1]uint64 // the largest numbers of edges, with the slots of their clusters
		for _, slot := range near.met {
			_, c := near.at(slot)
			all += int(c)
			x := uint64(c)<<32 | uint64(slot)
			for k, y := range top {
				top[k], x = max(x, y), min(x, y)
			}
		}
		inner += int(near.of(to))
		if rate < 1 && key.Float64(uint64(v)) >= rate {
			return
		}
		left := tied
		for _, x := range top {
			if at, c := near.at(uint32(x)); x > 0 && at != to && left > 0 {
				ties = append(ties, tie{to, at, c})
				left--
			}
		}
	})
	if err != nil {
		return err
	}
	if float64(inner) < inside*float64(all) {
		for v := range a.owner {
			a.owner[v] = -1
		}
		return nil
	}
	name, n := a.nameClusters()
	kept := ties[:0]
	for _, t := range ties {
		// A full cluster may have lost its nodes since.
		if t.a, t.b = ^name[t.a], ^name[t.b]; t.a >= 0 && t.b >= 0 && t.a != t.b {
			kept = append(kept, t)
		}
	}
	name = nil
	l := between(kept, n)
	ties, kept = nil, nil
	c := &caps{*a.hold.limits, nil}
	dims := len(c.bounds)
	c.weight = make([]int64, n*dims)
	w := make([]int64, dims)
	err = a.src.Runs(false, func(r *Run) error {
		for i := range r.N() {
			at := int(a.owner[int(r.First)+i])
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
	part := multilevel(l, c, EdgeCut, quick, a.key.FoldString("join"))
	for v, at := range a.owner {
		if at >= 0 {
			a.owner[v] = part[at]
		}
	}
	return nil
}

// nameClusters numbers the largest clusters, up to mostClusters. It returns the complement of each cluster's number by
// its label, and the number of clusters. Other nodes are in none.
func (a *assigner) nameClusters() (name []int32, n int) {
	name = make([]int32, len(a.owner)) // first the sizes
	for _, at := range a.owner {
		name[at]++
	}
	of := make([]int, a.mostInCluster()+2) // number of clusters of each size
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
			name[at] = ^int32(n)
			n++
		}
		a.owner[v] = ^name[at]
	}
	return name, n
}

// between returns the graph of n clusters with these ties, weighted by the edges.
func between(ties []tie, n int) *level {
	l := &level{ptr: make([]int64, n+1)}
	for _, t := range ties {
		l.ptr[t.a+1]++
		l.ptr[t.b+1]++
	}
	for at := range n {
		l.ptr[at+1] += l.ptr[at]
	}
	col, edge, next := make([]int32, l.ptr[n]), make([]int32, l.ptr[n]), append([]int64(nil), l.ptr[:n]...)
	put := func(a, b, edges int32) {
		col[next[a]], edge[next[a]] = b, edges
		next[a]++
	}
	for _, t := range ties {
		put(t.a, t.b, t.edges)
		put(t.b, t.a, t.edges)
	}
	// Each neighbour once.
	place, end := next, int64(0) // position of a neighbour among the current cluster's neighbours, after its start
	clear(place)
	for at := range n {
		lo, hi := l.ptr[at], l.ptr[at+1]
		l.ptr[at] = end
		first := end
		for e := lo; e < hi; e++ {
			if k := place[col[e]]; k > first {
				edge[k-1] += edge[e]
				continue
			}
			col[end], edge[end] = col[e], edge[e]
			end++
			place[col[e]] = end
		}
	}
	l.ptr[n] = end
	l.col, l.edge = col[:end], edge[:end]
	return l
}
