package partition

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Order returns in which order the owned nodes of a shard lie best in memory: place k gets node order[k]. Rows that are
// read one after another are then near each other. adj has the edges between them.
type Order func(adj *graph.CSR) (order []int32)

// orders by the names that the command line has.
var orders = map[string]Order{"degree": ByDegree, "rcm": RCM, "cluster": ByCluster}

// ParseOrder returns the order of that name: degree, rcm or cluster.
func ParseOrder(name string) (Order, error) {
	if by, ok := orders[name]; ok {
		return by, nil
	}
	return nil, fmt.Errorf("partition: no order %q, want degree, rcm or cluster", name)
}

// ByDegree puts the nodes with the most edges first, so that the rows that are read most lie together.
func ByDegree(adj *graph.CSR) []int32 {
	order := count(adj.NumDst)
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(adj.RowPtr[b+1]-adj.RowPtr[b], adj.RowPtr[a+1]-adj.RowPtr[a])
	})
	return order
}

func count(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// RCM is the reverse of Cuthill and McKee's order (ACM National Conference 1969; George, 1971): breadth first from a
// node at the rim, neighbours by degree, so that neighbours are at most two fronts apart.
func RCM(adj *graph.CSR) []int32 {
	l := symmetric(adj)
	degree := func(v int32) int64 { return l.ptr[v+1] - l.ptr[v] }
	order, depth := make([]int32, 0, l.n()), make([]int32, l.n())
	first := count(l.n())
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

// breadth appends the nodes that root reaches, front by front; depth is 1 at the root, and 0 where nothing was yet.
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

// Clusters of ByCluster: the rows of one, of some hundred bytes each, are to fit into a near cache, those of the next
// level into a farther one.
const (
	inCluster = 64
	byLevel   = 8
)

// ByCluster puts nodes with many edges among them together, and such clusters in turn (after Arai and others, IPDPS
// 2016: an order along a hierarchy of communities). The clusters are those of Multilevel.
func ByCluster(adj *graph.CSR) []int32 {
	l := symmetric(adj)
	c := &caps{limits{bounds: make([]bound, 1)}, slices.Repeat([]int64{1}, l.n())} // how many nodes: one each
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
	order := RCM(&graph.CSR{NumDst: l.n(), NumSrc: l.n(), RowPtr: l.ptr, Col: l.col})
	for _, to := range slices.Backward(up) {
		place := make([]int32, len(order))
		for k, at := range order {
			place[at] = int32(k)
		}
		order = count(len(to))
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(place[to[a]], place[to[b]]) })
	}
	return order
}

// Reorder returns the shards of the same partition, all of them in order, with each one's owned nodes in the order that
// by gives, and halo rows in that of their owners. Nothing else about a node changes, its global ID least. The
// fingerprint does: shards of the two do not fit together.
func Reorder(shards []*Shard, by Order) []*Shard {
	place := make([][]int32, len(shards)) // of each part's owned node
	list := make([][]int32, len(shards))
	h := sha256.New()
	sections := []graph.Section{graph.Array("partition", shards[0].Fingerprint[:])}
	for p, s := range shards {
		list[p] = by(s.inner())
		place[p] = make([]int32, s.Owned)
		for k, i := range list[p] {
			place[p][i] = int32(k)
		}
		sections = append(sections, graph.Array(fmt.Sprintf("order/%d", p), list[p]))
	}
	if err := graph.EncodeSections(h, "order", sections); err != nil {
		panic(err) // as in graph.Graph.Digest
	}
	out := make([]*Shard, len(shards))
	for p, s := range shards {
		out[p] = s.reordered(shards, list[p], place)
		copy(out[p].Fingerprint[:], h.Sum(nil))
	}
	return out
}

// inner returns the edges between owned nodes.
func (s *Shard) inner() *graph.CSR {
	g := &graph.CSR{NumDst: s.Owned, NumSrc: s.Owned, RowPtr: make([]int64, s.Owned+1)}
	for i := range s.Owned {
		col, _ := s.Adj.Row(i)
		end, _ := slices.BinarySearch(col, int32(s.Owned))
		g.Col = append(g.Col, col[:end]...)
		g.RowPtr[i+1] = int64(len(g.Col))
	}
	return g
}

// reordered returns s with its owned nodes in that order. place holds where each part puts its nodes.
func (s *Shard) reordered(shards []*Shard, order []int32, place [][]int32) *Shard {
	out := *s
	source := slices.Clone(order) // source k of the result is source[k] of s
	out.Boundary = make([][]int32, s.Parts)
	for q, of := range shards {
		lo := s.HaloPtr[q]
		from := of.Boundary[s.Rank] // owned by q, in the order of s's halo rows
		halo := count(len(from))
		slices.SortFunc(halo, func(a, b int32) int { return cmp.Compare(place[q][from[a]], place[q][from[b]]) })
		for _, k := range halo {
			source = append(source, int32(lo)+k)
		}
		out.Boundary[q] = make([]int32, len(s.Boundary[q]))
		for k, i := range s.Boundary[q] {
			out.Boundary[q][k] = place[s.Rank][i]
		}
		slices.Sort(out.Boundary[q])
	}
	to := make([]int32, len(source))
	out.Global, out.Degree = make([]int64, len(source)), make([]float32, len(source))
	for k, j := range source {
		to[j] = int32(k)
		out.Global[k], out.Degree[k] = s.Global[j], s.Degree[j]
	}
	out.Adj = *s.Adj.Relabel(order, to, len(source))
	out.Typed = relabelled(&s.Typed, order, to, len(source))
	if s.X.Cols() > 0 {
		out.X = s.X.Select(order)
	}
	out.Labels = s.Labels.Select(order)
	out.Split = make([]graph.Split, s.Owned)
	if s.IDs != nil {
		out.IDs = make([]string, s.Owned)
	}
	for k, i := range order {
		out.Split[k] = s.Split[i]
		if s.IDs != nil {
			out.IDs[k] = s.IDs[i]
		}
	}
	return &out
}
