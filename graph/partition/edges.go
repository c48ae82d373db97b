package partition

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// VertexCut decides which part holds each edge, and which owns each node: a node lies wherever one of its edges does, and
// its owner sums up what the others have of it. Trainers take edge cuts alone; what a vertex cut would be worth
// Replicas says.
type VertexCut interface {
	// AssignEdges returns the owner of each of g's nodes and the holder of each of its stored edges, in the order of
	// g.Adj.Col. The same key gives the same everywhere.
	AssignEdges(g *graph.Graph, parts int, key rng.Key) (owner, holder []int32, err error)
}

// AssignEdges implements VertexCut: owners by Vertex, then holders by Edge, which may ask for any owner and degree.
func (r Rules) AssignEdges(g *graph.Graph, parts int, key rng.Key) (owner, holder []int32, err error) {
	edge := r.Edge
	if r.Edge = nil; edge == nil {
		edge = Destination
	}
	if owner, err = r.Assign(g, parts, key); err != nil {
		return nil, nil, err
	}
	s := &View{Key: key, state: Masters, owner: owner, load: make([]Load, parts)}
	s.count(g)
	holder = make([]int32, 0, g.Adj.NumEdges())
	for v := range int32(g.N()) {
		col, _ := g.Adj.Row(int(v))
		for _, u := range col {
			p := edge(u, v, s)
			if p < 0 || int(p) >= parts {
				return nil, nil, fmt.Errorf("partition: the rule gives the edge from node %d to %d to part %d, out of [0, %d)", u, v, p, parts)
			}
			holder = append(holder, p)
		}
	}
	return owner, holder, nil
}

// count counts the edges of each node.
func (s *View) count(g *graph.Graph) {
	s.in, s.out = make([]int32, g.N()), make([]int32, g.N())
	for v := range g.N() {
		col, _ := g.Adj.Row(v)
		s.in[v] = int32(len(col))
		for _, u := range col {
			s.out[u]++
		}
	}
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

// Replicas is the quality of a vertex cut.
type Replicas struct {
	Parts       int
	Nodes       int64
	Edges       int64   // stored: both directions of an undirected edge count
	Replicas    int64   // places of all nodes: parts that own the node or hold an edge of it
	Replication float64 // replication factor: Replicas / Nodes
	// Balance is the largest part's share over the mean: 1 is even.
	EdgeBalance, ReplicaBalance float64
	// Rows is what part p sends to part q in one exchange, [K][K]: partial sums of nodes that q owns, or their rows back.
	Rows [][]int64
}

// ReplicasOf returns the quality of a vertex cut by its owners and holders.
func ReplicasOf(g *graph.Graph, owner, holder []int32, parts int) Replicas {
	in := newPlaces(g.N(), parts)
	held := make([]int64, parts)
	for v := range int32(g.N()) {
		in.put(v, owner[v])
		for e := g.Adj.RowPtr[v]; e < g.Adj.RowPtr[v+1]; e++ {
			in.put(v, holder[e])
			in.put(g.Adj.Col[e], holder[e])
			held[holder[e]]++
		}
	}
	r := Replicas{Parts: parts, Nodes: int64(g.N()), Edges: int64(g.Adj.NumEdges()), EdgeBalance: balance(held), Rows: square(parts)}
	here := make([]int64, parts)
	for v := range int32(g.N()) {
		in.each(v, func(p int32) {
			here[p]++
			r.Replicas++
			if p != owner[v] {
				r.Rows[p][owner[v]]++
			}
		})
	}
	r.ReplicaBalance = balance(here)
	if r.Nodes > 0 {
		r.Replication = float64(r.Replicas) / float64(r.Nodes)
	}
	return r
}

// places are the parts in which each node lies, a bit each.
type places struct {
	words int
	bits  []uint64
}

func newPlaces(n, parts int) *places {
	words := (parts + 63) / 64
	return &places{words, make([]uint64, n*words)}
}

func (a *places) put(v, p int32)      { a.bits[int(v)*a.words+int(p/64)] |= 1 << (p % 64) }
func (a *places) has(v, p int32) bool { return a.bits[int(v)*a.words+int(p/64)]>>(p%64)&1 == 1 }

func (a *places) each(v int32, f func(p int32)) {
	for w, b := range a.bits[int(v)*a.words:][:a.words] {
		for ; b != 0; b &= b - 1 {
			f(int32(64*w + bits.TrailingZeros64(b)))
		}
	}
}

// edgeStream assigns edges one after another, an undirected one once.
type edgeStream struct {
	g      *graph.Graph
	at     *places
	held   []int64 // [K] edges
	degree []int32 // [N] edges of a node, directions apart
	holder []int32
	owner  []int32
	most   int64 // that a part may hold
}

func newEdgeStream(g *graph.Graph, parts int) (*edgeStream, error) {
	if err := enough(g, parts); err != nil {
		return nil, err
	}
	if err := g.Adj.Valid(); err != nil {
		return nil, err
	}
	s := &edgeStream{g: g, at: newPlaces(g.N(), parts), held: make([]int64, parts), degree: make([]int32, g.N()),
		holder: slices.Repeat([]int32{-1}, g.Adj.NumEdges()), owner: slices.Repeat([]int32{-1}, g.N()), most: math.MaxInt64}
	for v := range g.N() {
		col, _ := g.Adj.Row(v)
		s.degree[v] += int32(len(col))
		for _, u := range col {
			s.degree[u]++
		}
	}
	return s, nil
}

// each calls f for each edge that has no holder yet, an undirected one once; where it returns a part that is its holder.
func (s *edgeStream) each(f func(u, v int32) int32) {
	for v := range int32(s.g.N()) {
		col, _ := s.g.Adj.Row(int(v))
		for k, u := range col {
			e := s.g.Adj.RowPtr[v] + int64(k)
			if s.holder[e] >= 0 {
				continue
			}
			p := f(u, v)
			if p < 0 {
				continue
			}
			s.hold(e, p)
			back, _ := s.g.Adj.Row(int(u))
			if at, ok := slices.BinarySearch(back, v); ok && u != v {
				s.hold(s.g.Adj.RowPtr[u]+int64(at), p)
			}
			s.at.put(u, p)
			s.at.put(v, p)
		}
	}
}

func (s *edgeStream) hold(e int64, p int32) {
	s.holder[e] = p
	s.held[p]++
}

// settle gives each node to the emptiest, of nodes, of the parts in which it lies, and nodes without edges to the
// emptiest of all.
func (s *edgeStream) settle() {
	owned := make([]int64, len(s.held))
	for v := range s.owner {
		best := int32(-1)
		s.at.each(int32(v), func(p int32) {
			if best < 0 || owned[p] < owned[best] {
				best = p
			}
		})
		if best < 0 {
			best = emptiest(owned)
		}
		s.owner[v] = best
		owned[best]++
	}
}

func emptiest(load []int64) (best int32) {
	for p, x := range load {
		if x < load[best] {
			best = int32(p)
		}
	}
	return best
}

// HDRF streams edges to the part p of the highest g(u,p) + g(v,p) + λ·(max − |E_p|)/(ε + max − min), where g(u,p) is
// 2 − θ(u) if u lies in p already and θ(u) its share of the degrees of both ends as met so far: hubs are replicated first
// (Petroni et al., CIKM 2015; λ = 1, ε = 1).
type HDRF struct{}

// AssignEdges implements VertexCut.
func (HDRF) AssignEdges(g *graph.Graph, parts int, _ rng.Key) (owner, holder []int32, err error) {
	s, err := newEdgeStream(g, parts)
	if err != nil {
		return nil, nil, err
	}
	met := make([]int32, g.N())
	s.each(func(u, v int32) int32 {
		met[u]++
		met[v]++
		share := float64(met[u]) / float64(met[u]+met[v])
		most, least := float64(slices.Max(s.held)), float64(slices.Min(s.held))
		best, top := int32(0), -1.0
		for p := range int32(parts) {
			x := (most - float64(s.held[p])) / (1 + most - least)
			if s.at.has(u, p) {
				x += 2 - share
			}
			if s.at.has(v, p) {
				x += 1 + share
			}
			if x > top {
				best, top = p, x
			}
		}
		return best
	})
	s.settle()
	return s.owner, s.holder, nil
}

// TwoPhase is 2PS-L (Mayer, Orujzade and Jacobsen, ICDE 2022): nodes are clustered as their edges stream by, clusters
// dealt to parts by volume, edges within a part's clusters put there, and the others to the better of the parts of
// their two ends; no part holds over 1.05 times the mean.
type TwoPhase struct{}

// AssignEdges implements VertexCut.
func (TwoPhase) AssignEdges(g *graph.Graph, parts int, key rng.Key) (owner, holder []int32, err error) {
	s, err := newEdgeStream(g, parts)
	if err != nil {
		return nil, nil, err
	}
	m := int64(g.Adj.NumEdges())
	s.most = int64(math.Ceil(1.05 * float64(m) / float64(parts)))
	cluster, volume := s.clusters(2 * m / int64(parts))
	part := pack(volume, parts)
	room := func(p int32) bool { return s.held[p]+2 <= s.most } // both directions
	s.each(func(u, v int32) int32 {
		if p := part[cluster[u]]; p == part[cluster[v]] && room(p) {
			return p
		}
		return -1
	})
	s.each(func(u, v int32) int32 {
		p, q := part[cluster[u]], part[cluster[v]]
		score := func(p int32) (x float64) {
			share := float64(s.degree[u]) / float64(s.degree[u]+s.degree[v])
			if s.at.has(u, p) {
				x += 2 - share
			}
			if s.at.has(v, p) {
				x += 1 + share
			}
			both := float64(volume[cluster[u]] + volume[cluster[v]])
			for _, end := range []int32{u, v} {
				if part[cluster[end]] == p {
					x += float64(volume[cluster[end]]) / both
				}
			}
			return x
		}
		if score(q) > score(p) {
			p, q = q, p
		}
		hub := u
		if s.degree[v] > s.degree[u] {
			hub = v
		}
		for _, p := range []int32{p, q, int32(key.Uint64(uint64(hub)) % uint64(parts))} {
			if room(p) {
				return p
			}
		}
		return emptiest(s.held)
	})
	s.settle()
	return s.owner, s.holder, nil
}

// clusters returns the cluster of each node and the volume, the sum of degrees, of each: of each edge the end whose
// cluster is smaller without it joins the other's, where that has room within most.
func (s *edgeStream) clusters(most int64) (cluster []int32, volume []int64) {
	cluster, volume = make([]int32, s.g.N()), make([]int64, s.g.N())
	for v := range cluster {
		cluster[v], volume[v] = int32(v), int64(s.degree[v])
	}
	s.each(func(u, v int32) int32 {
		a, b := cluster[u], cluster[v]
		if a == b || volume[a] > most || volume[b] > most {
			return -1
		}
		if volume[a]-int64(s.degree[u]) > volume[b]-int64(s.degree[v]) {
			u, a, b = v, b, a
		}
		if d := int64(s.degree[u]); volume[b]+d <= most {
			volume[a], volume[b], cluster[u] = volume[a]-d, volume[b]+d, b
		}
		return -1
	})
	return cluster, volume
}

// pack returns a part for each cluster: the largest first, each into the emptiest.
func pack(volume []int64, parts int) []int32 {
	order := make([]int32, len(volume))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(min(max(volume[b]-volume[a], -1), 1)) })
	part, load := make([]int32, len(volume)), make([]int64, parts)
	for _, at := range order {
		p := emptiest(load)
		part[at] = p
		load[p] += volume[at]
	}
	return part
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
