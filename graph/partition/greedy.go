package partition

import "math"

// greedy is a pass that gives each node v to the part p with the highest |N(v) in p| − cost among the parts with space.
// Ties go to the least full part (for its capacity), then to the lowest number. A part's costs change only with its
// contents. Parts without neighbours of v are examined only if one of them may be best, so the pass takes time in
// proportion to the neighbours.
type greedy struct {
	*assigner
	near  []int32   // [1+K] number of the node's sources by owner, those without owner first; all 0 between nodes
	met   []int32   // [K+2] indices of the entries of near that are not 0
	costs []float64 // [K]
	stay  []float64 // [K] costs for a node that is already in the part
	least float64   // lower bound of the costs
}

func newGreedy(a *assigner) *greedy {
	k := len(a.load)
	g := &greedy{assigner: a, near: make([]int32, k+1), met: make([]int32, k+2), costs: make([]float64, k),
		stay: make([]float64, k), least: math.Inf(1)}
	for p := range int32(k) {
		g.weigh(p)
	}
	return g
}

// pass gives every node to a part.
func (a *assigner) pass() error {
	g := newGreedy(a)
	return a.src.Runs(true, func(r *Run) error {
		for i := range r.N() {
			v, edges, from := r.First+int32(i), r.Edges(i), a.owner[int(r.First)+i]
			a.hold.weigh(a.w, r, i)
			to := g.best(from, r.Sources(i))
			if to == from {
				continue
			}
			if from >= 0 {
				g.put(from, edges, -1)
			}
			a.owner[v] = to
			g.put(to, edges, 1)
		}
		return nil
	})
}

// put counts the current node in part p, sign times.
func (g *greedy) put(p int32, edges, sign int64) {
	g.hold.add(g.w, p, sign)
	g.load[p].Vertices += sign
	g.load[p].Edges += sign * edges
	g.weigh(p)
}

// weigh computes part p's costs.
func (g *greedy) weigh(p int32) {
	load := g.load[p].Vertices
	g.costs[p], g.stay[p] = g.cost(load, p), g.cost(load-1, p)
	g.least = min(g.least, g.costs[p])
}

// best returns the best part for the current node, which is in part own (−1 = in none) and has these sources.
func (g *greedy) best(own int32, sources []int32) int32 {
	near, met, n, owner := g.near, g.met, 0, g.owner
	for _, u := range sources {
		at := owner[u] + 1
		c := near[at]
		met[n] = at
		if c == 0 {
			n++
		}
		near[at] = c + 1
	}
	best, top := int32(-1), math.Inf(-1)
	if own >= 0 && g.hold.keeps(own) {
		best, top = own, float64(near[own+1])-g.stay[own]
	}
	for _, at := range met[:n] {
		if p := at - 1; p >= 0 && p != own {
			if x := float64(near[at]) - g.costs[p]; x >= top {
				best, top = g.better(p, x, best, top, own)
			}
		}
	}
	if top <= -g.least {
		g.least = math.Inf(1)
		for p := range int32(len(g.costs)) {
			g.least = min(g.least, g.costs[p])
			if x := -g.costs[p]; near[p+1] == 0 && p != own && x >= top {
				best, top = g.better(p, x, best, top, own)
			}
		}
	}
	for _, at := range met[:n] {
		near[at] = 0
	}
	if best < 0 {
		return g.roomiest(own)
	}
	return best
}

// better returns p and its score x if x is better than top, else best and top. x is at least top.
func (g *greedy) better(p int32, x float64, best int32, top float64, own int32) (int32, float64) {
	if !g.hold.fits(g.w, p) {
		return best, top
	}
	if x > top || best < 0 {
		return p, x
	}
	held := func(p int32) float64 { // without the current node
		if p == own {
			return float64(g.load[p].Vertices - 1)
		}
		return float64(g.load[p].Vertices)
	}
	a, b := held(p)*g.hold.share[best], held(best)*g.hold.share[p]
	if a < b || a == b && p < best {
		return p, x
	}
	return best, top
}
