package leaf

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// CrossEdges are the edges between nodes of different members: leaves or collecting sites. All collecting sites have
// the same ones. A leaf has none, and receives how many its own nodes have.
type CrossEdges struct {
	names []string // of nodes, ascending
	index map[string]int32
	adj   graph.CSR // both directions of each
}

// mostName bounds the name of a node, in bytes.
const mostName = 255

// NewEdges returns the edges between the named ends. The same pair twice is one edge.
func NewEdges(pairs [][2]string) (*CrossEdges, error) {
	e := &CrossEdges{index: map[string]int32{}}
	for k, pair := range pairs {
		for _, name := range pair {
			if len(name) == 0 || len(name) > mostName {
				return nil, fmt.Errorf("edge %d: the name of a node must have 1 to %d bytes (got %d)", k+1, mostName,
					len(name))
			}
			e.index[name] = 0
		}
		if pair[0] == pair[1] {
			return nil, fmt.Errorf("edge %d: its ends must be two nodes (got %q twice)", k+1, pair[0])
		}
	}
	e.names = slices.Sorted(maps.Keys(e.index))
	if len(e.names) > MostLeaves {
		return nil, fmt.Errorf("edges must have at most %d nodes (got %d)", MostLeaves, len(e.names))
	}
	for i, name := range e.names {
		e.index[name] = int32(i)
	}
	var src, dst []int32
	for _, pair := range pairs {
		src, dst = append(src, e.index[pair[0]]), append(dst, e.index[pair[1]])
	}
	var err error
	e.adj, err = graph.FromEdges(len(e.names), src, dst, nil, graph.Build{})
	return e, err
}

// digest reports whether two sites have the same edges.
func (e *CrossEdges) digest() []byte {
	h := sha256.New()
	for i, name := range e.names {
		col, _ := e.adj.Row(i)
		fmt.Fprintf(h, "%q %d\n", name, col)
	}
	return h.Sum(nil)
}

// border is what one site knows of the edges of a run.
type border struct {
	*CrossEdges
	owner []int32 // by node: the site that has it (−1 = a leaf)
	own   []int32 // nodes of this site
	edge  shard.BorderNodes
}

// Boundary returns the border nodes of a member whose nodes have those names.
func (e *CrossEdges) Boundary(ids []string) shard.BorderNodes {
	_, b := e.find(ids)
	return b
}

// find returns the nodes with edges that are among ids, ascending, and where.
func (e *CrossEdges) find(ids []string) (nodes []int32, b shard.BorderNodes) {
	rows := map[int32]int32{}
	for row, id := range ids {
		if i, is := e.index[id]; is {
			rows[i] = int32(row)
		}
	}
	nodes = slices.Sorted(maps.Keys(rows))
	for _, i := range nodes {
		b.Rows, b.Degree = append(b.Rows, rows[i]), append(b.Degree, float32(e.degree(i)))
	}
	return nodes, b
}

func (e *CrossEdges) degree(node int32) int { return int(e.adj.RowPtr[node+1] - e.adj.RowPtr[node]) }

// Bind lets the collecting sites know which nodes each of them has, by their names, before the first sum. All sites of
// the group call it if the agreement has edges; a site that collects no shares has none. An error names the site whose
// edges differ, or that has a node of another.
func (s *Collector) Bind(ctx context.Context, ids []string) error {
	var mine []byte
	if s.intake != nil {
		s.border = &border{CrossEdges: s.intake.rules.Edges}
		s.border.own, s.border.edge = s.border.find(ids)
		mine = s.border.digest()
		for _, i := range s.border.own {
			mine = binary.LittleEndian.AppendUint32(mine, uint32(i))
		}
	}
	in, err := s.tell(ctx, "edges between members", mine, s.agreed.Sites, sha256.Size+4*MostLeaves)
	if err != nil || s.intake == nil {
		return err
	}
	s.border.owner = slices.Repeat([]int32{-1}, len(s.border.names))
	for q := range s.agreed.Sites {
		if err := s.border.take(int32(q), in[q]); err != nil {
			return &comm.PeerError{Rank: q, Op: "edges between members", Err: err}
		}
	}
	s.intake.bind(s.border)
	return nil
}

// take notes the nodes that site q reports.
func (b *border) take(q int32, said []byte) error {
	if len(said) < sha256.Size || len(said)%4 != 0 {
		return fmt.Errorf("a site's list of its nodes must have at least %d bytes (got %d)", sha256.Size, len(said))
	}
	if string(said[:sha256.Size]) != string(b.digest()) {
		return errors.New("all sites that collect shares must have the same edges between members")
	}
	for said = said[sha256.Size:]; len(said) > 0; said = said[4:] {
		i := binary.LittleEndian.Uint32(said)
		if int(i) >= len(b.names) {
			return fmt.Errorf("a node must be below %d (got %d)", len(b.names), i)
		}
		if b.owner[i] >= 0 {
			return fmt.Errorf("node %q must be of one site (got %d and %d)", b.names[i], b.owner[i], q)
		}
		b.owner[i] = q
	}
	return nil
}

// described is what a leaf receives about each of its nodes that have edges: the number of edges (4 bytes), the length
// of the name (2 bytes) and the name.
func (b *border) described(nodes []int32) (text []byte) {
	for _, i := range nodes {
		text = binary.LittleEndian.AppendUint32(text, uint32(b.degree(i)))
		text = binary.LittleEndian.AppendUint16(text, uint16(len(b.names[i])))
		text = append(text, b.names[i]...)
	}
	return text
}

// parseNodes returns where the nodes that a site has described are among a leaf's ids. A leaf of one node is that node,
// whatever it calls it.
func parseNodes(b []byte, ids []string) (of shard.BorderNodes, err error) {
	rows := make(map[string]int32, len(ids))
	for row, id := range ids {
		rows[id] = int32(row)
	}
	for len(b) > 0 {
		if len(b) < 6 || len(b) < 6+int(binary.LittleEndian.Uint16(b[4:])) {
			return of, fmt.Errorf("the description of a node must have 6 bytes and a name (got %d)", len(b))
		}
		end := 6 + int(binary.LittleEndian.Uint16(b[4:]))
		name := string(b[6:end])
		row, has := rows[name]
		if !has && len(ids) == 1 && len(b) == end && len(of.Rows) == 0 {
			row, has = 0, true
		}
		if !has || slices.Contains(of.Rows, row) {
			return of, fmt.Errorf("the phone's graph must have the node %q once, which the sites know it by", name)
		}
		of.Rows, of.Degree = append(of.Rows, row), append(of.Degree, float32(binary.LittleEndian.Uint32(b)))
		b = b[end:]
	}
	return of, nil
}
