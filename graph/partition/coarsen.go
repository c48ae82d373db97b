package partition

import (
	"math/bits"
	"slices"

	"github.com/heddle-gnn/heddle/rng"
)

// grain returns the bound of each weight in a cluster with which each part has at least perPart clusters, [D].
func (c *caps) grain(perPart int64) []int64 {
	dims := len(c.bounds)
	limit := make([]int64, dims)
	for d := range dims {
		sum := int64(0)
		for k := d; k < len(c.most); k += dims {
			sum += c.most[k]
		}
		limit[d] = max(sum/(int64(len(c.share))*perPart), 1)
	}
	return limit
}

// contract returns the caps of the coarser level with n nodes; node v becomes part of to[v].
func (c *caps) contract(to []int32, n int) *caps {
	dims, out := len(c.bounds), *c
	out.weight = make([]int64, n*dims)
	for v, at := range to {
		for d := range dims {
			out.weight[int(at)*dims+d] += c.weight[v*dims+d]
		}
	}
	return &out
}

// loosened returns caps that allow a part half of the heaviest node more, so that clusters can be exchanged.
func (c *caps) loosened() *caps {
	dims, out := len(c.bounds), *c
	out.most = append([]int64(nil), c.most...)
	for d := range dims {
		heaviest := int64(0)
		for k := d; k < len(c.weight); k += dims {
			heaviest = max(heaviest, c.weight[k])
		}
		for k := d; k < len(out.most); k += dims {
			out.most[k] += heaviest
		}
	}
	return &out
}

// cluster returns the cluster of each node, [n], and the number of clusters. It is label propagation, from nodes of few
// edges on, in which a node joins the cluster to which its edges weigh most, within limit. Then single nodes join
// others that would have joined the same cluster, and isolated nodes join each other.
func cluster(l *level, c *caps, limit []int64, sweeps int, key rng.Key) (to []int32, n int) {
	size := l.n()
	s := newLabels(l, c, limit)
	label, nodes := s.label, s.nodes
	near, met := make([]int32, size), make([]int32, 64)
	likes := make([]int32, size) // the cluster that v would join if it had space
	still := make([]bool, size)  // no neighbour has moved since v was last visited
	order := byDegree(l)
	for sweep := range sweeps {
		moved := 0
		for _, v := range order {
			if still[v] {
				continue
			}
			still[v] = true
			lo, hi := l.ptr[v], l.ptr[v+1]
			col, n := l.col[lo:hi], 0
			if len(col) >= len(met) {
				met = make([]int32, 2*len(col)+1)
			}
			for e, u := range col {
				w := int32(1)
				if l.edge != nil {
					w = l.edge[lo+int64(e)]
				}
				at := label[u]
				c := near[at]
				met[n] = at
				if c == 0 {
					n++
				}
				near[at] = c + w
			}
			own := label[v]
			best, most, like, likes0 := own, 0.0, own, 0.0
			if near[own] > 0 {
				most = float64(near[own]) * float64(near[own]) / (nodes[own] - float64(l.nodes(v)))
			}
			for _, at := range met[:n] {
				w := float64(near[at]) * float64(near[at]) / nodes[at]
				near[at] = 0
				if w > likes0 {
					like, likes0 = at, w
				}
				if at == own || w < most {
					continue
				}
				if w == most && (best == own || key.Uint64(uint64(at))&1 == uint64(sweep)&1) || !s.fits(v, at) {
					continue
				}
				best, most = at, w
			}
			likes[v] = like
			if best != own {
				s.move(v, best)
				moved++
				for _, u := range col {
					still[u] = false
				}
			}
		}
		if moved < size/50 {
			break
		}
	}
	s.pair(likes)
	return s.clusters()
}

// labels are the clusters of nodes, each named by a node, and the clusters' weights and sizes.
type labels struct {
	l      *level
	c      *caps
	limit  []int64 // [D] greatest weight of a cluster
	label  []int32
	weight []int64   // [N×D] weight of each cluster
	nodes  []float64 // [N] number of nodes in each cluster
}

// newLabels returns one cluster for each node.
func newLabels(l *level, c *caps, limit []int64) *labels {
	size := l.n()
	s := &labels{l: l, c: c, limit: limit, label: make([]int32, size), weight: append([]int64(nil), c.weight...),
		nodes: make([]float64, size)}
	for v := range s.label {
		s.label[v], s.nodes[v] = int32(v), float64(l.nodes(int32(v)))
	}
	return s
}

// fits reports whether cluster at has space for v.
func (s *labels) fits(v, at int32) bool {
	dims := len(s.limit)
	for d, most := range s.limit {
		if s.weight[int(at)*dims+d]+s.c.weight[int(v)*dims+d] > most {
			return false
		}
	}
	return true
}

// move moves v to cluster at and updates the weights and sizes of both clusters.
func (s *labels) move(v, at int32) {
	dims := len(s.limit)
	for d := range dims {
		w := s.c.weight[int(v)*dims+d]
		s.weight[int(s.label[v])*dims+d] -= w
		s.weight[int(at)*dims+d] += w
	}
	s.nodes[s.label[v]] -= float64(s.l.nodes(v))
	s.nodes[at] += float64(s.l.nodes(v))
	s.label[v] = at
}

// pair joins single nodes that would join the same cluster if it had space.
func (s *labels) pair(likes []int32) {
	// A single node has a cluster of size 1, named by it or by another node that has left it.
	label, count := s.label, make([]int32, len(s.label))
	for _, at := range label {
		count[at]++
	}
	waiting := make(map[int32]int32)
	for v := range int32(len(label)) {
		if count[label[v]] != 1 {
			continue
		}
		at := likes[v]
		if at == label[v] {
			at = -1 // no neighbours
		}
		if with, ok := waiting[at]; ok && s.fits(v, with) {
			s.move(v, with)
		} else {
			waiting[at] = label[v]
		}
	}
}

// clusters numbers the clusters that have nodes: to[v] is the number of v's cluster, in [0, n).
func (s *labels) clusters() (to []int32, n int) {
	to, name := make([]int32, len(s.label)), slices.Repeat([]int32{-1}, len(s.label))
	for v, at := range s.label {
		if name[at] < 0 {
			name[at] = int32(n)
			n++
		}
		to[v] = name[at]
	}
	return to, n
}

// byDegree returns the nodes by the number of bits of their degree, then by ID.
func byDegree(l *level) []int32 {
	var start [66]int
	class := func(v int) int { return bits.Len64(uint64(l.ptr[v+1] - l.ptr[v])) }
	for v := range l.n() {
		start[class(v)+1]++
	}
	for k := range start[1:] {
		start[k+1] += start[k]
	}
	order := make([]int32, l.n())
	for v := range l.n() {
		k := class(v)
		order[start[k]] = int32(v)
		start[k]++
	}
	return order
}

// contract returns the graph of n clusters: node v becomes part of to[v]. Edges are merged in the caller's
// scratch level, which has l's size.
func contract(l *level, to []int32, n int, room *level) *level {
	start, member := make([]int32, n+1), make([]int32, len(to))
	for _, at := range to {
		start[at+1]++
	}
	for k := range n {
		start[k+1] += start[k]
	}
	next := append([]int32(nil), start...)
	for v, at := range to {
		member[next[at]] = int32(v)
		next[at]++
	}
	if room.col == nil {
		room.col, room.edge = make([]int32, len(l.col)), make([]int32, len(l.col))
	}
	out := &level{ptr: make([]int64, n+1), size: make([]int32, n)}
	col, edge, end := room.col, room.edge, int64(0)
	place := make([]int64, n) // position of the edge to a cluster among the current cluster's edges, after its start
	for at := range n {
		lo := end
		for _, v := range member[start[at]:start[at+1]] {
			out.size[at] += l.nodes(v)
			for e := l.ptr[v]; e < l.ptr[v+1]; e++ {
				u := to[l.col[e]]
				if int(u) == at {
					continue
				}
				if k := place[u]; k > lo {
					edge[k-1] += l.weight(e)
				} else {
					col[end], edge[end] = u, l.weight(e)
					end++
					place[u] = end
				}
			}
		}
		out.ptr[at+1] = end
	}
	out.col, out.edge = slices.Clone(col[:end]), slices.Clone(edge[:end])
	return out
}
