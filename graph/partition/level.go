package partition

import "github.com/heddle-gnn/heddle/graph"

// level is a graph with weighted edges: the one to partition, or a coarser one that represents it.
type level struct {
	ptr  []int64 // [n+1]
	col  []int32
	edge []int32 // weight of each edge (nil = 1)
	size []int32 // [n] number of the partitioned graph's nodes that each represents (nil = 1)
}

func (l *level) n() int { return len(l.ptr) - 1 }

// weight returns the weight of stored edge e.
func (l *level) weight(e int64) int32 {
	if l.edge == nil {
		return 1
	}
	return l.edge[e]
}

// nodes returns how many nodes of the partitioned graph v represents.
func (l *level) nodes(v int32) int32 {
	if l.size == nil {
		return 1
	}
	return l.size[v]
}

// symmetric returns the graph in which u and v are neighbours if there is an edge in either direction, weighted by the
// number of directions. It is g itself if g has all reverses. Self-loops are dropped: they are never cut.
func symmetric(g *graph.CSR) *level {
	plain := graph.CSR{NumDst: g.NumDst, NumSrc: g.NumSrc, RowPtr: g.RowPtr, Col: g.Col}
	if plain.Symmetric() && !plain.Loops() {
		return &level{ptr: g.RowPtr, col: g.Col}
	}
	t := plain.Transpose(nil)
	l := &level{ptr: make([]int64, g.NumDst+1)}
	put := func(i, j int32, w int32) {
		if i != j {
			l.col, l.edge = append(l.col, j), append(l.edge, w)
		}
	}
	for i := range int32(g.NumDst) {
		a, _ := g.Row(int(i))
		b, _ := t.Row(int(i))
		for len(a) > 0 && len(b) > 0 {
			switch {
			case a[0] < b[0]:
				put(i, a[0], 1)
				a = a[1:]
			case a[0] > b[0]:
				put(i, b[0], 1)
				b = b[1:]
			default:
				put(i, a[0], 2)
				a, b = a[1:], b[1:]
			}
		}
		for _, j := range append(a, b...) {
			put(i, j, 1)
		}
		l.ptr[i+1] = int64(len(l.col))
	}
	return l
}
