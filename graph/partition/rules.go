package partition

import (
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// State is what a rule reads of the assignment so far. The less it reads, the less machines that partition together
// have to tell each other, and the more of it runs at once.
type State uint8

// The states.
const (
	None    State = iota // the graph alone: nodes are assigned in any order, in parallel
	Loads                // what each part holds so far: nodes are assigned in the order of their IDs
	Masters              // the owners so far as well
)

// Rules is a policy given by a rule, who owns a vertex, as in CuSP (Hoang et al., IPDPS 2019). Its other rule, who holds
// an edge, makes a vertex cut, of which the decision on work says why there is none (docs/adr/0066-workers-are-balanced-by-work.md).
type Rules struct {
	State  State
	Vertex func(v int32, s *View) int32 // owner of v, in [0, K)
	Goal   Goal
	Passes int // Masters: how often the nodes are assigned, each time but the first from where they were; 0: once

	// terms of part p, that holds load, are what a greedy pass takes in place of Vertex.
	terms    func(s *View, p int32, load Load) (gain, cost float64)
	clusters bool // the first passes cluster: see clusters.go
}

// View is what a rule may see: the node at hand, and of the assignment what the rule's State says.
type View struct {
	Key   rng.Key
	rules *Rules
	state State
	hold  *holding
	owner []int32
	run   *Run
	w     []int64 // [D] weights of the node at hand
	load  []Load
	most  []int64 // [K] nodes
	total Load
	near  []int32 // [1+K]
}

// Load is what a part holds.
type Load struct{ Vertices, Edges int64 }

// Parts returns K.
func (s *View) Parts() int { return len(s.load) }

// Total returns what there is to hold; an undirected edge counts twice.
func (s *View) Total() Load { return s.total }

// Share returns part p's fair share of the whole, 1/K where all parts are alike.
func (s *View) Share(p int32) float64 { return s.hold.share[p] }

// Most returns how many nodes part p may hold by the goal: all, where it does not say.
func (s *View) Most(p int32) int64 { return s.most[p] }

// Before returns the number of stored edges into nodes below v, the node at hand.
func (s *View) Before(v int32) int64 { return s.run.Ptr[v-s.run.First] }

// Degree returns the number of edges into v, the node at hand.
func (s *View) Degree(v int32) int64 { return s.run.Edges(int(v - s.run.First)) }

// Sources returns the nodes from which an edge goes to v, the node at hand: a graph that is read from a file has no
// others in memory.
func (s *View) Sources(v int32) []int32 { return s.run.Sources(int(v - s.run.First)) }

// Load returns what part p holds so far, without the node at hand.
func (s *View) Load(p int32) Load {
	s.need(Loads)
	return s.load[p]
}

// Owner returns the owner of u so far, or −1.
func (s *View) Owner(u int32) int32 {
	s.need(Masters)
	return s.owner[u]
}

// Near returns how many sources of v, the node at hand, each part owns so far, [K]; it is overwritten by the next call.
func (s *View) Near(v int32) []int32 {
	s.need(Masters)
	clear(s.near)
	near, owner := s.near, s.owner
	for _, u := range s.Sources(v) {
		near[owner[u]+1]++
	}
	return near[1:]
}

// Best returns the part of highest score, the least full (for its capacity) and lowest of several, of those where v, the node at
// hand, fits by the goal. Where it fits nowhere, it returns that of most room: what does not fit is moved in the end.
func (s *View) Best(v int32, score func(p int32) float64) int32 {
	s.need(Loads)
	best, top := int32(-1), 0.0
	for p := range int32(len(s.load)) {
		switch x := score(p); {
		case best >= 0 && x < top || !s.hold.fits(s.w, p):
		case best < 0 || x > top || float64(s.load[p].Vertices)*s.Share(best) < float64(s.load[best].Vertices)*s.Share(p):
			best, top = p, x
		}
	}
	if best >= 0 {
		return best
	}
	return s.roomiest(-1)
}

// roomiest returns the part of most room for the node at hand, which is in part own, or in none.
func (s *View) roomiest(own int32) (best int32) {
	room := func(p int32) float64 {
		if p == own {
			return s.hold.room(nil, p)
		}
		return s.hold.room(s.w, p)
	}
	for p := range int32(len(s.load)) {
		if room(p) < room(best) {
			best = p
		}
	}
	return best
}

func (s *View) need(state State) {
	if s.state < state {
		panic(fmt.Sprintf("partition: a rule of state %d reads what is of state %d", s.state, state))
	}
}

// Assign implements Policy. It refuses an assignment that breaks the goal: nodes are moved to keep it only where the
// rule reads loads, and so means to balance.
func (r Rules) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := shard.CheckParts(g.N(), parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	a, err := r.owners(Memory{g}, parts, key)
	if err != nil {
		return nil, err
	}
	return a.owner, nil
}

// owners assigns the nodes of a source, all steps of it.
func (r Rules) owners(src Source, parts int, key rng.Key) (*assigner, error) {
	a, err := r.assigner(src, parts, key)
	if err != nil {
		return nil, err
	}
	for k := range r.steps() {
		if err := a.step(k); err != nil {
			return nil, err
		}
	}
	return a, nil
}
