package partition

import (
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/rng"
)

// Fennel (Tsourakakis et al., WSDM 2014) passes over the nodes and gives each to the part p with the highest |N(v) in
// p| − α·γ·|V_p|^(γ−1). γ is 3/2 and α = m·K^(γ−1)/n^γ for n nodes and m undirected edges. For unequal parts |V_p| is
// divided by the part's share times K. Each pass except the first begins with the owners after the last one
// (restreamed: Nishimura and Ugander, KDD 2013). With three or more passes the first two find clusters, from which the
// others start.
type Fennel struct {
	Goal   Goal
	Passes int
}

// clusters reports whether the first passes cluster: see clusters.go.
func (f Fennel) clusters() bool { return f.Passes > clusterings }

// Assign implements Policy.
func (f Fennel) Assign(g *graph.Graph, parts int, key rng.Key) ([]int32, error) {
	if err := shard.CheckParts(g.N(), parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	a, err := f.assigner(InMemory{g}, parts, key)
	if err != nil {
		return nil, err
	}
	for k := range f.steps() {
		if err := a.step(k); err != nil {
			return nil, err
		}
	}
	return a.owner, nil
}

// The kinds of step, as progress shows them.
const (
	clustering = "cluster"
	joining    = "join clusters"
	assigning  = "assign"
	keeping    = "keep bounds"
)

// steps returns the steps, in order.
func (f Fennel) steps() (list []string) {
	passes := f.Passes
	if f.clusters() {
		list = append(slices.Repeat([]string{clustering}, clusterings-1), joining)
		passes -= clusterings
	}
	return append(append(list, slices.Repeat([]string{assigning}, passes)...), keeping)
}

// assigner assigns the nodes of a source by Fennel, step after step. Between steps the owners are its only state, so it
// can continue at any step from the owners after the step before.
type assigner struct {
	Fennel
	src   Source
	key   rng.Key
	owner []int32 // owner of each node (−1 = none yet); during clustering its cluster
	hold  *holding
	load  []Load // [K]
	total Load
	w     []int64 // [D] weights of the current node
}

func (f Fennel) assigner(src Source, parts int, key rng.Key) (*assigner, error) {
	l, err := f.Goal.limits(src, parts)
	if err != nil {
		return nil, err
	}
	total := src.Size()
	return &assigner{Fennel: f, src: src, key: key, owner: slices.Repeat([]int32{-1}, int(total.Vertices)),
		total: total, hold: &holding{l, make([]int64, len(l.most))}, load: make([]Load, parts),
		w: make([]int64, len(l.bounds))}, nil
}

// step runs step k.
func (a *assigner) step(k int) error {
	switch kind := a.steps()[k]; kind {
	case clustering:
		return a.cluster(k == 0, nil)
	case joining:
		return a.join()
	case keeping:
		if err := a.tally(); err != nil {
			return err
		}
		return a.hold.repair(a.src, a.owner)
	}
	if err := a.tally(); err != nil {
		return err
	}
	return a.pass()
}

// tally counts the parts' loads.
func (a *assigner) tally() (err error) {
	if a.hold, err = a.hold.limits.holding(a.src, a.owner); err != nil {
		return err
	}
	clear(a.load)
	return a.src.Runs(false, func(r *Run) error {
		for i := range r.N() {
			if p := a.owner[int(r.First)+i]; p >= 0 {
				a.load[p].Vertices++
				a.load[p].Edges += r.Edges(i)
			}
		}
		return nil
	})
}

// cost returns α·γ·load^(γ−1), where load is divided by part p's share times K.
func (a *assigner) cost(load int64, p int32) float64 {
	n, k, m := float64(a.total.Vertices), float64(len(a.load)), float64(a.total.Edges)/2
	return 1.5 * m * math.Sqrt(k) / (n * math.Sqrt(n)) * math.Sqrt(max(float64(load), 0)/(k*a.hold.share[p]))
}

// roomiest returns the part with most space for the current node, which is in part own, or in none.
func (a *assigner) roomiest(own int32) (best int32) {
	room := func(p int32) float64 {
		if p == own {
			return a.hold.room(nil, p)
		}
		return a.hold.room(a.w, p)
	}
	for p := range int32(len(a.load)) {
		if room(p) < room(best) {
			best = p
		}
	}
	return best
}
