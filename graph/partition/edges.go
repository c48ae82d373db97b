package partition

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// VertexCut decides which part holds each edge, and which owns each node: a node lies wherever one of its edges does, and
// its owner sums up what the others have of it. It reads a graph as a stream, pass after pass. Trainers take edge cuts
// alone; what a vertex cut would be worth ReplicasOf says, and Stored.Replicas of a graph that need not fit into memory. One
// of one's own is a Rules with an Edge rule.
type VertexCut interface {
	// needs returns how often the edges are read, and the bytes of memory a node at most.
	needs(parts int) (passes int, bytes int64)
	// place fills in the owners and puts every stored edge.
	place(src source, key rng.Key, w *placing) error
}

// AssignEdges returns the owner of each of g's nodes and the holder of each of its stored edges, in the order of
// g.Adj.Col. The same key gives the same everywhere.
func AssignEdges(g *graph.Graph, cut VertexCut, parts int, key rng.Key) (owner, holder []int32, err error) {
	holder = make([]int32, g.Adj.NumEdges())
	w, err := placed(g, cut, parts, key, func(u, v, p int32) {
		row, _ := g.Adj.Row(int(v))
		at, _ := slices.BinarySearch(row, u)
		holder[g.Adj.RowPtr[v]+int64(at)] = p
	})
	if err != nil {
		return nil, nil, err
	}
	return w.owner, holder, nil
}

// ReplicasOf returns the quality of a vertex cut of g.
func ReplicasOf(g *graph.Graph, cut VertexCut, parts int, key rng.Key) (Replicas, error) {
	w, err := placed(g, cut, parts, key, nil)
	if err != nil {
		return Replicas{}, err
	}
	return w.replicas(), nil
}

func placed(g *graph.Graph, cut VertexCut, parts int, key rng.Key, told func(u, v, p int32)) (*placing, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	w := newPlacing(g.N(), parts, told)
	return w, cut.place(memory{g}, key, w)
}

// Replicas returns the quality of a vertex cut, of which nothing is written: job says the number of parts, the seed, the
// memory that it may take and who watches. It holds the parts in which each node lies, K/8 bytes a node, and what the cut
// looks at, 4 to 24. All of the file is read first, and compared with its checksums.
func (s *Stored) Replicas(cut VertexCut, job Job) (Replicas, error) {
	if err := enoughNodes(s.nodes, job.Parts); err != nil {
		return Replicas{}, err
	}
	passes, each := cut.needs(job.Parts)
	if need := each*int64(s.nodes) + 1<<25 + readAhead; job.Memory > 0 && need > job.Memory {
		return Replicas{}, fmt.Errorf("partition: a vertex cut of %d nodes in %d parts needs about %d MiB of memory, with %d allowed: allow more", s.nodes, job.Parts, need>>20, job.Memory>>20)
	}
	if err := s.digest(io.Discard); err != nil {
		return Replicas{}, err
	}
	w := newPlacing(s.nodes, job.Parts, nil)
	if err := cut.place(&passing{s, job.Watch, Progress{Phase: "assign", Steps: passes, Total: s.edges}}, Key(job.Meta.Seed), w); err != nil {
		return Replicas{}, err
	}
	return w.replicas(), nil
}

// passing is a stored graph as a source each of whose passes over the edges is a step of progress.
type passing struct {
	*Stored
	watch func(Progress) error
	at    Progress
}

func (p *passing) runs(edges bool, f func(*run) error) error {
	p.at.Done = 0
	err := p.Stored.runs(edges, func(r *run) error {
		if err := f(r); err != nil || !edges || p.watch == nil {
			return err
		}
		p.at.Done += int64(len(r.col))
		return p.watch(p.at)
	})
	if edges {
		p.at.Step++
	}
	return err
}

func (r Rules) needs(parts int) (int, int64) { return len(r.steps()) + 1, 12 + placeBytes(parts) }

// place implements VertexCut: owners by Vertex, then holders by Edge, which may ask for any owner and degree.
func (r Rules) place(src source, key rng.Key, w *placing) error {
	edge := r.Edge
	if edge == nil {
		edge = Destination
	}
	a, err := r.owners(src, w.parts, key)
	if err != nil {
		return err
	}
	copy(w.owner, a.owner)
	a.owner, a.view.owner = nil, nil
	s := &View{Key: key, state: Masters, owner: w.owner, load: make([]Load, w.parts)}
	if err := s.count(src); err != nil {
		return err
	}
	return src.runs(true, func(run *run) error {
		for i := range run.n() {
			v := run.first + int32(i)
			for _, u := range run.sources(i) {
				p := edge(u, v, s)
				if p < 0 || int(p) >= w.parts {
					return fmt.Errorf("partition: the rule gives the edge from node %d to %d to part %d, out of [0, %d)", u, v, p, w.parts)
				}
				w.put(u, v, p)
			}
		}
		return nil
	})
}

// count counts the edges of each node.
func (s *View) count(src source) error {
	n := src.size().Vertices
	s.in, s.out = make([]int32, n), make([]int32, n)
	return src.runs(true, func(r *run) error {
		for i := range r.n() {
			col := r.sources(i)
			s.in[int(r.first)+i] = int32(len(col))
			for _, u := range col {
				s.out[u]++
			}
		}
		return nil
	})
}

// OutDegree returns the number of edges from u. Only edge rules may ask.
func (s *View) OutDegree(u int32) int32 { return s.out[u] }

// Incident returns the number of edges from and into u. Only edge rules may ask.
func (s *View) Incident(u int32) int32 { return s.in[u] + s.out[u] }

// hybrid is CuSP's Hybrid edge rule: edges of a source of over 1000 lie with their destinations, others with the source.
func hybrid(src, dst int32, s *View) int32 {
	if s.OutDegree(src) > hub {
		return s.Owner(dst)
	}
	return s.Owner(src)
}

// cartesian is CuSP's Cartesian edge rule: parts are a grid, as square as they allow; an edge lies in the row of its
// source's owner and the column of its destination's, so that a node meets no more than a row and a column of parts.
func cartesian(src, dst int32, s *View) int32 {
	k := int32(s.Parts())
	columns := int32(math.Sqrt(float64(k)))
	for k%columns != 0 {
		columns--
	}
	return s.Owner(src)/columns*columns + s.Owner(dst)%columns
}

// HVC, CVC, GVC and SVC are CuSP's policies: owners of equally many edges, or by FennelEB, with the edge rules Hybrid and
// Cartesian.
func HVC() Rules { r := ContiguousEdges(); r.Edge = hybrid; return r }

// CVC is ContiguousEB and Cartesian.
func CVC() Rules { r := ContiguousEdges(); r.Edge = cartesian; return r }

// GVC is FennelEB and Hybrid.
func GVC() Rules { r := FEC(); r.Edge = hybrid; return r }

// SVC is FennelEB and Cartesian.
func SVC() Rules { r := FEC(); r.Edge = cartesian; return r }

// DBH gives an edge to the part of its end of fewer edges, by a keyed hash (degree-based hashing: Xie et al., NeurIPS
// 2014): hubs are what is replicated. Of equal ends it is the lower.
func DBH() Rules {
	r := Hash()
	r.Edge = func(src, dst int32, s *View) int32 {
		if a, b := s.Incident(src), s.Incident(dst); a < b || a == b && src < dst {
			return s.Owner(src)
		}
		return s.Owner(dst)
	}
	return r
}

// ParseVertexCut returns the vertex cut of that name: dbh, hvc, cvc, gvc, svc, hdrf or 2ps-l; nil if it names none.
func ParseVertexCut(name string) VertexCut {
	for _, c := range vertexCutNames {
		if c.name == name {
			return c.cut
		}
	}
	return nil
}

var vertexCutNames = []struct {
	name string
	cut  VertexCut
}{{"dbh", DBH()}, {"hvc", HVC()}, {"cvc", CVC()}, {"gvc", GVC()}, {"svc", SVC()}, {"hdrf", HDRF{}}, {"2ps-l", TwoPhase{}}}
