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

// Directory has the owner of each node of the whole graph, by global ID, in 7 bytes a node. Because it is by global ID,
// what is computed from it does not depend on the partition.
type Directory struct {
	Peer  []uint16 // [N] rank, or Nobody
	Local []int32  // [N] the owner's index
	Mark  []uint8  // [N] the owner's mark
}

// Nobody is the owner of a node that no peer has named.
const Nobody = math.MaxUint16

// LearnOwners sends the IDs of own nodes and the mark of each, below marks, to all peers, and returns the Directory of
// all nodes. A message has a varint for each node: marks · (its ID less the one before) + mark.
func LearnOwners(ctx context.Context, g *comm.Group, s *shard.Shard, mark []uint8, marks int) (*Directory, error) {
	if s.Nodes > math.MaxInt32 || s.Parts >= Nobody {
		return nil, fmt.Errorf("a graph must have at most %d nodes and %d parts (got %d and %d)", math.MaxInt32,
			Nobody-1, s.Nodes, s.Parts)
	}
	d := &Directory{slices.Repeat([]uint16{Nobody}, int(s.Nodes)), make([]int32, s.Nodes), make([]uint8, s.Nodes)}
	var own []byte
	last := int64(0)
	for i, id := range s.Global[:s.Owned] {
		own = binary.AppendVarint(own, (id-last)*int64(marks)+int64(mark[i]))
		last = id
	}
	out := make([][]byte, s.Parts)
	for q := range out {
		if q != s.Rank {
			out[q] = own
		}
	}
	const what = "IDs of nodes"
	in, err := g.SendRecv(ctx, comm.Control, what, out, binary.MaxVarintLen64*int(s.Nodes))
	if err != nil {
		return nil, err
	}
	in[s.Rank] = own
	for q, b := range in {
		if err := d.enter(q, b, int64(marks)); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: what, Err: err}
		}
	}
	return d, nil
}

// enter enters the nodes of peer q.
func (d *Directory) enter(q int, b []byte, marks int64) error {
	id := int64(0)
	for k := int32(0); len(b) > 0; k++ {
		x, n := binary.Varint(b)
		if n <= 0 {
			return comm.Refused("the ID of node %d must be a number", k)
		}
		b = b[n:]
		mark := (x%marks + marks) % marks
		if id += (x - mark) / marks; id < 0 || id >= int64(len(d.Peer)) {
			return comm.Refused("the ID of node %d must be from 0 to %d (got %d)", k, len(d.Peer)-1, id)
		}
		if was := d.Peer[id]; was != Nobody {
			return comm.Refused("node %d must have one owner (got peers %d and %d)", id, was, q)
		}
		d.Peer[id], d.Local[id], d.Mark[id] = uint16(q), k, uint8(mark)
	}
	return nil
}

// Of(peers) returns the nodes of each peer in its own order.
func (d *Directory) Of(peers int) [][]int32 {
	of, count := make([][]int32, peers), make([]int, peers)
	for _, q := range d.Peer {
		if q != Nobody {
			count[q]++
		}
	}
	for q := range of {
		of[q] = make([]int32, count[q])
	}
	for id, q := range d.Peer {
		if q != Nobody {
			of[q][d.Local[id]] = int32(id)
		}
	}
	return of
}
