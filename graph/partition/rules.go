package partition

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heddle-gnn/heddle/graph"
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

// Rules is a policy in the two rules of CuSP (Hoang et al., IPDPS 2019): who owns a vertex and who holds an edge.
type Rules struct {
	State  State
	Vertex func(v int32, s *View) int32        // owner of v, in [0, K)
	Edge   func(src, dst int32, s *View) int32 // holder of an edge into dst; nil: Destination, the only one that trainers take
	Goal   Goal
	Passes int // Masters: how often the nodes are assigned, each time but the first from where they were; 0: once
}

// Destination is the edge rule of an edge cut: an edge lies with the owner of its destination.
func Destination(_, dst int32, s *View) int32 { return s.Owner(dst) }

// View is what a rule may see: the graph, and of the assignment what the rule's State says.
type View struct {
	Key   rng.Key
	g     *graph.Graph
	state State
	b     *ledger
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
func (s *View) Share(p int32) float64 { return s.b.caps.share[p] }

// Most returns how many nodes part p may hold by the goal: all, where it does not say.
func (s *View) Most(p int32) int64 { return s.most[p] }

// Before returns the number of stored edges into nodes below v.
func (s *View) Before(v int32) int64 { return s.g.Adj.RowPtr[v] }

// Sources returns the nodes from which an edge goes to v.
func (s *View) Sources(v int32) []int32 { return s.g.Adj.Col[s.g.Adj.RowPtr[v]:s.g.Adj.RowPtr[v+1]] }

// Load returns what part p holds so far, without the node at hand.
func (s *View) Load(p int32) Load {
	s.need(Loads)
	return s.load[p]
}

// Owner returns the owner of u so far, or −1.
func (s *View) Owner(u int32) int32 {
	s.need(Masters)
	return s.b.owner[u]
}

// Near returns how many of v's sources each part owns so far, [K]; it is overwritten by the next call.
func (s *View) Near(v int32) []int32 {
	s.need(Masters)
	clear(s.near)
	for _, u := range s.Sources(v) {
		s.near[s.b.owner[u]+1]++
	}
	return s.near[1:]
}

// Best returns the part of highest score, the least full (for its capacity) and lowest of several, of those where v
// fits by the goal. Where it fits nowhere, it returns that of most room: what does not fit is moved in the end.
func (s *View) Best(v int32, score func(p int32) float64) int32 {
	s.need(Loads)
	best, top := int32(-1), 0.0
	for p := range int32(len(s.load)) {
		switch x := score(p); {
		case best >= 0 && x < top || !s.b.fits(v, p):
		case best < 0 || x > top || float64(s.load[p].Vertices)*s.Share(best) < float64(s.load[best].Vertices)*s.Share(p):
			best, top = p, x
		}
	}
	if best >= 0 {
		return best
	}
	best = 0
	for p := range int32(len(s.load)) {
		if s.b.room(v, p) < s.b.room(v, best) {
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
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	if r.Passes > 1 && r.State < Masters {
		return nil, fmt.Errorf("partition: %d passes of a rule that does not read masters are as good as one", r.Passes)
	}
	c, err := r.Goal.caps(g, parts)
	if err != nil {
		return nil, err
	}
	owner := slices.Repeat([]int32{-1}, g.N())
	s := &View{Key: key, g: g, state: r.State, load: make([]Load, parts), near: make([]int32, parts+1),
		b:     newLedger(&level{ptr: g.Adj.RowPtr, col: g.Adj.Col}, c, owner),
		total: Load{int64(g.N()), int64(g.Adj.NumEdges())}}
	for p := range parts {
		s.most = append(s.most, s.total.Vertices)
		for d, b := range c.bounds {
			if b.name == "vertices" {
				s.most[p] = c.most[p*len(c.bounds)+d]
			}
		}
	}
	if r.State == None {
		err = r.inParallel(s)
	} else {
		err = r.inOrder(s)
	}
	if err != nil {
		return nil, err
	}
	if r.State == None {
		if err = c.check(owner); err != nil {
			err = fmt.Errorf("partition: %w", err)
		}
	} else {
		err = s.b.repair()
	}
	if err == nil && r.Edge != nil {
		err = r.edgeCut(s)
	}
	if err != nil {
		return nil, err
	}
	return owner, nil
}

// inOrder assigns the nodes one after another, Passes times.
func (r Rules) inOrder(s *View) error {
	for range max(r.Passes, 1) {
		for v := range int32(s.g.N()) {
			edges := int64(len(s.Sources(v)))
			if p := s.b.owner[v]; p >= 0 {
				s.b.add(v, p, -1)
				s.load[p].Vertices--
				s.load[p].Edges -= edges
			}
			p := r.Vertex(v, s)
			if err := inRange(v, p, s.Parts()); err != nil {
				return err
			}
			s.b.owner[v] = p
			s.b.add(v, p, 1)
			s.load[p].Vertices++
			s.load[p].Edges += edges
		}
	}
	return nil
}

// inParallel assigns the nodes in runs, as many as there are processors.
func (r Rules) inParallel(s *View) error {
	n, runs := s.g.N(), runtime.GOMAXPROCS(0)
	faults := make([]error, runs)
	var wait sync.WaitGroup
	for k := range runs {
		wait.Go(func() {
			for v := int32(n * k / runs); v < int32(n*(k+1)/runs); v++ {
				s.b.owner[v] = r.Vertex(v, s)
				if err := inRange(v, s.b.owner[v], s.Parts()); err != nil {
					faults[k] = err
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range faults { // that of the lowest node, whatever the runs
		if err != nil {
			return err
		}
	}
	return nil
}

func inRange(v, p int32, parts int) error {
	if p < 0 || int(p) >= parts {
		return fmt.Errorf("partition: the rule gives node %d to part %d, out of [0, %d)", v, p, parts)
	}
	return nil
}

const vertexCuts = "vertex cuts need full-batch mode, which is not there yet"

// edgeCut refuses an edge rule that puts an edge elsewhere than with the owner of its destination.
func (r Rules) edgeCut(s *View) error {
	s.state = Masters // all are known by now
	for v := range int32(s.g.N()) {
		for _, u := range s.Sources(v) {
			if p := r.Edge(u, v, s); p != s.b.owner[v] {
				return fmt.Errorf("partition: the rule puts the edge from node %d to %d in part %d, and part %d owns %d: %s", u, v, p, s.b.owner[v], v, vertexCuts)
			}
		}
	}
	return nil
}
