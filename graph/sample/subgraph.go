package sample

import (
	"cmp"
	"slices"
	"sort"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// Subgraphs draws the nodes of batches for the samplers whose batches are induced subgraphs: all layers read the edges
// between the same nodes. Its tables are those of the whole graph, by ID, and the same at every peer.
//
//	cluster     a batch is some clusters of a partition, at random (Cluster-GCN; Chiang et al., KDD 2019). A sum over a row is
//	            scaled to all edges of the row, so that a mean is that over the edges that the batch has.
//	saint-node  nodes are drawn with replacement, u in proportion to Σ_v Â(v,u)², Â = D⁻¹A with an edge from each node to itself
//	saint-edge  edges are drawn with replacement, {u,v} in proportion to 1/d(u) + 1/d(v), and the batch has both ends
//
// saint-node and saint-edge are GraphSAINT (Zeng et al., ICLR 2020): an edge (u,v) that a batch has is divided by
// α = P(u and v are drawn)/P(v is drawn), and the loss of a node v by λ = P(v is drawn), so that sums are unbiased. The paper
// counts how often nodes and edges are in subgraphs drawn before training; here the probabilities of draws with replacement
// are computed: v, which one draw hits with probability p, is among n draws with 1 − (1−p)ⁿ, and two nodes, one of
// which a draw hits with p', with the sum of theirs less 1 − (1−p')ⁿ.
type Subgraphs struct {
	config Config
	n      int

	// Of cluster: nodes [first[c], first[c+1]) of nodes are cluster c.
	first, nodes []int32

	// Of the others: upTo[v] is the sum of the weights of nodes before v, by which v is drawn, or with saint-edge an edge to v;
	// touch[v] is the weight of all draws that v is hit by. nil: upTo says it.
	upTo, touch []uint64
}

// weightUnit is the weight 1: weights are whole numbers, so that their sums are the same in any order.
const weightUnit = 1 << 24

// Clusters returns what draws nodes by their clusters of [0, clusters).
func Clusters(c Config, cluster []int32, clusters int) *Subgraphs {
	s := &Subgraphs{config: c, n: len(cluster), first: make([]int32, clusters+1), nodes: make([]int32, len(cluster))}
	for _, k := range cluster {
		s.first[k+1]++
	}
	for k := range clusters {
		s.first[k+1] += s.first[k]
	}
	next := slices.Clone(s.first)
	for v, k := range cluster {
		s.nodes[next[k]] = int32(v)
		next[k]++
	}
	return s
}

// Saint returns what draws nodes by the sums over the whole graph of what Weights adds. touch is that of saint-edge.
func Saint(c Config, weight, touch []uint64) *Subgraphs {
	s := &Subgraphs{config: c, n: len(weight), upTo: make([]uint64, len(weight)+1), touch: touch}
	for v, w := range weight {
		s.upTo[v+1] = s.upTo[v] + w
	}
	return s
}

// Steps returns how many batches of so many draws an epoch has: those of all clusters, or as many as draw so many nodes
// as there are.
func (c Config) Steps(nodes, clusters int64) int64 {
	switch c.Kind {
	case "cluster":
		return (clusters + int64(c.BatchClusters) - 1) / int64(c.BatchClusters)
	case "saint-edge":
		return (nodes + 2*int64(c.Draws) - 1) / (2 * int64(c.Draws))
	}
	return (nodes + int64(c.Draws) - 1) / int64(c.Draws)
}

// Steps returns the batches of an epoch.
func (s *Subgraphs) Steps() int {
	return int(s.config.Steps(int64(s.n), int64(max(1, len(s.first))-1)))
}

// Hit is a drawn edge: its destination, and where among the weights of the edges to it the draw fell.
type Hit struct {
	Node int32
	Rest uint64
}

// Draw returns the nodes of a step of an epoch, whose keys are given, ascending and each once; of saint-edge, the
// destinations of edges, whose sources their owners know (Pairs.Source).
func (s *Subgraphs) Draw(epoch, batch rng.Key, step int) (nodes []int32, hits []Hit) {
	if s.config.Kind == "cluster" {
		order := epoch.FoldString("clusters").Perm(len(s.first) - 1)
		for _, c := range order[step*s.config.BatchClusters : min((step+1)*s.config.BatchClusters, len(order))] {
			nodes = append(nodes, s.nodes[s.first[c]:s.first[c+1]]...)
		}
		return distinctOf(nodes), nil
	}
	key := batch.FoldString("subgraph")
	for i := range s.config.Draws {
		x := key.Uint64(uint64(i)) % s.upTo[s.n] // of 2⁶⁴: too few to tell from uniform
		v := sort.Search(s.n, func(v int) bool { return s.upTo[v+1] > x })
		nodes = append(nodes, int32(v))
		if s.config.Kind == "saint-edge" {
			hits = append(hits, Hit{int32(v), x - s.upTo[v]})
		}
	}
	return distinctOf(nodes), hits
}

// distinctOf sorts a list and keeps each value once.
func distinctOf(list []int32) []int32 {
	slices.Sort(list)
	return slices.Compact(list)
}

// any returns the probability that some of a batch's n draws is among those of the given weight, 1 − (1−p)ⁿ: by
// multiplications alone, so that every processor has the same bits.
func (s *Subgraphs) any(weight uint64) float64 {
	miss, power := 1-float64(weight)/float64(s.upTo[s.n]), 1.0
	for n := s.config.Draws; n > 0; n >>= 1 {
		if n&1 != 0 {
			power *= miss
		}
		miss *= miss
	}
	return 1 - power
}

// hit returns the weight of the draws that hit a node.
func (s *Subgraphs) hit(v uint64) uint64 {
	if s.touch != nil {
		return s.touch[v]
	}
	return s.upTo[v+1] - s.upTo[v]
}

// Lambda returns λ of a node: what its loss is divided by.
func (s *Subgraphs) Lambda(v int32) float64 {
	if s.config.Kind == "cluster" {
		return 1
	}
	return s.any(s.hit(uint64(v)))
}

// alpha returns α of an edge from u to v, where draws of weight both hit u and v at once.
func (s *Subgraphs) alpha(u, v, both uint64) float64 {
	a, b := s.hit(u), s.hit(v)
	of := s.any(b)
	return (s.any(a) + of - s.any(a+b-both)) / of
}

// Pairs are the weights by which in-edges of own vertices are drawn, and by which draws hit both ends of them.
type Pairs struct {
	edges  *Edges
	weight []uint32 // [E]; 0 of an edge from a vertex to itself
	back   []uint64 // bits of the edges whose reverse is one as well
	own    []uint32 // [N] of the draw of a vertex alone, as if it had an edge from itself
}

// NewPairs returns those of edges without relations: of a sampler whose edges have some, e has each pair of nodes once that
// any relation joins. degree are those of the sources, in the whole graph.
func NewPairs(e *Edges, degree []float32) *Pairs {
	n := len(e.RowPtr) - 1
	p := &Pairs{edges: e, weight: make([]uint32, len(e.Col)), back: make([]uint64, (len(e.Col)+63)/64), own: make([]uint32, n)}
	part := func(j int) float64 { return weightUnit / (float64(degree[j]) + 1) }
	for v := range n {
		p.own[v] = uint32(max(1, 2*part(v)))
		for at := e.RowPtr[v]; at < e.RowPtr[v+1]; at++ {
			if j := int(e.Col[at]); j != v {
				p.weight[at] = uint32(max(1, part(v)+part(j)))
			}
		}
	}
	return p
}

// Reverse says that own edges from u to v, by IDs, have a reverse where is returns true.
func (p *Pairs) Reverse(is func(u, v uint64) bool) {
	e := p.edges
	for v := range len(e.RowPtr) - 1 {
		for at := e.RowPtr[v]; at < e.RowPtr[v+1]; at++ {
			if is(e.id(e.Col[at]), e.id(int32(v))) {
				p.back[at>>6] |= 1 << (at & 63)
			}
		}
	}
}

// Weights adds to weight[v] that of the draws to each own vertex v, and to touch[j] that of the draws that hit source j.
func (p *Pairs) Weights(weight, touch []uint64) {
	e := p.edges
	for v := range len(e.RowPtr) - 1 {
		sum := uint64(p.own[v])
		for at := e.RowPtr[v]; at < e.RowPtr[v+1]; at++ {
			sum += uint64(p.weight[at])
			touch[e.Col[at]] += uint64(p.weight[at])
		}
		weight[v] += sum
		touch[v] += sum
	}
}

// Source returns the source of the edge to own vertex v that a draw fell on; v itself if it was that of the vertex alone.
func (p *Pairs) Source(v int32, rest uint64) int32 {
	e := p.edges
	for at := e.RowPtr[v]; at < e.RowPtr[v+1]; at++ {
		if w := uint64(p.weight[at]); rest < w {
			return e.Col[at]
		} else {
			rest -= w
		}
	}
	return v
}

// place returns where the pairs have the edge to own vertex v that drawn has at a place.
func (p *Pairs) place(drawn *Edges, v int32, at int64) int64 {
	if drawn == p.edges {
		return at
	}
	e, u := p.edges, drawn.id(drawn.Col[at])
	lo := e.RowPtr[v]
	k, _ := slices.BinarySearchFunc(e.Col[lo:e.RowPtr[v+1]], u, func(j int32, u uint64) int { return cmp.Compare(e.id(j), u) })
	return lo + int64(k)
}

// both returns the weight of the draws that hit both ends of an edge at once.
func (p *Pairs) both(at int64) uint64 {
	return uint64(p.weight[at]) << (p.back[at>>6] >> (at & 63) & 1)
}

// SaintNodes adds to weight[j] that by which saint-node draws each source j, as far as the edges of own vertices g, of
// which degree are the degrees, say.
func SaintNodes(g *graph.CSR, degree []float32, weight []uint64) {
	for v := range g.NumDst {
		d := float64(degree[v]) + 1
		part := uint64(max(1, weightUnit/(d*d)))
		weight[v] += part
		col, _ := g.Row(v)
		for _, j := range col {
			if int(j) != v {
				weight[j] += part
			}
		}
	}
}

// Within is the nodes of the batch that a sampler draws the edges of.
type Within struct {
	Of    *Subgraphs
	Pairs *Pairs   // of saint-edge
	nodes []int32  // of the batch at hand
	set   []uint64 // [N] bits of these
}

// Enter makes nodes, by their IDs, those of the batch.
func (w *Within) Enter(nodes []int32) {
	if w.set == nil {
		w.set = make([]uint64, (w.Of.n+63)/64)
	}
	for _, v := range w.nodes {
		w.set[v>>6] = 0
	}
	for _, v := range nodes {
		w.set[v>>6] |= 1 << (v & 63)
	}
	w.nodes = nodes
}

// inside takes the edges of a row of a vertex whose sources the batch has.
func (s *Sampler) inside(vertex int32, lo int64, n int) {
	w, e, first := s.within, s.edges, len(s.at)
	v := e.id(vertex)
	for at := lo; at < lo+int64(n); at++ {
		if u := e.id(e.Col[at]); w.set[u>>6]>>(u&63)&1 != 0 {
			s.at = append(s.at, at)
		}
	}
	drawn := len(s.at) - first
	switch {
	case !e.Scaled || drawn == 0:
	case s.config.Kind == "cluster":
		s.same(drawn, float32(float64(n)/float64(drawn)))
	default:
		for _, at := range s.at[first:] {
			u, both, alpha := e.id(e.Col[at]), uint64(0), 1.0
			if u != v {
				if w.Pairs != nil {
					both = w.Pairs.both(w.Pairs.place(e, vertex, at))
				}
				alpha = w.Of.alpha(u, v, both)
			}
			s.factor = append(s.factor, float32(1/alpha))
		}
	}
}
