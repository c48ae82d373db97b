package partition

// level is a graph with weighted edges: the one to partition, or a coarser one that stands for it.
type level struct {
	ptr  []int64 // [n+1]
	col  []int32
	edge []int32 // weight of each edge; nil: 1
}

// each calls f for each neighbour of v and the weight of the edge to it.
func (l *level) each(v int32, f func(u, w int32)) {
	for e := l.ptr[v]; e < l.ptr[v+1]; e++ {
		f(l.col[e], l.weight(e))
	}
}

// weight returns the weight of stored edge e.
func (l *level) weight(e int64) int32 {
	if l.edge == nil {
		return 1
	}
	return l.edge[e]
}
