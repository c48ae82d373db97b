package partition

import (
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// Multilevel is the policy with the best quality. It has the whole graph in memory. Nodes are clustered, and clusters
// become nodes, until few are left; these are bisected recursively, and on the way back each level is refined. Clusters
// are found by label propagation with bounded sizes (after Meyerhenke, Sanders and Schulz, SEA 2014). Refinement makes
// the best move first and undoes moves after the best state (Fiduccia and Mattheyses, DAC 1982). The zero value, or a
// goal without bounds, minimizes the volume, with at most 3 % more work in a part than its fair share.
type Multilevel struct{ Goal Goal }

const growth = 4 // nodes of mean weight in a cluster

// effort is the time to spend on quality. A second run within the parts of the first (V-cycles) was tried: it takes as
// long as the first, and improves nothing. More tries, rounds and nodes of the coarsest level take a quarter more time
// and reduce the volume by less than a hundredth.
type effort struct {
	coarsest int  // nodes a part at which coarsening ends
	sweeps   int  // passes of label propagation at a level
	tries    int  // tries of a bisection; the best one counts
	rounds   int  // rounds of refinement at a level, at most
	search   bool // try moves after the best state, and undo them
}

var thorough, quick = effort{20, 3, 4, 2, true}, effort{15, 2, 2, 1, false}

// Assign implements Policy.
func (m Multilevel) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := shard.CheckParts(g.N(), parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	if g.Adj.NumEdges() > math.MaxInt32/2 {
		return nil, fmt.Errorf("multilevel: %d edges, of at most %d: take restream:5", g.Adj.NumEdges(),
			math.MaxInt32/2)
	}
	goal := m.Goal
	if max(goal.Vertices, goal.Edges, goal.Train, goal.Bytes, goal.Work, goal.Relations, goal.Types) == 0 {
		goal.Work = Even.Work
	}
	c, err := goal.caps(g, parts)
	if err != nil {
		return nil, err
	}
	fine := symmetric(&g.Adj)
	owner := multilevel(fine, c, goal.Objective, thorough, key)
	if b := newLedger(fine, c, owner); b.excess() > 0 {
		if err := b.repair(InMemory{g}, owner); err != nil {
			return nil, err
		}
		r := newRefiner(b)
		r.refine(thorough)
		if goal.Objective == Volume {
			r.volume()
		}
	}
	return owner, nil
}

// multilevel coarsens l and returns its partition, refined on each level on the way back.
func multilevel(l *level, c *caps, objective Objective, e effort, key rng.Key) []int32 {
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
		to, n := cluster(l, c, limit, e.sweeps, key.Fold(uint64(len(down))))
		if n > l.n()*19/20 {
			break // the rest is hubs and their neighbours
		}
		down = append(down, step{l, c, to})
		l, c = contract(l, to, n, &room), c.contract(to, n)
	}
	owner := bisect(l, c, e, key.FoldString("bisect"))
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
