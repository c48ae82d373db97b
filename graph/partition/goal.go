package partition

import (
	"errors"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/graph"
)

// Objective is what Multilevel makes small.
type Objective uint8

// The objectives.
const (
	Volume  Objective = iota // halo rows of all parts: what one exchange of a layer's rows carries
	EdgeCut                  // stored edges whose ends have different owners
)

// Goal says what a part may hold and what is to be small. Each bound is the most that a part holds over its fair
// share of the whole: 1.03 allows 3 % more, 0 is no bound, else at least 1. A share that is not whole is rounded up.
// The zero Goal bounds nothing.
type Goal struct {
	Objective Objective
	Vertices  float64   // owned nodes
	Edges     float64   // stored edges into owned nodes
	Train     float64   // owned training nodes
	Bytes     float64   // features of owned nodes
	Capacity  []float64 // [K] fair shares relative to each other, for unlike machines; nil: all alike
}

// even is what policies that balance do unasked: METIS's default.
var even = Goal{Vertices: 1.03}

// bound is one of a goal's bounds.
type bound struct {
	name, unit string
	most       float64
	weight     func(g *graph.Graph, i int) int64
}

func (g Goal) bounds() []bound {
	return []bound{
		{"vertices", "nodes", g.Vertices, func(*graph.Graph, int) int64 { return 1 }},
		{"edges", "edges", g.Edges, func(g *graph.Graph, i int) int64 { return g.Adj.RowPtr[i+1] - g.Adj.RowPtr[i] }},
		{"train", "training nodes", g.Train, func(g *graph.Graph, i int) int64 {
			if g.Split[i] == graph.Train {
				return 1
			}
			return 0
		}},
		{"bytes", "bytes of features", g.Bytes, func(g *graph.Graph, i int) int64 { return rowBytes(g.X, i) }},
	}
}

// rowBytes returns the size of row i as it is stored: 4 bytes a value, and 4 a column index of sparse rows.
func rowBytes(x graph.Features, i int) int64 {
	if x.Sparse != nil {
		return 8 * (x.Sparse.RowPtr[i+1] - x.Sparse.RowPtr[i])
	}
	return 4 * int64(x.Dense.Cols)
}

// Validate returns all faults of the goal for that number of parts, or nil.
func (g Goal) Validate(parts int) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("partition: "+format, args...)) }
	if g.Objective > EdgeCut {
		fault("objective is %d, want Volume or EdgeCut", g.Objective)
	}
	for _, b := range g.bounds() {
		if b.most != 0 && !(b.most >= 1 && b.most <= math.MaxFloat32) {
			fault("%s: at most %v times the fair share, want 1 or more (0: no bound)", b.name, b.most)
		}
	}
	if g.Capacity != nil && len(g.Capacity) != parts {
		fault("capacity of %d parts, want %d", len(g.Capacity), parts)
	}
	for p, c := range g.Capacity {
		if !(c > 0 && c <= math.MaxFloat32) {
			fault("capacity of part %d is %v, want a positive number", p, c)
		}
	}
	return errors.Join(faults...)
}

// shares returns each part's fair share of the whole; they add up to 1.
func (g Goal) shares(parts int) []float64 {
	share, sum := make([]float64, parts), 0.0
	for p := range share {
		share[p] = 1
		if g.Capacity != nil {
			share[p] = g.Capacity[p]
		}
		sum += share[p]
	}
	for p := range share {
		share[p] /= sum
	}
	return share
}

// caps are a goal's bounds on one graph: D weights a node, of which each part may hold so much.
type caps struct {
	bounds []bound   // [D]
	weight []int64   // [N×D]
	most   []int64   // [K×D]
	share  []float64 // [K]
}

// caps returns the bounds in whole units. It refuses a node that no part may hold.
func (g Goal) caps(of *graph.Graph, parts int) (*caps, error) {
	if err := g.Validate(parts); err != nil {
		return nil, err
	}
	c := &caps{share: g.shares(parts)}
	for _, b := range g.bounds() {
		if b.most != 0 {
			c.bounds = append(c.bounds, b)
		}
	}
	n, dims := of.N(), len(c.bounds)
	c.weight, c.most = make([]int64, n*dims), make([]int64, parts*dims)
	for d, b := range c.bounds {
		total, heavy := int64(0), 0
		for i := range n {
			w := b.weight(of, i)
			c.weight[i*dims+d] = w
			total += w
			if w > c.weight[heavy*dims+d] {
				heavy = i
			}
		}
		widest := int64(0)
		for p, s := range c.share {
			fair := float64(total) * s
			// What rounding adds to a share that is whole is not a unit more.
			c.most[p*dims+d] = int64(max(math.Ceil(fair-1e-6), math.Floor(fair*b.most+1e-6)))
			widest = max(widest, c.most[p*dims+d])
		}
		if n > 0 && c.weight[heavy*dims+d] > widest {
			return nil, fmt.Errorf("partition: cannot fit: node %d has %d %s, and no part may hold more than %d of all %d: raise the bound on %s from %v, or take fewer parts",
				heavy, c.weight[heavy*dims+d], b.unit, widest, total, b.name, b.most)
		}
	}
	return c, nil
}

// used returns what each part holds, [K×D]. Owners below 0 are of no part.
func (c *caps) used(owner []int32) []int64 {
	dims := len(c.bounds)
	used := make([]int64, len(c.most))
	for i, p := range owner {
		for d := range dims {
			if p >= 0 {
				used[int(p)*dims+d] += c.weight[i*dims+d]
			}
		}
	}
	return used
}

// check returns an error that names the first part that holds more than it may, or nil.
func (c *caps) check(owner []int32) error {
	dims := len(c.bounds)
	for k, u := range c.used(owner) {
		if b := c.bounds[k%dims]; u > c.most[k] {
			return fmt.Errorf("part %d would hold %d %s, of at most %d: raise the bound on %s from %v, or take fewer parts or another policy",
				k/dims, u, b.unit, c.most[k], b.name, b.most)
		}
	}
	return nil
}

// Check returns an error that names the first part which holds more than g allows, or nil.
func (g Goal) Check(of *graph.Graph, owner []int32, parts int) error {
	c, err := g.caps(of, parts)
	if err != nil {
		return err
	}
	if err := c.check(owner); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return nil
}
