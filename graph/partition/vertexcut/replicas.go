package vertexcut

import (
	"math/bits"

	"github.com/heddle-gnn/heddle/graph/partition/quality"
)

// Replicas is the quality of a vertex cut.
type Replicas struct {
	Parts       int
	Nodes       int64
	Edges       int64   // stored: both directions of an undirected edge count
	Replicas    int64   // places of all nodes: parts that own the node or hold an edge of it
	Replication float64 // replication factor: Replicas / Nodes
	// Balance is the largest part's share over the mean: 1 is even.
	EdgeBalance, ReplicaBalance float64
	// Rows is what part p sends to part q in one exchange, [K][K]: partial sums of nodes that q
	// owns, or their rows back.
	Rows [][]int64
}

// placing is a vertex cut at work.
type placing struct {
	*places
	parts int
	held  []int64 // [K] stored edges
	owner []int32 // [N]
	told  func(u, v, p int32)
}

// newPlacing returns a vertex cut of which nothing is placed; told, if given, hears of each stored
// edge.
func newPlacing(n, parts int, told func(u, v, p int32)) *placing {
	return &placing{newPlaces(n, parts), parts, make([]int64, parts), make([]int32, n), told}
}

// put gives the stored edge from u to v to part p.
func (w *placing) put(u, v, p int32) {
	w.places.put(u, p)
	w.places.put(v, p)
	w.held[p]++
	if w.told != nil {
		w.told(u, v, p)
	}
}

// replicas returns the quality of what is placed.
func (w *placing) replicas() Replicas {
	r := Replicas{Parts: w.parts, Nodes: int64(len(w.owner)), EdgeBalance: quality.Balance(w.held), Rows: make([][]int64, w.parts)}
	for _, n := range w.held {
		r.Edges += n
	}
	for p := range r.Rows {
		r.Rows[p] = make([]int64, w.parts)
	}
	here := make([]int64, w.parts)
	for v, owner := range w.owner {
		w.places.put(int32(v), owner)
		w.each(int32(v), func(p int32) {
			here[p]++
			r.Replicas++
			if p != owner {
				r.Rows[p][owner]++
			}
		})
	}
	r.ReplicaBalance = quality.Balance(here)
	if r.Nodes > 0 {
		r.Replication = float64(r.Replicas) / float64(r.Nodes)
	}
	return r
}

// places are the parts in which each node lies, a bit each.
type places struct {
	bytes int // of a node
	bits  []uint8
}

// placeBytes returns the bytes of a node's places.
func placeBytes(parts int) int64 { return int64(parts+7) / 8 }

func newPlaces(n, parts int) *places {
	each := placeBytes(parts)
	return &places{int(each), make([]uint8, int64(n)*each)}
}

func (a *places) put(v, p int32)      { a.bits[int(v)*a.bytes+int(p/8)] |= 1 << (p % 8) }
func (a *places) has(v, p int32) bool { return a.bits[int(v)*a.bytes+int(p/8)]>>(p%8)&1 == 1 }

func (a *places) each(v int32, f func(p int32)) {
	for k, b := range a.bits[int(v)*a.bytes:][:a.bytes] {
		for ; b != 0; b &= b - 1 {
			f(int32(8*k + bits.TrailingZeros8(b)))
		}
	}
}
