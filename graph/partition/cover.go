package partition

import (
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// MinCover returns a least set of sources and destinations that has an end of every edge of adj. What part p sends to
// part q of a linear aggregator is either the row of a source or the partial sum of a destination over p's sources:
// adj being the edges from p into q, this is the least that carries all (König 1931, by the matching of Hopcroft and
// Karp, SICOMP 1973). Both lists ascend.
func MinCover(adj *graph.CSR) (rows, sums []int32) {
	m := matching{adj: adj, dst: slices.Repeat([]int32{-1}, adj.NumSrc), src: slices.Repeat([]int32{-1}, adj.NumDst),
		depth: make([]int32, adj.NumDst), next: make([]int64, adj.NumDst)}
	for i := range int32(adj.NumDst) { // most of it, by the first that is free
		col, _ := adj.Row(int(i))
		for _, j := range col {
			if m.dst[j] < 0 {
				m.src[i], m.dst[j] = j, i
				break
			}
		}
	}
	for m.layer() {
		copy(m.next, adj.RowPtr)
		for i := range int32(adj.NumDst) {
			if m.src[i] < 0 {
				m.augment(i)
			}
		}
	}
	// What alternating paths from unmatched destinations reach: of those destinations none, of those sources all.
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
	return rows, sums
}

// matching is one of destinations and sources: src[i] = j and dst[j] = i, or −1.
type matching struct {
	adj      *graph.CSR
	src, dst []int32
	depth    []int32 // of destination i in the layers from unmatched ones; −1: not reached
	next     []int64 // edge of i to try
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

// augment matches destination i along a path through ever deeper layers, if there is one. The path is kept in queue,
// not on the stack: it may be as long as the graph.
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

// Plan is how many messages one exchange of rows takes where a partial sum may stand for the rows in it.
type Plan struct {
	Rows, Sums [][]int64 // [K][K] from part p to part q: rows of p's nodes, and sums for q's
	Total      int64
}

// Cover returns the plan of the least messages between shards, all of one partition in order. An aggregator that is not
// linear in the rows needs them all: Report.Halo.
func Cover(shards []*Shard) Plan {
	plan := Plan{Rows: square(len(shards)), Sums: square(len(shards))}
	for q, s := range shards {
		for p := range shards {
			rows, sums := MinCover(s.from(p))
			plan.Rows[p][q], plan.Sums[p][q] = int64(len(rows)), int64(len(sums))
			plan.Total += int64(len(rows) + len(sums))
		}
	}
	return plan
}

// from returns the edges from part p's rows, numbered from 0, into those of s's nodes that have any.
func (s *Shard) from(p int) *graph.CSR {
	lo, hi := int32(s.HaloPtr[p]), int32(s.HaloPtr[p+1])
	adj := &graph.CSR{NumSrc: int(hi - lo), RowPtr: []int64{0}}
	for i := range s.Owned {
		col, _ := s.Adj.Row(i)
		first, _ := slices.BinarySearch(col, lo)
		last, _ := slices.BinarySearch(col, hi)
		for _, j := range col[first:last] {
			adj.Col = append(adj.Col, j-lo)
		}
		if first < last {
			adj.RowPtr = append(adj.RowPtr, int64(len(adj.Col)))
			adj.NumDst++
		}
	}
	return adj
}

func square(n int) [][]int64 {
	out := make([][]int64, n)
	for k := range out {
		out[k] = make([]int64, n)
	}
	return out
}
