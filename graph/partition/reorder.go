package partition

import (
	"cmp"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// rcm is the reverse Cuthill–McKee order (ACM National Conference 1969; George, 1971): breadth first from a peripheral
// node, neighbours by degree, so that neighbours are at most two fronts apart.
func rcm(adj *graph.CSR) []int32 {
	l := symmetric(adj)
	degree := func(v int32) int64 { return l.ptr[v+1] - l.ptr[v] }
	order, depth := make([]int32, 0, l.n()), make([]int32, l.n())
	first := mat.EveryRow(l.n())
	slices.SortStableFunc(first, func(a, b int32) int { return cmp.Compare(degree(a), degree(b)) })
	for _, v := range first {
		if depth[v] > 0 {
			continue
		}
		start := len(order)
		root, reach := v, int32(0)
		for { // a node of least degree of the last front, while fronts become more (George and Liu, TOMS 1979)
			order = breadth(l, order[:start], root, depth)
			last := order[len(order)-1]
			deepest := depth[last]
			far := last
			for k := len(order) - 1; k >= start && depth[order[k]] == deepest; k-- {
				if degree(order[k]) <= degree(far) {
					far = order[k]
				}
			}
			if deepest <= reach {
				break
			}
			reach, root = deepest, far
			for _, u := range order[start:] {
				depth[u] = 0
			}
		}
	}
	slices.Reverse(order)
	return order
}

// breadth appends the nodes that are reachable from root, front by front. depth is 1 at the root, and 0 for unvisited
// nodes.
func breadth(l *level, order []int32, root int32, depth []int32) []int32 {
	at := len(order)
	depth[root] = 1
	order = append(order, root)
	for ; at < len(order); at++ {
		v := order[at]
		next := len(order)
		for _, u := range l.col[l.ptr[v]:l.ptr[v+1]] {
			if depth[u] == 0 {
				depth[u] = depth[v] + 1
				order = append(order, u)
			}
		}
		slices.SortFunc(order[next:], func(a, b int32) int {
			return cmp.Or(cmp.Compare(l.ptr[a+1]-l.ptr[a], l.ptr[b+1]-l.ptr[b]), cmp.Compare(a, b))
		})
	}
	return order
}

// Sizes of ClusterOrder's clusters: the rows of one, with some hundred bytes each, should fit into a near cache, and
// those of the next level into a farther one.
const (
	inCluster = 64
	byLevel   = 8
)

// ClusterOrder returns a good order of a shard's owned nodes in memory: position k gets node order[k]. Nodes with many
// edges between them are close, and so are such clusters (after Arai and others, IPDPS 2016: an order along a hierarchy
// of communities). The clusters are Multilevel's. adj has the edges between the nodes.
func ClusterOrder(adj *graph.CSR) []int32 {
	l := symmetric(adj)
	c := &caps{limits{bounds: make([]bound, 1)}, slices.Repeat([]int64{1}, l.n())} // weights count nodes: one each
	var room level
	var up [][]int32 // cluster of each node of a level
	for limit := int64(inCluster); l.n() > 1; limit *= byLevel {
		to, n := cluster(l, c, []int64{limit}, thorough.sweeps, rng.New(1).Fold(uint64(len(up))))
		if n == l.n() {
			break
		}
		up = append(up, to)
		l, c = contract(l, to, n, &room), c.contract(to, n)
	}
	order := rcm(&graph.CSR{NumDst: l.n(), NumSrc: l.n(), RowPtr: l.ptr, Col: l.col})
	for _, to := range slices.Backward(up) {
		place := make([]int32, len(order))
		for k, at := range order {
			place[at] = int32(k)
		}
		order = mat.EveryRow(len(to))
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(place[to[a]], place[to[b]]) })
	}
	return order
}
