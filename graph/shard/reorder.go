package shard

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// Reorder returns the shards of the same partition, all of them in order, with reordered owned nodes: position k gets
// node order[k], for the order that `by` returns for the edges between them. Halo rows follow their owners' order.
// Nodes keep their global IDs and all else. The fingerprint changes: shards of the two do not fit together.
func Reorder(shards []*Shard, by func(inner *graph.CSR) (order []int32)) []*Shard {
	place := make([][]int32, len(shards)) // [part] new index of each owned node
	list := make([][]int32, len(shards))
	h := sha256.New()
	sections := []section.Section{section.Array("partition", shards[0].Fingerprint[:])}
	for p, s := range shards {
		list[p] = by(s.Adj.Within(s.Owned))
		place[p] = make([]int32, s.Owned)
		for k, i := range list[p] {
			place[p][i] = int32(k)
		}
		sections = append(sections, section.Array(fmt.Sprintf("order/%d", p), list[p]))
	}
	if err := section.Encode(h, "order", sections); err != nil {
		panic(err) // as in graph.Graph.Digest
	}
	out := make([]*Shard, len(shards))
	for p, s := range shards {
		out[p] = s.reordered(shards, list[p], place)
		copy(out[p].Fingerprint[:], h.Sum(nil))
	}
	return out
}

// reordered returns s with its owned nodes in that order. place holds where each part puts its
// nodes.
func (s *Shard) reordered(shards []*Shard, order []int32, place [][]int32) *Shard {
	out := *s
	source := slices.Clone(order) // source k of the result is source[k] of s
	out.Boundary = make([][]int32, s.Parts)
	for q, of := range shards {
		lo := s.HaloPtr[q]
		from := of.Boundary[s.Rank] // owned by q, in the order of s's halo rows
		halo := mat.EveryRow(len(from))
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
	out.Global = make([]int64, len(source))
	for k, j := range source {
		to[j] = int32(k)
		out.Global[k] = s.Global[j]
	}
	out.Adj = *s.Adj.Relabel(order, to, len(source))
	out.Typed = relabelled(&s.Typed, order, to, len(source))
	out.setTables(s.tables().SelectNodes(order))
	return &out
}
