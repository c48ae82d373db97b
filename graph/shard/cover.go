package shard

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// leastCover returns a least set of sources and destinations that has an end of every edge of adj. For a linear
// aggregator, part p sends part q either the row of a source or the partial sum of a destination over p's sources. If
// adj has the edges from p into q, this is the least number of rows and sums (König 1931, by the matching of Hopcroft
// and Karp, SICOMP 1973). For more than 2²⁴ edges it is at most twice that, in one pass (Gavril 1974; in Garey and
// Johnson 1979, §6.1). Both lists ascend.
func leastCover(adj *graph.CSR) (rows, sums []int32) { return cover(adj, 1<<24) }

// cover is exact for up to `exact` edges.
func cover(adj *graph.CSR, exact int) (rows, sums []int32) {
	m := matching{adj: adj, dst: slices.Repeat([]int32{-1}, adj.NumSrc), src: slices.Repeat([]int32{-1}, adj.NumDst),
		depth: make([]int32, adj.NumDst), next: make([]int64, adj.NumDst)}
	pairs := 0
	for i := range int32(adj.NumDst) { // most of the matching: each destination takes its first free source
		col, _ := adj.Row(int(i))
		for _, j := range col {
			if m.dst[j] < 0 {
				m.src[i], m.dst[j] = j, i
				pairs++
				break
			}
		}
	}
	for m.layer() && adj.NumEdges() <= exact {
		copy(m.next, adj.RowPtr)
		for i := range int32(adj.NumDst) {
			if m.src[i] < 0 {
				m.augment(i)
			}
		}
	}
	// What alternating paths from unmatched destinations reach: of those destinations none, of
	// those sources all. That covers whatever the matching is, and is as large as it if no path
	// is left that would augment it.
	reached := make([]bool, adj.NumSrc)
	for i := range int32(adj.NumDst) {
		col, _ := adj.Row(int(i))
		if m.depth[i] < 0 {
			sums = append(sums, i)
			continue
		}
		for _, j := range col {
			reached[j] = true
		}
	}
	for j, r := range reached {
		if r {
			rows = append(rows, int32(j))
		}
	}
	if adj.NumEdges() > exact && len(rows)+len(sums) > 2*pairs { // both ends of each pair cover as well
		rows, sums = rows[:0], sums[:0]
		for i, j := range m.src {
			if j >= 0 {
				sums = append(sums, int32(i))
			}
		}
		for j, i := range m.dst {
			if i >= 0 {
				rows = append(rows, int32(j))
			}
		}
	}
	return rows, sums
}

// matching matches destinations and sources: src[i] = j and dst[j] = i, or −1.
type matching struct {
	adj      *graph.CSR
	src, dst []int32
	depth    []int32 // depth of destination i in the layers from unmatched ones (−1 = not reached)
	next     []int64 // next edge of i to try
	queue    []int32
}

// layer finds the depths, and reports whether an unmatched source is reached.
func (m *matching) layer() (found bool) {
	m.queue = m.queue[:0]
	for i, j := range m.src {
		if m.depth[i] = -1; j < 0 {
			m.depth[i] = 0
			m.queue = append(m.queue, int32(i))
		}
	}
	for k := 0; k < len(m.queue); k++ {
		i := m.queue[k]
		col, _ := m.adj.Row(int(i))
		for _, j := range col {
			if then := m.dst[j]; then < 0 {
				found = true
			} else if m.depth[then] < 0 {
				m.depth[then] = m.depth[i] + 1
				m.queue = append(m.queue, then)
			}
		}
	}
	return found
}

// augment matches destination i along a path through deeper and deeper layers, if there is one. The path is kept in
// queue, not on the stack: it may be as long as the graph.
func (m *matching) augment(i int32) {
	path := append(m.queue[:0], i)
	for len(path) > 0 {
		i := path[len(path)-1]
		if m.next[i] == m.adj.RowPtr[i+1] {
			if path = path[:len(path)-1]; len(path) > 0 {
				m.next[path[len(path)-1]]++
			}
			continue
		}
		j := m.adj.Col[m.next[i]]
		switch then := m.dst[j]; {
		case then < 0:
			for _, i := range path {
				j := m.adj.Col[m.next[i]]
				m.src[i], m.dst[j] = j, i
				m.next[i]++
			}
			m.queue = path[:0]
			return
		case m.depth[then] == m.depth[i]+1:
			path = append(path, then)
		default:
			m.next[i]++
		}
	}
	m.queue = path
}

// From returns the edges of adj from part p; adj has the shard's destinations and sources. Source j is p's j-th halo
// row.
func (s *Shard) From(adj *graph.CSR, p int) *graph.CSR {
	lo, hi := int32(s.HaloPtr[p]), int32(s.HaloPtr[p+1])
	out := &graph.CSR{NumDst: adj.NumDst, NumSrc: int(hi - lo), RowPtr: make([]int64, adj.NumDst+1)}
	for i := range adj.NumDst {
		col, weight := adj.Row(i)
		first, _ := slices.BinarySearch(col, lo)
		last, _ := slices.BinarySearch(col, hi)
		for _, j := range col[first:last] {
			out.Col = append(out.Col, j-lo)
		}
		if weight != nil {
			out.Weight = append(out.Weight, weight[first:last]...)
		}
		out.RowPtr[i+1] = int64(len(out.Col))
	}
	if adj.Weight != nil && out.Weight == nil {
		out.Weight = []float32{}
	}
	return out
}
