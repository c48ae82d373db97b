// Package vertexcut partitions edges instead of nodes: a node then lies in several parts. No
// trainer takes a vertex cut; its quality can be compared with that of an edge cut.
package vertexcut

import (
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Cut decides which part holds each edge, and which owns each node: a node lies wherever one of its
// edges does, and its owner sums up what the others have of it. It reads a graph as a stream, pass
// after pass. A cut of your own is an EdgeRules.
type Cut interface {
	// Needs returns how often the edges are read, and the bytes of memory a node at most.
	Needs(parts int) (passes int, bytes int64)
	// place fills in the owners and puts every stored edge.
	place(src partition.Source, key rng.Key, w *placing) error
}

// AssignEdges returns the owner of each of g's nodes and the holder of each of its stored edges, in
// the order of g.Adj.Col. The same key gives the same everywhere.
func AssignEdges(g *graph.Graph, cut Cut, parts int, key rng.Key) (owner, holder []int32, err error) {
	if err := g.Adj.Valid(); err != nil {
		return nil, nil, err
	}
	holder = make([]int32, g.Adj.NumEdges())
	w, err := placed(partition.Memory{Graph: g}, cut, parts, key, func(u, v, p int32) {
		row, _ := g.Adj.Row(int(v))
		at, _ := slices.BinarySearch(row, u)
		holder[g.Adj.RowPtr[v]+int64(at)] = p
	})
	if err != nil {
		return nil, nil, err
	}
	return w.owner, holder, nil
}

// Measure returns the quality of a vertex cut of a graph whose adjacency is valid.
func Measure(src partition.Source, cut Cut, parts int, key rng.Key) (Replicas, error) {
	w, err := placed(src, cut, parts, key, nil)
	if err != nil {
		return Replicas{}, err
	}
	return w.replicas(), nil
}

func placed(src partition.Source, cut Cut, parts int, key rng.Key, told func(u, v, p int32)) (*placing, error) {
	nodes := int(src.Size().Vertices)
	if err := shard.CheckParts(nodes, parts); err != nil {
		return nil, err
	}
	w := newPlacing(nodes, parts, told)
	return w, cut.place(src, key, w)
}

// EdgeRules is a vertex cut in the two rules of CuSP (Hoang et al., IPDPS 2019): who owns a node,
// and who holds an edge.
type EdgeRules struct {
	Owner partition.Rules
	Edge  func(src, dst int32, s *EdgeView) int32 // holder of the edge, in [0, K)
}

// EdgeView is what an edge rule may see: all owners and degrees.
type EdgeView struct {
	parts   int
	owner   []int32 // [N]
	in, out []int32 // [N] degrees
}

// Parts returns K.
func (s *EdgeView) Parts() int { return s.parts }

// Owner returns the owner of u.
func (s *EdgeView) Owner(u int32) int32 { return s.owner[u] }

// OutDegree returns the number of edges from u.
func (s *EdgeView) OutDegree(u int32) int32 { return s.out[u] }

// Incident returns the number of edges from and into u.
func (s *EdgeView) Incident(u int32) int32 { return s.in[u] + s.out[u] }

// Needs implements Cut.
func (r EdgeRules) Needs(parts int) (int, int64) {
	return len(partition.Steps(r.Owner)) + 1, 12 + placeBytes(parts)
}

// place implements Cut.
func (r EdgeRules) place(src partition.Source, key rng.Key, w *placing) error {
	a, err := partition.Begin(r.Owner, src, w.parts, key, nil)
	if err != nil {
		return err
	}
	for k := range partition.Steps(r.Owner) {
		if err := a.Step(k); err != nil {
			return err
		}
	}
	copy(w.owner, a.Owner)
	a = nil // what it holds is as large as what follows
	n := src.Size().Vertices
	s := &EdgeView{parts: w.parts, owner: w.owner, in: make([]int32, n), out: make([]int32, n)}
	if err := s.count(src); err != nil {
		return err
	}
	return src.Runs(true, func(run *partition.Run) error {
		for i := range run.N() {
			v := run.First + int32(i)
			for _, u := range run.Sources(i) {
				p := r.Edge(u, v, s)
				if p < 0 || int(p) >= w.parts {
					return fmt.Errorf("vertexcut: the rule gives the edge from node %d to %d to part %d, out of [0, %d)", u, v, p, w.parts)
				}
				w.put(u, v, p)
			}
		}
		return nil
	})
}

// count counts the edges of each node.
func (s *EdgeView) count(src partition.Source) error {
	return src.Runs(true, func(r *partition.Run) error {
		for i := range r.N() {
			col := r.Sources(i)
			s.in[int(r.First)+i] = int32(len(col))
			for _, u := range col {
				s.out[u]++
			}
		}
		return nil
	})
}

const hub = 1000 // edges: a node of more is one

// hybrid is CuSP's Hybrid edge rule: edges of a source of over 1000 lie with their destinations,
// others with the source.
func hybrid(src, dst int32, s *EdgeView) int32 {
	if s.OutDegree(src) > hub {
		return s.Owner(dst)
	}
	return s.Owner(src)
}

// cartesian is CuSP's Cartesian edge rule: parts are a grid, as square as they allow; an edge lies
// in the row of its source's owner and the column of its destination's, so that a node meets no
// more than a row and a column of parts.
func cartesian(src, dst int32, s *EdgeView) int32 {
	k := int32(s.Parts())
	columns := int32(math.Sqrt(float64(k)))
	for k%columns != 0 {
		columns--
	}
	return s.Owner(src)/columns*columns + s.Owner(dst)%columns
}

// degreeBased gives an edge to the part of its end of fewer edges; hubs are what is replicated
// (degree-based hashing: Xie et al., NeurIPS 2014). Of equal ends it is the lower.
func degreeBased(src, dst int32, s *EdgeView) int32 {
	if a, b := s.Incident(src), s.Incident(dst); a < b || a == b && src < dst {
		return s.Owner(src)
	}
	return s.Owner(dst)
}

// Parse returns the vertex cut of that name, nil if it names none: dbh (owners by a keyed hash,
// degree-based edges); of CuSP hvc and cvc (owners of equally many edges, edges by Hybrid and
// Cartesian), gvc and svc (owners by FennelEB); hdrf or 2ps-l.
func Parse(name string) Cut {
	for _, c := range named {
		if c.name == name {
			return c.cut
		}
	}
	return nil
}

var named = []struct {
	name string
	cut  Cut
}{{"dbh", EdgeRules{partition.Hash(), degreeBased}}, {"hvc", EdgeRules{partition.ContiguousEdges(), hybrid}},
	{"cvc", EdgeRules{partition.ContiguousEdges(), cartesian}}, {"gvc", EdgeRules{partition.FEC(), hybrid}},
	{"svc", EdgeRules{partition.FEC(), cartesian}}, {"hdrf", hdrf{}}, {"2ps-l", twoPhase{}}}
