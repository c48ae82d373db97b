package partition

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
)

// Objective is what Multilevel minimizes.
type Objective uint8

// The objectives.
const (
	Volume  Objective = iota // halo rows of all parts, which one exchange of a layer's rows sends
	EdgeCut                  // stored edges whose ends have different owners
)

// Goal bounds the parts and sets what to minimize. Each bound is a part's greatest ratio to its fair share: 1.03 allows
// 3 % more (0 = no bound, else at least 1). A fractional share is rounded up. For work a part may exceed the bound by
// one ordinary node, and may always have the heaviest node. The zero Goal bounds nothing.
type Goal struct {
	Objective Objective
	Vertices  float64   // owned nodes
	Edges     float64   // stored edges into owned nodes
	Train     float64   // owned training nodes
	Bytes     float64   // features of owned nodes
	Work      float64   // processor time of a layer: stored edges into owned nodes, and NodeWork for each node
	Relations float64   // stored edges of each relation into owned nodes, for a typed graph in memory
	Types     float64   // owned nodes of each type, for a typed graph in memory
	Capacity  []float64 // [K] relative fair shares, for unequal machines (nil = equal)
}

// NodeWork is how many stored edges take as long as a node. For each edge, summing a row of 256 values is bound by
// memory; for each node, multiplying a row by a 256×256 matrix is bound by the processor.
const NodeWork = 16

// Even is the default goal of policies that balance: no worker of a cluster waits long for another.
var Even = Goal{Work: 1.03}

// bound is one of a goal's bounds.
type bound struct {
	name, unit string
	most       float64
	weight     func(r *Run, i int) int64 // weight of the run's node i
}

// bounds returns the goal's bounds for a graph with these relations and types of nodes.
func (g Goal) bounds(relations, types []string) []bound {
	list := []bound{
		{"vertices", "nodes", g.Vertices, func(*Run, int) int64 { return 1 }},
		{"edges", "edges", g.Edges, (*Run).Edges},
		{"train", "training nodes", g.Train, func(r *Run, i int) int64 { return one(r.Split[i] == graph.Train) }},
		{"bytes", "bytes of features", g.Bytes, (*Run).Bytes},
		{"work", "edges' worth of work", g.Work, func(r *Run, i int) int64 { return r.Edges(i) + NodeWork }},
	}
	for k, name := range relations {
		list = append(list, bound{"relations", fmt.Sprintf("edges of relation %q", name), g.Relations,
			func(r *Run, i int) int64 { return r.related(k, i) }})
	}
	for k, name := range types {
		list = append(list, bound{"types", fmt.Sprintf("nodes of type %q", name), g.Types,
			func(r *Run, i int) int64 { return one(int(r.kind[i]) == k) }})
	}
	return list
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// Validate returns all faults of the goal for that number of parts, or nil.
func (g Goal) Validate(parts int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(""+format, args...)) }
	if g.Objective > EdgeCut {
		fault("objective must be Volume or EdgeCut (got %d)", g.Objective)
	}
	for _, b := range g.bounds([]string{"any"}, []string{"any"}) {
		if b.most != 0 && !(b.most >= 1 && b.most <= math.MaxFloat32) {
			fault("%s: bound must be 1 or more times the fair share, or 0 for no bound (got %v)", b.name, b.most)
		}
	}
	if g.Capacity != nil && len(g.Capacity) != parts {
		fault("capacity must be given for each of %d parts (got %d)", parts, len(g.Capacity))
	}
	for p, c := range g.Capacity {
		if !(c > 0 && c <= math.MaxFloat32) {
			fault("capacity of part %d must be a positive number (got %v)", p, c)
		}
	}
	return errors.Join(faults...)
}

// shares returns each part's fair share of the whole; they add up to 1.
func (g Goal) shares(parts int) []float64 {
	share, sum := slices.Repeat([]float64{1}, parts), 0.0
	copy(share, g.Capacity)
	for _, x := range share {
		sum += x
	}
	for p := range share {
		share[p] /= sum
	}
	return share
}

// limits are a goal's bounds for one graph: how much of D weights each part may have.
type limits struct {
	bounds []bound   // [D]
	most   []int64   // [K×D]
	share  []float64 // [K]
}

// weigh stores the D weights of the run's node i.
func (l *limits) weigh(w []int64, r *Run, i int) {
	for d, b := range l.bounds {
		w[d] = b.weight(r, i)
	}
}

// limits returns the bounds in whole units. It returns an error if a node fits in no part.
func (g Goal) limits(of Source, parts int) (*limits, error) {
	if err := g.Validate(parts); err != nil {
		return nil, err
	}
	relations, types := of.Typing()
	if g.Relations != 0 && len(relations) == 0 || g.Types != 0 && len(types) == 0 {
		return nil,
			errors.New("a bound on types or relations, of a graph whose nodes or edges have no types")
	}
	l := &limits{share: g.shares(parts)}
	for _, b := range g.bounds(relations, types) {
		if b.most != 0 {
			l.bounds = append(l.bounds, b)
		}
	}
	dims := len(l.bounds)
	l.most = make([]int64, parts*dims)
	total, most, heavy, w := make([]int64, dims), make([]int64, dims), make([]int32, dims), make([]int64, dims)
	err := of.Runs(false, func(r *Run) error {
		for i := range r.N() {
			l.weigh(w, r, i)
			for d, x := range w {
				total[d] += x
				if x > most[d] {
					most[d], heavy[d] = x, r.First+int32(i)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for d, b := range l.bounds {
		widest := int64(0)
		for p, s := range l.share {
			fair := float64(total[d]) * s
			// A rounding error of a whole share must not add a unit.
			l.most[p*dims+d] = int64(max(math.Ceil(fair-1e-6), math.Floor(fair*b.most+1e-6)))
			if b.name == "work" { // a hub slows its worker, but does not make the graph invalid
				l.most[p*dims+d] = max(l.most[p*dims+d], most[d]) + total[d]/max(of.Size().Vertices, 1)
			}
			widest = max(widest, l.most[p*dims+d])
		}
		if most[d] > widest {
			return nil, fmt.Errorf("cannot fit: node %d has %d %s, and no part may hold more than %d of "+
				"all %d: raise the bound on %s from %v, or take fewer parts", heavy[d], most[d], b.unit, widest,
				total[d], b.name, b.most)
		}
	}
	return l, nil
}

// Check returns an error that names the first part which exceeds a bound of g, or nil.
func (g Goal) Check(of Source, owner []int32, parts int) error {
	l, err := g.limits(of, parts)
	if err != nil {
		return err
	}
	h, err := l.holding(of, owner)
	if err != nil {
		return err
	}
	return h.check()
}

// caps are limits and the weights of the nodes.
type caps struct {
	limits
	weight []int64 // [N×D]
}

// caps returns the bounds on a graph in memory with the weights of its nodes.
func (g Goal) caps(of *graph.Graph, parts int) (*caps, error) {
	l, err := g.limits(InMemory{of}, parts)
	if err != nil {
		return nil, err
	}
	dims := len(l.bounds)
	c := &caps{*l, make([]int64, of.N()*dims)}
	return c, InMemory{of}.Runs(false, func(r *Run) error {
		for i := range r.N() {
			l.weigh(c.weight[i*dims:][:dims], r, i)
		}
		return nil
	})
}

// of returns the weights of node v.
func (c *caps) of(v int32) []int64 {
	return c.weight[int(v)*len(c.bounds):][:len(c.bounds)]
}
