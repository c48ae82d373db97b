package minibatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// directory says who owns which node. Nodes are known by their global IDs, so that what is made of them does not depend
// on the partition. It takes 6 bytes a node of the whole graph.
type directory struct {
	owner []uint16 // [N]
	local []int32  // [N] the owner's index
	train []int32  // IDs of the labelled training nodes of all peers, ascending
}

// mostPeers bounds ranks, of which one value of owner means that there is none.
const mostPeers = math.MaxUint16

// learnDirectory tells the other peers the IDs of own nodes, and which of them, ascending, train.
func learnDirectory(ctx context.Context, g *comm.Group, s *shard.Shard, training []int32) (*directory, error) {
	if s.Nodes > math.MaxInt32 || s.Parts >= mostPeers {
		return nil, fmt.Errorf("minibatch: a graph must have at most %d nodes and %d parts (got %d and %d)", math.MaxInt32, mostPeers-1, s.Nodes, s.Parts)
	}
	d := &directory{owner: slices.Repeat([]uint16{mostPeers}, int(s.Nodes)), local: make([]int32, s.Nodes)}
	var message []byte // of each node twice the difference to the one before, plus 1 if it trains
	last := int64(0)
	for i, id := range s.Global[:s.Owned] {
		x := (id - last) << 1
		if len(training) > 0 && int(training[0]) == i {
			x, training = x|1, training[1:]
		}
		message = binary.AppendVarint(message, x)
		last = id
	}
	out := make([][]byte, s.Parts)
	for q := range out {
		if q != s.Rank {
			out[q] = message
		}
	}
	in, err := g.SendRecv(ctx, comm.Control, "IDs of nodes", out, binary.MaxVarintLen64*int(s.Nodes))
	if err != nil {
		return nil, err
	}
	trains := make([]bool, s.Nodes)
	in[s.Rank] = message
	for q, b := range in {
		if err := d.read(q, b, trains); err != nil {
			return nil, &comm.PeerError{Rank: q, Op: "IDs of nodes", Err: err}
		}
	}
	for id, is := range trains {
		if is {
			d.train = append(d.train, int32(id))
		}
	}
	return d, nil
}

// read enters the nodes of peer q.
func (d *directory) read(q int, b []byte, trains []bool) error {
	id := int64(0)
	for k := int32(0); len(b) > 0; k++ {
		x, n := binary.Varint(b)
		if n <= 0 {
			return comm.Refused("the ID of node %d must be a number", k)
		}
		b = b[n:]
		id += x >> 1
		if id < 0 || id >= int64(len(d.owner)) {
			return comm.Refused("the ID of node %d must be from 0 to %d (got %d)", k, len(d.owner)-1, id)
		}
		if was := d.owner[id]; was != mostPeers {
			return comm.Refused("node %d must have one owner (got peers %d and %d)", id, was, q)
		}
		d.owner[id], d.local[id], trains[id] = uint16(q), k, x&1 != 0
	}
	return nil
}
