package partition

import (
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// Placer places the nodes of one source by Fennel where others place other nodes of it at the same time: what the parts
// hold is what all held when the others were last heard of, and what was placed here since.
type Placer struct {
	Owner []int32 // [N]; −1: not known here

	*greedy
	bounds []int64 // [K×D] of the goal
	loads  []Load  // [K] added here since Added
	held   []int64 // [K×D] likewise, of the bounded weights
}

// NewPlacer returns a placer for which the parts are empty.
func NewPlacer(f Fennel, src Source, parts int, key rng.Key) (*Placer, error) {
	a, err := f.assigner(src, parts, key)
	if err != nil {
		return nil, err
	}
	own := *a.hold.limits
	p := &Placer{Owner: a.owner, loads: make([]Load, parts), held: make([]int64, len(own.most)),
		bounds: slices.Clone(own.most)}
	for k := range p.bounds {
		p.bounds[k] += own.spare[k%len(own.bounds)]
	}
	own.most = slices.Clone(p.bounds)
	a.hold.limits = &own
	p.greedy = newGreedy(a)
	return p, nil
}

// Allow lets this placer fill so much of the room that is left in every part: shares of all placers that add up to 1
// keep the goal, whatever they place at the same time. A share of 1 is all the room.
func (p *Placer) Allow(share float64) {
	h := p.hold
	if share == 1 {
		copy(h.most, p.bounds)
		return
	}
	for k, most := range p.bounds {
		h.most[k] = h.used[k] + int64(float64(max(most-h.used[k], 0))*share)
	}
}

// Place places the run's node i, if there is room: a node that had an owner keeps it where there is none.
func (p *Placer) Place(run *Run, i int) bool {
	v, edges := run.First+int32(i), run.Edges(i)
	p.hold.weigh(p.w, run, i)
	before := p.Owner[v]
	if before >= 0 {
		p.put(before, edges, -1)
	}
	to := p.best(-1, run.Sources(i))
	if !p.hold.fits(p.w, to) {
		if to = before; to < 0 {
			return false
		}
	}
	p.Owner[v] = to
	p.put(to, edges, 1)
	return true
}

// PlaceAnywhere places the run's node i, which Place did not, where there is most room, if that is enough.
func (p *Placer) PlaceAnywhere(run *Run, i int) bool {
	p.hold.weigh(p.w, run, i)
	to := p.roomiest(-1)
	if !p.hold.fits(p.w, to) {
		return false
	}
	p.Owner[run.First+int32(i)] = to
	p.put(to, run.Edges(i), 1)
	return true
}

// put counts the node at hand, of so many edges, in part to, sign times.
func (p *Placer) put(to int32, edges, sign int64) {
	p.greedy.put(to, edges, sign)
	for d, x := range p.w {
		p.held[int(to)*len(p.w)+d] += sign * x
	}
	p.loads[to].Vertices += sign
	p.loads[to].Edges += sign * edges
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
	for part := range p.load {
		l := &p.load[part]
		l.Vertices += added[2*part]
		l.Edges += added[2*part+1]
		if l.Vertices < 0 || l.Vertices > p.total.Vertices || l.Edges < 0 || l.Edges > p.total.Edges {
			return fmt.Errorf("part %d would hold %+v of %+v", part, *l, p.total)
		}
		p.weigh(int32(part))
	}
	for k, x := range added[2*len(p.load):] {
		p.hold.used[k] += x
	}
	return nil
}

// Check returns an error that names the first part which holds more than the goal allows, or nil.
func (p *Placer) Check() error {
	p.Allow(1)
	return p.hold.check()
}
