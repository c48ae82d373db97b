package shard

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/mat"
)

// Cut returns the shards of g, one for each part; part owner[i] owns node i. A part may own nothing. Adjacency,
// features and labels are copied. It refuses an invalid graph, less than one part or more parts than nodes, and owners
// out of range.
func Cut(g *graph.Graph, owner []int32, parts int) ([]*Shard, error) {
	if err := CheckParts(g.N(), parts); err != nil {
		return nil, err
	}
	if err := g.Valid(); err != nil {
		return nil, err
	}
	if len(owner) != g.N() {
		return nil, fmt.Errorf("%d owners for %d nodes", len(owner), g.N())
	}
	owned := make([][]int32, parts)
	local := make([]int32, g.N()) // index of each node among its owner's nodes
	for i, p := range owner {
		if p < 0 || int(p) >= parts {
			return nil, fmt.Errorf("owner of node %d is %d, out of [0, %d)", i, p, parts)
		}
		local[i] = int32(len(owned[p]))
		owned[p] = append(owned[p], int32(i))
	}
	c := &cutter{g: g, owner: owner, owned: owned, local: local, to: slices.Repeat([]int32{-1}, g.N()),
		print: Fingerprint(g.Digest(), owner, parts)}
	shards := make([]*Shard, parts)
	for p := range shards {
		shards[p] = c.shard(p)
	}
	for p, s := range shards {
		for q, of := range shards {
			s.Boundary[q] = []int32{}
			for _, i := range of.Global[of.HaloPtr[p]:of.HaloPtr[p+1]] {
				s.Boundary[q] = append(s.Boundary[q], local[i])
			}
		}
	}
	return shards, nil
}

// CheckParts refuses a number of parts that n nodes cannot be divided into.
func CheckParts(n, parts int) error {
	if parts < 1 || parts > n {
		return fmt.Errorf("parts must be 1 to %d, as many as nodes (got %d)", n, parts)
	}
	return nil
}

// CheckSites returns an error that names a site without nodes, or nil. site has each node's.
func CheckSites(site []int32, names []string) error {
	owns := make([]bool, len(names))
	for _, s := range site {
		owns[s] = true
	}
	if k := slices.Index(owns, false); k >= 0 {
		return fmt.Errorf("every site must own a node (%s owns none)", names[k])
	}
	return nil
}

// cutter has the common data of the shards of one graph.
type cutter struct {
	g            *graph.Graph
	owner, local []int32
	owned        [][]int32
	to           []int32 // [N] source in the current shard (−1 between shards)
	print        [32]byte
}

// shard returns part p without its Boundary.
func (c *cutter) shard(p int) *Shard {
	parts, own := len(c.owned), c.owned[p]
	halo := make([][]int32, parts)
	for _, i := range own {
		c.to[i] = 0
	}
	for _, i := range own {
		col, _ := c.g.Adj.Row(int(i))
		for _, j := range col {
			if c.to[j] < 0 {
				c.to[j] = 0
				halo[c.owner[j]] = append(halo[c.owner[j]], j)
			}
		}
	}
	sources, ptr := slices.Clone(own), []int{len(own)}
	for _, nodes := range halo {
		slices.Sort(nodes)
		sources = append(sources, nodes...)
		ptr = append(ptr, len(sources))
	}
	s := &Shard{Rank: p, Parts: parts, Owned: len(own), HaloPtr: ptr, Nodes: int64(c.g.N()), Name: c.g.Name,
		Encoding: c.g.Encoding, Fingerprint: c.print, Boundary: make([][]int32, parts),
		Global: make([]int64, len(sources))}
	s.setTables(c.g.SelectNodes(own))
	for k, j := range sources {
		c.to[j] = int32(k)
		s.Global[k] = int64(j)
	}
	s.Adj = *c.g.Adj.Relabel(own, c.to, len(sources))
	s.Typed = relabelled(&c.g.Typed, own, c.to, len(sources))
	if c.g.EdgeX.Cols > 0 {
		s.edges(c.g.EdgeX)
	}
	for _, j := range sources {
		c.to[j] = -1
	}
	return s
}

// tables returns the own nodes and the edges into them; with halo these come from more nodes.
func (s *Shard) tables() *graph.Graph {
	return &graph.Graph{Name: s.Name, Adj: s.Adj, Typed: s.Typed, X: s.X, Types: s.Types, EdgeX: s.EdgeX,
		Labels: s.Labels, Split: s.Split, IDs: s.IDs, Encoding: s.Encoding}
}

// setTables replaces the tables of the own nodes by g's.
func (s *Shard) setTables(g *graph.Graph) {
	s.Types, s.Labels, s.Split, s.IDs = g.Types, g.Labels, g.Split, g.IDs
	if g.X.Cols() > 0 {
		s.X = g.X
	}
}

// edges gives s the rows of its edges in x, the whole graph's table.
func (s *Shard) edges(x mat.Dense) {
	var rows []int32
	s.EdgeX, rows = s.Typed.CompactEdges(&s.Adj, x)
	s.EdgeGlobal = make([]int64, len(rows))
	for k, e := range rows {
		s.EdgeGlobal[k] = int64(e)
	}
}

// relabelled returns the relations' edges into the nodes dst, with source j renamed to[j].
func relabelled(t *graph.Relations, dst, to []int32, numSrc int) graph.Relations {
	if t.Count() == 0 {
		return graph.Relations{}
	}
	n := t.Adj.NumDst / t.Count()
	return graph.Relations{Names: t.Names, Adj: *t.Adj.Relabel(graph.StackedRows(dst, n, t.Count()), to, numSrc)}
}

// Whole returns g, which must be valid, as the only part of a partition: the result of Cut, without copying.
func Whole(g *graph.Graph) *Shard {
	s := Unnamed(g)
	s.Fingerprint = Fingerprint(g.Digest(), make([]int32, g.N()), 1)
	return s
}

// Unnamed is Whole without the fingerprint, which takes as long as reading all of g.
func Unnamed(g *graph.Graph) *Shard {
	n := g.N()
	s := &Shard{Parts: 1, Owned: n, Adj: g.Adj, Typed: g.Typed, Global: make([]int64, n), HaloPtr: []int{n, n},
		Boundary: [][]int32{{}}, EdgeX: g.EdgeX, Nodes: int64(n), Name: g.Name, Encoding: g.Encoding}
	s.setTables(g)
	for i := range s.Global {
		s.Global[i] = int64(i)
	}
	if g.EdgeX.Cols > 0 {
		s.EdgeGlobal = make([]int64, g.EdgeX.Rows)
		for e := range s.EdgeGlobal {
			s.EdgeGlobal[e] = int64(e)
		}
	}
	return s
}

// Alone returns the graph of the own nodes of s and the edges between them, with the classes of the whole data set:
// what a site has without the others. It shares the memory of s.
func (s *Shard) Alone() *graph.Graph {
	g := s.tables()
	g.Name, g.Adj = fmt.Sprintf("%s part %d", s.Name, s.Rank), *s.Adj.Within(s.Owned) // halo comes after owned
	if s.Typed.Count() > 0 {
		g.Typed.Adj = *s.Typed.Adj.Within(s.Owned)
	}
	return g
}

// Fingerprint names a partition: the graph's digest, the number of parts and who owns what.
func Fingerprint(digest [32]byte, owner []int32, parts int) [32]byte {
	h := sha256.New()
	if err := section.Encode(h, "partition", []section.Section{section.Array("graph", digest[:]),
		section.Array("parts", []int64{int64(parts)}), section.Array("owner", owner)}); err != nil {
		panic(err) // as in graph.Graph.Digest
	}
	return [32]byte(h.Sum(nil))
}
