package partition

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// Placer places the nodes of one source by Rules where others place other nodes of it at the same time: what the parts
// hold is what all held when the others were last heard of, and what was placed here since.
type Placer struct {
	Owner []int32 // [N]; −1: not known here

	*assigner
	greedy *greedy // nil: the rule is not greedy
	bounds []int64 // [K×D] of the goal
	loads  []Load  // [K] added here since Added
	held   []int64 // [K×D] likewise, of the bounded weights
}

// NewPlacer returns a placer for which the parts are empty.
func NewPlacer(r Rules, src Source, parts int, key rng.Key) (*Placer, error) {
	a, err := r.assigner(src, parts, key)
	if err != nil {
		return nil, err
	}
	h := a.view.hold
	p := &Placer{Owner: a.owner, assigner: a, loads: make([]Load, parts), held: make([]int64, len(h.used))}
	own := *h.limits
	p.bounds = slices.Clone(own.most)
	for k := range p.bounds {
		p.bounds[k] += own.spare[k%len(own.bounds)]
	}
	own.most = slices.Clone(p.bounds)
	h.limits = &own
	if r.terms != nil {
		p.greedy = newGreedy(a)
	}
	return p, nil
}

// Allow lets this placer fill so much of the room that is left in every part: shares of all placers that add up to 1 keep
// the goal, whatever they place at the same time. A share of 1 is all the room.
func (p *Placer) Allow(share float64) {
	h := p.view.hold
	if share == 1 {
		copy(h.most, p.bounds)
		return
	}
	for k, most := range p.bounds {
		h.most[k] = h.used[k] + int64(float64(max(most-h.used[k], 0))*share)
	}
}

// Place places the run's node i, if there is room: a node that had an owner keeps it where there is none.
func (p *Placer) Place(run *Run, i int) (bool, error) {
	s := p.view
	s.run = run
	v, edges := run.First+int32(i), run.Edges(i)
	s.hold.weigh(s.w, run, i)
	before := p.Owner[v]
	if before >= 0 {
		p.put(before, edges, -1)
	}
	to := p.choose(v, run.Sources(i))
	if err := inRange(v, to, s.Parts()); err != nil {
		return false, err
	}
	if p.rules.State != None && !s.hold.fits(s.w, to) {
		if to = before; to < 0 {
			return false, nil
		}
	}
	p.Owner[v] = to
	p.put(to, edges, 1)
	return true, nil
}

// PlaceAnywhere places the run's node i, which Place did not, where there is most room, if that is enough.
func (p *Placer) PlaceAnywhere(run *Run, i int) bool {
	s := p.view
	s.hold.weigh(s.w, run, i)
	to := s.roomiest(-1)
	if !s.hold.fits(s.w, to) {
		return false
	}
	p.Owner[run.First+int32(i)] = to
	p.put(to, run.Edges(i), 1)
	return true
}

// choose returns where the rule puts v, the node at hand, which has these sources and is in no part.
func (p *Placer) choose(v int32, sources []int32) int32 {
	if p.greedy == nil {
		return p.rules.Vertex(v, p.view)
	}
	return p.greedy.best(-1, sources)
}

// put counts the node at hand, of so many edges, in part to, sign times.
func (p *Placer) put(to int32, edges, sign int64) {
	s := p.view
	s.hold.add(s.w, to, sign)
	for d, x := range s.w {
		p.held[int(to)*len(s.w)+d] += sign * x
	}
	for _, l := range []*Load{&s.load[to], &p.loads[to]} {
		l.Vertices += sign
		l.Edges += sign * edges
	}
	if p.greedy != nil {
		p.greedy.weigh(to)
	}
}

// Added returns what was added to the parts here since the last call, for the other placers' Learn: nodes and edges of
// every part, then the bounded weights.
func (p *Placer) Added() []int64 {
	added := make([]int64, 0, p.Numbers())
	for _, l := range p.loads {
		added = append(added, l.Vertices, l.Edges)
	}
	added = append(added, p.held...)
	clear(p.loads)
	clear(p.held)
	return added
}

// Numbers returns how many numbers Added returns.
func (p *Placer) Numbers() int { return 2*len(p.loads) + len(p.held) }

// Learn adds what another placer's Added returned.
func (p *Placer) Learn(added []int64) error {
	if len(added) != p.Numbers() {
		return fmt.Errorf("numbers of what the parts hold must be %d (got %d)", p.Numbers(), len(added))
	}
	s := p.view
	for part := range s.load {
		l := &s.load[part]
		l.Vertices += added[2*part]
		l.Edges += added[2*part+1]
		if l.Vertices < 0 || l.Vertices > s.total.Vertices || l.Edges < 0 || l.Edges > s.total.Edges {
			return fmt.Errorf("part %d would hold %+v of %+v", part, *l, s.total)
		}
	}
	for k, x := range added[2*len(s.load):] {
		s.hold.used[k] += x
	}
	if p.greedy != nil {
		for part := range s.load {
			p.greedy.weigh(int32(part))
		}
	}
	return nil
}

// Check returns an error that names the first part which holds more than the goal allows, or nil.
func (p *Placer) Check() error {
	p.Allow(1)
	return p.view.hold.check()
}
