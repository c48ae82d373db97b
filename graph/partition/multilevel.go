package partition

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Multilevel is the policy of quality. It has the whole graph in memory: nodes are clustered and the clusters taken for
// nodes until few are left, these are bisected recursively, and on the way back each level is refined (after Meyerhenke,
// Sanders and Schulz, SEA 2014: clusters by label propagation within a size; Fiduccia and Mattheyses, DAC 1982: the best
// move first, undone past the best). The zero value makes the volume small, with at most 3 % more nodes in a
// part than its fair share, as does a goal that bounds nothing.
type Multilevel struct{ Goal Goal }

const (
	cycles = 2 // of coarsening and refinement, each but the first within the parts of the one before
	growth = 4 // nodes of the mean weight that a cluster takes
)

// effort is what is spent on a multilevel cycle.
type effort struct {
	coarsest int  // nodes a part at which coarsening ends
	sweeps   int  // of label propagation at a level
	tries    int  // of a bisection, of which the best counts
	rounds   int  // of refinement at a level, at most
	search   bool // moves past the best are tried, and undone
}

var thorough, quick = effort{30, 3, 6, 3, true}, effort{15, 1, 2, 1, false}

// Assign implements Policy.
func (m Multilevel) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	if g.Adj.NumEdges() > math.MaxInt32/2 {
		return nil, fmt.Errorf("partition: multilevel: %d edges, of at most %d: take restream:5", g.Adj.NumEdges(), math.MaxInt32/2)
	}
	goal := m.Goal
	if goal.Vertices == 0 && goal.Edges == 0 && goal.Train == 0 && goal.Bytes == 0 {
		goal.Vertices = even.Vertices
	}
	c, err := goal.caps(g, parts)
	if err != nil {
		return nil, err
	}
	fine := symmetric(&g.Adj)
	var owner []int32
	for cycle := range cycles {
		objective := goal.Objective
		if cycle < cycles-1 { // the cut is as good a start, and faster
			objective = EdgeCut
		}
		owner = cycleOnce(fine, c, owner, objective, thorough, key.Fold(uint64(cycle)))
	}
	if err := (&newLedger(fine, c, owner).holding).repair(memory{g}, owner); err != nil {
		return nil, err
	}
	return owner, nil
}

// cycleOnce coarsens l, within the parts of owner if there are any, and returns its partition, refined on each level.
func cycleOnce(l *level, c *caps, owner []int32, objective Objective, e effort, key rng.Key) []int32 {
	type step struct {
		level *level
		caps  *caps
		to    []int32 // [n] node of the next level
	}
	parts := len(c.share)
	var down []step
	var room level
	for l.n() > e.coarsest*parts {
		limit := c.grain(max(int64(e.coarsest/2), int64(l.n()/parts/growth)))
		to, n := cluster(l, c, owner, limit, e.sweeps, key.Fold(uint64(len(down))))
		if n > l.n()*19/20 {
			break // hubs and what hangs on them
		}
		down = append(down, step{l, c, to})
		if owner != nil {
			coarse := make([]int32, n)
			for v, at := range to {
				coarse[at] = owner[v]
			}
			owner = coarse
		}
		l, c = contract(l, to, n, &room), c.contract(to, n)
	}
	if owner == nil {
		owner = bisect(l, c, e, key.FoldString("bisect"))
	}
	for at := len(down); ; at-- {
		within := c
		if at > 0 {
			within = c.loosened()
		}
		b := newLedger(l, within, owner)
		b.spill()
		r := newRefiner(b)
		r.refine(e)
		if objective == Volume {
			r.volume()
		}
		if at == 0 {
			return owner
		}
		s := down[at-1]
		fine := make([]int32, s.level.n())
		for v, to := range s.to {
			fine[v] = owner[to]
		}
		l, c, owner = s.level, s.caps, fine
	}
}
