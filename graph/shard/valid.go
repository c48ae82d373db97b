package shard

import (
	"fmt"
	"math"
	"slices"
)

// Valid returns an error that names the first broken invariant of the shard, or nil. Consistent checks invariants
// between shards.
func (s *Shard) Valid() error {
	if s.Parts < 1 || s.Rank < 0 || s.Rank >= s.Parts || s.Owned < 0 || s.Owned > len(s.Global) ||
		int64(len(s.Global)) > s.Nodes {
		return fmt.Errorf("part %d of %d owns %d of %d sources, in a graph of %d nodes", s.Rank, s.Parts,
			s.Owned, len(s.Global), s.Nodes)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("part %d: %w", s.Rank, fmt.Errorf(format, args...))
	}
	if s.Adj.NumDst != s.Owned || s.Adj.NumSrc != len(s.Global) {
		return fail("adjacency of %d×%d for %d owned nodes and %d sources", s.Adj.NumDst, s.Adj.NumSrc, s.Owned,
			len(s.Global))
	}
	if err := s.tables().ValidTables(); err != nil {
		return fail("%w", err)
	}
	if err := s.validSources(); err != nil {
		return fail("%w", err)
	}
	if len(s.Boundary) != s.Parts || len(s.Boundary[s.Rank]) != 0 {
		return fail("there must be %d lists of boundary nodes, none for itself (got %d)", s.Parts, len(s.Boundary))
	}
	for q, nodes := range s.Boundary {
		if k := firstBad(nodes, 0, int32(s.Owned)); k >= 0 {
			return fail("boundary node %d towards part %d is %d, not ascending or out of [0, %d)", k, q, nodes[k],
				s.Owned)
		}
	}
	if k := firstBad(s.EdgeGlobal, 0, math.MaxInt32); k >= 0 || s.EdgeX.Cols > 0 && len(s.EdgeGlobal) != s.EdgeX.Rows {
		return fail("there must be %d ascending numbers of rows of edge columns (got %d, place %d)", s.EdgeX.Rows,
			len(s.EdgeGlobal), k)
	}
	return nil
}

// validSources checks the numbering: halo pointers that fit, and no node twice.
func (s *Shard) validSources() error {
	if len(s.HaloPtr) != s.Parts+1 || s.HaloPtr[0] != s.Owned || s.HaloPtr[s.Parts] != len(s.Global) ||
		!slices.IsSorted(s.HaloPtr) {
		return fmt.Errorf("halo pointers must be %d, ascending from %d to %d (got %v)", s.Parts+1, s.Owned,
			len(s.Global), s.HaloPtr)
	}
	if n := s.HaloPtr[s.Rank+1] - s.HaloPtr[s.Rank]; n != 0 {
		return fmt.Errorf("%d halo rows of the part itself", n)
	}
	for k, u := range s.Global {
		if u < 0 || u >= s.Nodes {
			return fmt.Errorf("source %d has global ID %d, out of [0, %d)", k, u, s.Nodes)
		}
	}
	all := slices.Clone(s.Global)
	slices.Sort(all)
	if k := firstBad(all, 0, s.Nodes); k >= 0 {
		return fmt.Errorf("node %d is a source twice", all[k])
	}
	return nil
}

// firstBad returns the first index of list whose value is out of [lo, hi) or not above its predecessor, or −1.
func firstBad[T int32 | int64](list []T, lo, hi T) int {
	for k, v := range list {
		if v < lo || v >= hi || k > 0 && list[k-1] >= v {
			return k
		}
	}
	return -1
}

// Consistent returns an error unless shards are all the parts of one partition, in order: every
// node is owned once, and what each part has as halo is what its owner sends.
func Consistent(shards []*Shard) error {
	owned := int64(0)
	for p, s := range shards {
		if s.Rank != p || s.Parts != len(shards) || s.Fingerprint != shards[0].Fingerprint ||
			s.Nodes != shards[0].Nodes {
			return fmt.Errorf("part %d of %d (%x) is not part %d of %d (%x)", s.Rank, s.Parts, s.Fingerprint[:4],
				p, len(shards), shards[0].Fingerprint[:4])
		}
		owned += int64(s.Owned)
	}
	if len(shards) == 0 || owned != shards[0].Nodes {
		return fmt.Errorf("%d parts own %d nodes, not the whole graph", len(shards), owned)
	}
	seen := make([]bool, owned)
	for p, s := range shards {
		for _, u := range s.Global[:s.Owned] {
			if seen[u] {
				return fmt.Errorf("node %d of part %d has another owner as well", u, p)
			}
			seen[u] = true
		}
		for q, of := range shards {
			halo := s.Global[s.HaloPtr[q]:s.HaloPtr[q+1]]
			if !slices.EqualFunc(halo, of.Boundary[p], func(u int64, i int32) bool { return of.Global[i] == u }) {
				return fmt.Errorf("the halo rows of part %d that part %d owns are not those that part %d sends",
					p, q, q)
			}
		}
	}
	return nil
}
