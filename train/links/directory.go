package links

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// directory says, of each node of the whole graph by its ID, who owns it and of which type it is: 7 bytes a node.
type directory struct {
	owner []uint16
	place []int32 // the owner's index
	kind  []uint8
}

// nobody is the owner of a node that no peer has named.
const nobody = math.MaxUint16

// learnDirectory tells the other peers the IDs and types of own nodes. A message is, for each node, a varint, its ID less the
// one before, and u8 type.
func learnDirectory(ctx context.Context, g *comm.Group, s *shard.Shard) (*directory, error) {
	if s.Nodes > math.MaxInt32 || s.Parts >= nobody {
		return nil, fmt.Errorf("task links needs at most %d nodes and %d peers (got %d and %d)", math.MaxInt32, nobody-1, s.Nodes, s.Parts)
	}
	d := &directory{slices.Repeat([]uint16{nobody}, int(s.Nodes)), make([]int32, s.Nodes), make([]uint8, s.Nodes)}
	var own []byte
	before := int64(0)
	for i, id := range s.Global[:s.Owned] {
		own = binary.AppendVarint(own, id-before)
		kind := uint8(0)
		if s.Types.Count() > 0 {
			kind = s.Types.Of[i]
		}
		own, before = append(own, kind), id
	}
	out := make([][]byte, s.Parts)
	for q := range out {
		out[q] = own
	}
	out[s.Rank] = nil
	in, err := g.SendRecv(ctx, comm.Control, "IDs and types of nodes", out, (binary.MaxVarintLen64+1)*int(s.Nodes))
	if err != nil {
		return nil, err
	}
	in[s.Rank] = own
	for q, b := range in {
		if err := d.enter(q, b, max(s.Types.Count(), 1)); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: "IDs and types of nodes", Err: err}
		}
	}
	return d, nil
}

// enter enters the nodes of peer q.
func (d *directory) enter(q int, b []byte, types int) error {
	for id, k := int64(0), int32(0); len(b) > 0; k++ {
		step, n := binary.Varint(b)
		if n <= 0 || n == len(b) {
			return comm.Refused("a list of nodes must end with a type (got %d bytes more)", len(b))
		}
		if id += step; id < 0 || id >= int64(len(d.owner)) || d.owner[id] != nobody || int(b[n]) >= types {
			return comm.Refused("node %d must be one of %d, of one peer and one of %d types (got node %d, type %d)", k, len(d.owner), types, id, b[n])
		}
		d.owner[id], d.place[id], d.kind[id] = uint16(q), k, b[n]
		b = b[n+1:]
	}
	return nil
}
