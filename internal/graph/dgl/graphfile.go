package dgl

import (
	"fmt"
	"math"
)

const (
	fileMagic    = 0xDD2E4FF046B4A13F
	heteroMagic  = 0xDD589FBE35224ABF
	metaMagic    = 0xDD3C5FFE20046ABF
	unitMagic    = 0xDD2E60F0F6B4A127
	cooMagic     = 0xDD61FFD305DFF127
	csrMagic     = 0xDD6CD31205DFF127
	tensorsMagic = 0xDD5A9FBE3FA2443F

	fileVersion = 2
	heteroKind  = 2    // of the graphs in a file
	dataAt      = 4096 // where the list of graphs begins
)

// The sparse formats that a relation may be saved in; flags.
const (
	coo = 1 << iota
	csr
	csc
	flagged = 1 << 32 // set if the number is flags and not 1, 2 or 3, as old versions wrote
)

// local is the graph in graph.dgl: one node type and one relation, even if the whole graph has many.
type local struct {
	nodes      int
	src, dst   []int64 // [E] of edge k
	node, edge map[string]Tensor
}

// parseGraph reads graph.dgl in version 2.
func parseGraph(path string, b []byte) (*local, error) {
	s := &tensorStream{path: path, b: b}
	s.expect(fileMagic, "magic number of a file of graphs")
	at := s.at
	if version := s.u64("version"); s.err == nil && version != fileVersion {
		s.fail(at, "version of DGL's file of graphs must be %d (got %d)", fileVersion, version)
	}
	s.expect(heteroKind, "kind of graphs")
	s.expect(1, "number of graphs")
	s.take(dataAt-uint64(s.at), "filling after the header")
	at = s.at
	start := s.u64("place of the graph")
	s.columns("label")
	if s.err == nil && start != uint64(s.at) {
		s.fail(at, "the graph must begin at byte %d (got %d)", s.at, start)
	}
	g := s.graph()
	s.expect(16, "length of the list of graphs")
	s.expect(1, "number of graphs in the list")
	s.expect(start, "place of the graph in the list")
	s.expect(16, "length of the list of graphs")
	s.end()
	return g, s.err
}

func (s *tensorStream) graph() *local {
	g := &local{}
	s.expect(heteroMagic, "magic number of a graph")
	s.metagraph()
	at := s.at
	if n := s.count("relations", 24); s.err == nil && n != 1 {
		s.fail(at, "there must be 1 relation, since DGL stores a part with its types side by side (got %d)", n)
	}
	cols := s.unit(g)
	at = s.at
	s.expect(1, "number of node types")
	n := s.u64("number of nodes")
	if s.err == nil && (n > math.MaxInt32 || int64(n) != cols) {
		s.fail(at, "nodes and adjacency must have the same size, at most %d (got %d and %d)", math.MaxInt32, n, cols)
	}
	g.nodes = int(n)
	s.expect(1, "number of tables of nodes")
	g.node = s.columns("node column")
	s.expect(1, "number of tables of edges")
	g.edge = s.columns("edge column")
	for _, what := range []string{"node type", "edge type"} {
		s.expect(1, "number of names of "+what+"s")
		s.text("name of a " + what)
	}
	if s.err != nil {
		return nil
	}
	for k := range g.src {
		if i, j := g.src[k], g.dst[k]; i < 0 || i >= int64(n) || j < 0 || j >= int64(n) {
			s.fail(at, "edge %d goes from node %d to node %d, out of [0, %d)", k, i, j, n)
			return nil
		}
	}
	return g
}

// metagraph skips the types of the relation: with one of each they carry no information.
func (s *tensorStream) metagraph() {
	s.expect(metaMagic, "magic number of a metagraph")
	s.sparse()
}

// sparse reads a matrix of compressed rows and returns its arrays; rows and columns are counted.
func (s *tensorStream) sparse() (ptr, index, data Tensor, rows, cols int64) {
	s.expect(csrMagic, "magic number of compressed rows")
	cols, rows = int64(s.u64("columns")), int64(s.u64("rows"))
	ptr, index, data = s.tensor(), s.tensor(), s.tensor()
	s.take(1, "whether rows are sorted")
	return ptr, index, data, rows, cols
}

// unit reads the edges of a relation in whichever format it was saved, and returns the number of
// its nodes.
func (s *tensorStream) unit(g *local) (nodes int64) {
	s.expect(unitMagic, "magic number of a relation")
	at := s.at
	formats := s.u64("saved formats")
	s.u64("allowed formats")
	if formats>>32 == 0 { // one of 1, 2, 3
		formats = 1 << (formats - 1) & (coo | csr | csc)
	}
	if formats &^= flagged; s.err == nil && (formats == 0 || formats > coo|csr|csc) {
		s.fail(at, "saved formats must be some of 1 (pairs), 2 (rows), 4 (columns) (got %#x)", formats)
	}
	for format := uint64(coo); format <= csc && s.err == nil; format <<= 1 {
		if formats&format == 0 {
			continue
		}
		s.metagraph()
		at := s.at
		var src, dst []int64
		var err error
		if format == coo {
			src, dst, nodes, err = s.pairs()
		} else {
			src, dst, nodes, err = s.rows(format == csc)
		}
		if err != nil {
			s.fail(at, "%w", err)
		}
		if g.src == nil { // further formats repeat the same edges
			g.src, g.dst = src, dst
		}
	}
	return nodes
}

// pairs reads a list of edges.
func (s *tensorStream) pairs() (src, dst []int64, nodes int64, err error) {
	s.expect(cooMagic, "magic number of pairs")
	cols, rows := int64(s.u64("columns")), int64(s.u64("rows"))
	row, col, data := s.tensor(), s.tensor(), s.tensor()
	s.take(1, "whether rows are sorted")
	s.take(1, "whether columns are sorted")
	if s.err != nil {
		return nil, nil, 0, nil
	}
	if rows != cols {
		return nil, nil, 0, fmt.Errorf("the matrix must be square (got %d rows, %d columns)", rows, cols)
	}
	if src, err = row.vector(row.Len(), math.MaxInt64); err != nil {
		return nil, nil, 0, fmt.Errorf("sources: %w", err)
	}
	if dst, err = col.vector(len(src), math.MaxInt64); err != nil {
		return nil, nil, 0, fmt.Errorf("destinations: %w", err)
	}
	src, dst, err = byID(src, dst, data)
	return src, dst, rows, err
}

// rows reads compressed rows; of the transpose, a row is a destination and lists its sources.
func (s *tensorStream) rows(transposed bool) (src, dst []int64, nodes int64, err error) {
	ptr, index, data, rows, cols := s.sparse()
	if s.err != nil {
		return nil, nil, 0, nil
	}
	if rows != cols || rows < 0 || int64(ptr.Len()) != rows+1 {
		return nil, nil, 0, fmt.Errorf("the matrix must be square, with one more pointer than rows (got %d rows, %d "+
			"columns, %d pointers)", rows, cols, ptr.Len())
	}
	edges := index.Len()
	place, err := ptr.vector(ptr.Len(), int64(edges)+1)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("row pointers: %w", err)
	}
	if src, err = index.vector(edges, math.MaxInt64); err != nil {
		return nil, nil, 0, fmt.Errorf("columns: %w", err)
	}
	dst = make([]int64, 0, edges)
	for i := range int(rows) {
		if place[i] != int64(len(dst)) || place[i+1] < place[i] {
			return nil, nil, 0, fmt.Errorf("row %d must begin at %d (got %d to %d)", i, len(dst), place[i], place[i+1])
		}
		for range place[i+1] - place[i] {
			dst = append(dst, int64(i))
		}
	}
	if len(dst) != edges {
		return nil, nil, 0, fmt.Errorf("rows end at %d of %d edges", len(dst), edges)
	}
	if !transposed {
		src, dst = dst, src
	}
	src, dst, err = byID(src, dst, data)
	return src, dst, rows, err
}

// byID puts the edges into the order of their numbers, which columns follow. No numbers mean the order of the file.
func byID(src, dst []int64, id Tensor) ([]int64, []int64, error) {
	if id.Len() == 0 {
		return src, dst, nil
	}
	at, err := id.vector(len(src), int64(len(src)))
	if err != nil {
		return nil, nil, fmt.Errorf("edge numbers: %w", err)
	}
	seen := make([]bool, len(at))
	s, d := make([]int64, len(at)), make([]int64, len(at))
	for k, e := range at {
		if seen[e] {
			return nil, nil, fmt.Errorf("edge number %d occurs twice", e)
		}
		seen[e] = true
		s[e], d[e] = src[k], dst[k]
	}
	return s, d, nil
}

// parseTensors reads node_feat.dgl or edge_feat.dgl.
func parseTensors(path string, b []byte) (map[string]Tensor, error) {
	s := &tensorStream{path: path, b: b}
	s.expect(tensorsMagic, "magic number of a file of tensors")
	at := s.at
	n := s.u64("number of tensors")
	all := s.columns("tensor")
	if s.err == nil && n != uint64(len(all)) {
		s.fail(at, "%d tensors announced, %d follow", n, len(all))
	}
	s.end()
	return all, s.err
}
