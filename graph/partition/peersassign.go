package partition

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// assign finds the owners of the own slice and of what its edges come from.
func (p *sharing) assign() error {
	rules, ok := p.job.Policy.(Rules)
	switch {
	case !ok:
		return p.alone()
	case rules.Edge != nil:
		return fmt.Errorf("partition: rules with an edge rule are not streamed: %s", vertexCuts)
	}
	a, err := rules.assigner(p.Stored, p.team.Size, Key(p.job.Meta.Seed))
	if err != nil {
		return err
	}
	w := &working{sharing: p, assigner: a, parts: make([]Load, p.team.Size), held: make([]int64, len(a.view.hold.used)),
		bounds: slices.Clone(a.view.hold.most)}
	own := *a.view.hold.limits
	own.most = slices.Clone(own.most)
	a.view.hold.limits = &own
	p.owner = a.owner
	if rules.terms != nil {
		w.greedy = newGreedy(a)
	}
	passes := max(rules.Passes, 1)
	for pass := range passes {
		for r := range p.team.Rounds {
			if err := w.round(r); err != nil {
				return err
			}
		}
		if pass > 0 || rules.State == None {
			continue
		}
		for turn := range p.team.Size {
			if err := w.turn(turn); err != nil {
				return err
			}
		}
	}
	copy(own.most, w.bounds)
	if err := a.view.hold.check(); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return nil
}

// alone assigns by a policy that looks at no edge: every peer finds all owners.
func (p *sharing) alone() error {
	policy, goal := p.job.Policy, Goal{}
	if c, ok := policy.(checked); ok {
		policy, goal = c.Policy, c.goal
	}
	if _, ok := policy.(Multilevel); ok {
		return fmt.Errorf("partition: multilevel looks at the whole graph at once, which no peer of several has: take restream:N, or partition it in one place")
	}
	g, err := p.hollow()
	if err != nil {
		return err
	}
	if p.owner, err = policy.Assign(g, p.team.Size, Key(p.job.Meta.Seed)); err != nil {
		return err
	}
	l, err := goal.limits(p.Stored, p.team.Size)
	if err != nil {
		return err
	}
	h, err := l.holding(p.Stored, p.owner)
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return nil
}

// working is a sharing whose nodes are being assigned by rules. What the parts hold by the assigner's view is what all
// held when the last round ended, and what this peer did since.
type working struct {
	*sharing
	*assigner
	parts  []Load  // [K] added by this peer since the last round ended
	held   []int64 // [K×D] likewise, of the bounded weights
	bounds []int64 // [K×D] of the goal
	greedy *greedy // nil: the rule is not greedy
	left   []int32 // nodes of the first pass that fitted nowhere within this peer's room
}

// span is the nodes of peer q's slice that it assigns in round r.
func (w *working) span(q, r int) (lo, hi int32) {
	n, rounds := int64(w.first[q+1]-w.first[q]), int64(w.team.Rounds)
	return w.first[q] + int32(n*int64(r)/rounds), w.first[q] + int32(n*int64(r+1)/rounds)
}

// allow gives this peer its share of the room that is left in every part: that of the nodes still to come in the pass
// which are its own. So no part is ever over its bounds, whatever the others do at the same time.
func (w *working) allow(r int) {
	own, all := int64(0), int64(0)
	for q := range w.team.Size {
		lo, _ := w.span(q, r)
		n := int64(w.first[q+1] - lo)
		if all += n; q == w.team.Rank {
			own = n
		}
	}
	h := w.view.hold
	for k, most := range w.bounds {
		h.most[k] = h.used[k] + int64(float64(max(most-h.used[k], 0))*(float64(own)/float64(max(all, 1))))
	}
}

// round assigns the nodes of round r and tells of it.
func (w *working) round(r int) error {
	w.allow(r)
	lo, hi := w.span(w.team.Rank, r)
	err := w.own(lo, hi, true, func(run *run) error {
		for i := range run.n() {
			if placed, err := w.place(run, i); err != nil {
				return err
			} else if !placed {
				w.left = append(w.left, run.first+int32(i))
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

// place assigns the run's node i, if there is room: a node that had an owner keeps it where there is none.
func (w *working) place(run *run, i int) (bool, error) {
	s := w.view
	s.run = run
	v, edges := run.first+int32(i), run.edges(i)
	s.hold.weigh(s.w, run, i)
	before := w.assigner.owner[v]
	if before >= 0 {
		w.put(before, edges, -1)
	}
	p := w.choose(v, run.sources(i))
	if err := inRange(v, p, s.Parts()); err != nil {
		return false, err
	}
	if w.rules.State != None && !s.hold.fits(s.w, p) {
		if p = before; p < 0 {
			return false, nil
		}
	}
	w.assigner.owner[v] = p
	w.put(p, edges, 1)
	return true, nil
}

// choose returns where the rule puts v, the node at hand, which has these sources and is in no part.
func (w *working) choose(v int32, sources []int32) int32 {
	switch {
	case w.greedy == nil:
		return w.rules.Vertex(v, w.view)
	case w.rules.stay > 0 && int64(len(sources)) > w.rules.stay:
		return contiguousEdges(v, w.view)
	}
	return w.greedy.best(-1, sources)
}

// put counts the node at hand, of so many edges, in part p, sign times.
func (w *working) put(p int32, edges, sign int64) {
	s := w.view
	s.hold.add(s.w, p, sign)
	for d, x := range s.w {
		w.held[int(p)*len(s.w)+d] += sign * x
	}
	for _, l := range []*Load{&s.load[p], &w.parts[p]} {
		l.Vertices += sign
		l.Edges += sign * edges
	}
	if w.greedy != nil {
		w.greedy.weigh(p)
	}
}

// turn lets one peer after another place what had no room, now within the parts' own bounds.
func (w *working) turn(q int) error {
	copy(w.view.hold.most, w.bounds)
	me, left := w.team.Rank, []int32(nil)
	if q == me {
		left, w.left = w.left, nil
		for _, v := range left {
			err := w.own(v, v+1, true, func(run *run) error {
				placed, err := w.place(run, 0)
				if err == nil && !placed { // where the rule puts it there is none: a hub that is to stay with its reader
					if p := w.view.roomiest(-1); w.view.hold.fits(w.view.w, p) {
						w.assigner.owner[v] = p
						w.put(p, run.edges(0), 1)
						return nil
					}
					return fmt.Errorf("partition: found no room for node %d: raise the bounds, or partition the graph in one place", v)
				}
				return err
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
				if w.assigner.owner[v] < 0 {
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

// exchange tells every peer what this one added to the parts, and the owners of those nodes that are for it: varints.
func (w *working) exchange(what string, nodes func(q int) []int32) ([][]byte, error) {
	var sums []byte
	for _, l := range w.parts {
		sums = binary.AppendVarint(binary.AppendVarint(sums, l.Vertices), l.Edges)
	}
	for _, x := range w.held {
		sums = binary.AppendVarint(sums, x)
	}
	clear(w.parts)
	clear(w.held)
	out := make([][]byte, w.team.Size)
	for q := range out {
		if q == w.team.Rank {
			continue
		}
		out[q] = slices.Clone(sums)
		for _, v := range nodes(q) {
			out[q] = binary.AppendUvarint(out[q], uint64(w.assigner.owner[v]+1))
		}
	}
	return w.swap(what, out, binary.MaxVarintLen64*(2*w.team.Size+len(w.held)+w.nodes))
}

// learn takes what peer q told: what it added to the parts, and the owners of nodes.
func (w *working) learn(q int, b []byte, nodes []int32) error {
	s := w.view
	number := func() (v int64, ok bool) {
		v, n := binary.Varint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	for p := range s.load {
		v, _ := number()
		e, ok := number()
		if !ok {
			return fault(q, "masters", "it ends within the loads of part %d", p)
		}
		s.load[p].Vertices += v
		s.load[p].Edges += e
	}
	for k := range s.hold.used {
		v, ok := number()
		if !ok {
			return fault(q, "masters", "it ends within what the parts hold")
		}
		s.hold.used[k] += v
	}
	for p, l := range s.load {
		if l.Vertices < 0 || l.Vertices > s.total.Vertices || l.Edges < 0 || l.Edges > s.total.Edges {
			return fault(q, "masters", "part %d would hold %+v of %+v", p, l, s.total)
		}
		if w.greedy != nil {
			w.greedy.weigh(int32(p))
		}
	}
	for _, v := range nodes {
		p, n := binary.Uvarint(b)
		if n <= 0 || p > uint64(w.team.Size) {
			return fault(q, "masters", "node %d: no owner of %d parts", v, w.team.Size)
		}
		w.assigner.owner[v] = int32(p) - 1
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
