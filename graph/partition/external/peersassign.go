package external

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// assign finds the owners of all nodes.
func (p *sharing) assign() error {
	f, ok := p.job.Policy.(partition.Fennel)
	if !ok {
		return p.alone()
	}
	placer, err := partition.NewPlacer(f, p.Stored, p.team.Size, partition.Key(p.job.Meta.Seed))
	if err != nil {
		return err
	}
	w := &working{sharing: p, Placer: placer}
	p.owner = placer.Owner
	for pass := range f.Passes {
		for r := range p.team.Rounds {
			if err := w.round(r); err != nil {
				return err
			}
		}
		if pass > 0 {
			continue
		}
		for turn := range p.team.Size {
			if err := w.turn(turn); err != nil {
				return err
			}
		}
	}
	if err := placer.Check(); err != nil {
		return err
	}
	return p.tellOwners()
}

// tellOwners tells all peers who owns the nodes of the own slice.
func (p *sharing) tellOwners() error {
	var own []byte
	lo, hi := p.mine()
	for _, q := range p.owner[lo:hi] {
		own = binary.AppendUvarint(own, uint64(q))
	}
	in, err := p.tell("owners", own, binary.MaxVarintLen32*p.nodes)
	if err != nil {
		return err
	}
	for q, b := range in {
		for v := p.first[q]; v < p.first[q+1]; v++ {
			of, n := binary.Uvarint(b)
			if n <= 0 || of >= uint64(p.team.Size) {
				return fault(q, "owners", "node %d must have an owner of %d parts", v, p.team.Size)
			}
			p.owner[v], b = int32(of), b[n:]
		}
		if len(b) > 0 {
			return fault(q, "owners", "%d bytes too many", len(b))
		}
	}
	return nil
}

// alone assigns by a policy that looks at no edge: every peer finds all owners.
func (p *sharing) alone() error {
	if _, ok := p.job.Policy.(partition.Multilevel); ok {
		return fmt.Errorf("multilevel looks at the whole graph at once, which no peer of several has: " +
			"take restream:N, or partition it in one place")
	}
	work, err := partition.Begin(p.job.Policy, p.Stored, p.team.Size, partition.Key(p.job.Meta.Seed),
		func(bool) (*graph.Graph, error) { return p.hollow() })
	if err != nil {
		return err
	}
	p.owner = work.Owner
	return work.Step(0)
}

// working is a sharing whose nodes are being assigned by rules.
type working struct {
	*sharing
	*partition.Placer
	left []int32 // nodes of the first pass that fitted nowhere within this peer's room
}

// span is the nodes of peer q's slice that it assigns in round r.
func (w *working) span(q, r int) (lo, hi int32) {
	n, rounds := int64(w.first[q+1]-w.first[q]), int64(w.team.Rounds)
	return w.first[q] + int32(n*int64(r)/rounds), w.first[q] + int32(n*int64(r+1)/rounds)
}

// allow gives this peer its share of the room that is left in every part: that of the nodes still
// to come in the pass which are its own. So no part is ever over its bounds, whatever the others do
// at the same time.
func (w *working) allow(r int) {
	own, all := int64(0), int64(0)
	for q := range w.team.Size {
		lo, _ := w.span(q, r)
		n := int64(w.first[q+1] - lo)
		if all += n; q == w.team.Rank {
			own = n
		}
	}
	w.Allow(float64(own) / float64(max(all, 1)))
}

// round assigns the nodes of round r and tells of it.
func (w *working) round(r int) error {
	w.allow(r)
	lo, hi := w.span(w.team.Rank, r)
	err := w.runsIn(int(lo), int(hi), true, func(run *partition.Run) error {
		for i := range run.N() {
			if !w.Place(run, i) {
				w.left = append(w.left, run.First+int32(i))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	in, err := w.exchange("masters", func(q int) []int32 { return within(w.wantedBy[q], lo, hi) })
	if err != nil {
		return err
	}
	for q, b := range in {
		if q == w.team.Rank {
			continue
		}
		lo, hi := w.span(q, r)
		if err := w.learn(q, b, within(w.wants[q], lo, hi)); err != nil {
			return err
		}
	}
	return nil
}

// turn lets one peer after another place what had no room, now within the parts' own bounds.
func (w *working) turn(q int) error {
	w.Allow(1)
	me, left := w.team.Rank, []int32(nil)
	if q == me {
		left, w.left = w.left, nil
		for _, v := range left {
			err := w.runsIn(int(v), int(v)+1, true, func(run *partition.Run) error {
				// Where the rule puts it there may be no room: a hub that is to stay with its reader.
				if w.Place(run, 0) || w.PlaceAnywhere(run, 0) {
					return nil
				}
				return fmt.Errorf("found no room for node %d: raise the bounds, or partition the "+
					"graph in one place", v)
			})
			if err != nil {
				return err
			}
		}
	}
	in, err := w.exchange("masters of what is left", func(of int) []int32 {
		if q != me {
			return nil
		}
		return common(w.wantedBy[of], left)
	})
	if err != nil {
		return err
	}
	for of, b := range in {
		var missing []int32
		if of == me {
			continue
		}
		if of == q {
			for _, v := range w.wants[of] {
				if w.Owner[v] < 0 {
					missing = append(missing, v)
				}
			}
		}
		if err := w.learn(of, b, missing); err != nil {
			return err
		}
	}
	return nil
}

// exchange tells every peer what this one added to the parts, and the owners of those nodes that
// are for it: varints.
func (w *working) exchange(what string, nodes func(q int) []int32) ([][]byte, error) {
	var sums []byte
	for _, x := range w.Added() {
		sums = binary.AppendVarint(sums, x)
	}
	out := make([][]byte, w.team.Size)
	for q := range out {
		if q == w.team.Rank {
			continue
		}
		out[q] = slices.Clone(sums)
		for _, v := range nodes(q) {
			out[q] = binary.AppendUvarint(out[q], uint64(w.Owner[v]+1))
		}
	}
	return w.swap(what, out, binary.MaxVarintLen64*(w.Numbers()+w.nodes))
}

// learn takes what peer q told: what it added to the parts, and the owners of nodes.
func (w *working) learn(q int, b []byte, nodes []int32) error {
	added := make([]int64, w.Numbers())
	for k := range added {
		x, n := binary.Varint(b)
		if n <= 0 {
			return fault(q, "masters", "it ends within what was added to the parts: number %d of %d", k, len(added))
		}
		added[k], b = x, b[n:]
	}
	if err := w.Learn(added); err != nil {
		return fault(q, "masters", "%w", err)
	}
	for _, v := range nodes {
		p, n := binary.Uvarint(b)
		if n <= 0 || p > uint64(w.team.Size) {
			return fault(q, "masters", "node %d: no owner of %d parts", v, w.team.Size)
		}
		w.Owner[v] = int32(p) - 1
		b = b[n:]
	}
	if len(b) > 0 {
		return fault(q, "masters", "%d bytes too many", len(b))
	}
	return nil
}

// within returns the part of an ascending list that is in [lo, hi).
func within(list []int32, lo, hi int32) []int32 {
	from, _ := slices.BinarySearch(list, lo)
	to, _ := slices.BinarySearch(list, hi)
	return list[from:to]
}

// common returns what is in both ascending lists.
func common(a, b []int32) (both []int32) {
	for _, v := range a {
		if _, ok := slices.BinarySearch(b, v); ok {
			both = append(both, v)
		}
	}
	return both
}
