package minibatch

import (
	"context"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/train"
)

// features fetches the input rows of batches.
type features struct {
	group  *comm.Group
	sender *train.Sender
	shard  *shard.Shard
	dir    *links.Directory
	input  graph.Features // rows of own nodes
	piece  int            // bytes of rows that a peer sends another at once, approximately
	place  []int32        // [N] index of a node in a group, from 1 (0 = not in the group)
	cache  *cache         // (nil = none)

	wanted, cached atomic.Int64 // number of other peers' rows that groups have read, and how many of them were cached
}

// pieceLen is how many bytes of rows a peer sends another at once: a fraction of the unread bytes that comm allows.
const pieceLen = comm.MaxUnread / 8

// inputs has the rows of a group of batches, each node's row once.
type inputs struct {
	rows graph.Features
	at   [][]int32 // [batch] the row of each node
}

// fetch returns the input rows of batches; each peer sends the rows of its nodes, once each. next are the following
// groups that are known.
func (f *features) fetch(ctx context.Context, all []sample.Batch, next [][]sample.Batch) (*inputs, error) {
	x := &inputs{at: make([][]int32, len(all))}
	if f.shard.Parts == 1 {
		for b := range all {
			x.at[b] = make([]int32, len(all[b].Nodes))
			for i, id := range all[b].Nodes {
				x.at[b][i] = f.dir.Local[id]
			}
		}
		x.rows = f.input
		return x, nil
	}
	need := f.union(all)
	held := f.held(need)
	give, pieces, err := f.ask(ctx, need)
	if err != nil {
		return nil, err
	}
	own := make([]int32, len(need[f.shard.Rank]))
	for i, id := range need[f.shard.Rank] {
		own[i] = f.dir.Local[id]
	}
	parts := []graph.Features{f.input.Select(own)}
	nodes := [][]int32{need[f.shard.Rank]}
	for k := range pieces {
		if err := f.receive(ctx, k, pieces, need, give, &parts, &nodes); err != nil {
			return nil, err
		}
	}
	if f.cache != nil {
		came, of := parts[1:], nodes[1:]
		if len(held) > 0 {
			parts, nodes = append(parts, f.cache.of(held)), append(nodes, held)
		}
		f.cache.keep(graph.Below(came), slices.Concat(of...), all, next)
	}
	x.rows = graph.Below(parts)
	f.enter(nodes, all, x.at)
	return x, nil
}

// held removes the cached nodes from those that other peers must send, and returns them.
func (f *features) held(need [][]int32) (held []int32) {
	for q := range need {
		if q == f.shard.Rank {
			continue
		}
		f.wanted.Add(int64(len(need[q])))
		if f.cache != nil {
			var has []int32
			has, need[q] = f.cache.take(need[q])
			held = append(held, has...)
		}
	}
	f.cached.Add(int64(len(held)))
	return held
}

// enter fills in at, the rows of the nodes of batches; nodes has one list a peer, in the order of the rows.
func (f *features) enter(nodes [][]int32, all []sample.Batch, at [][]int32) {
	row := int32(0)
	for _, ids := range nodes {
		for _, id := range ids {
			row++
			f.place[id] = row
		}
	}
	for b := range all {
		at[b] = make([]int32, len(all[b].Nodes))
		for i, id := range all[b].Nodes {
			at[b][i] = f.place[id] - 1
		}
	}
	for _, ids := range nodes {
		for _, id := range ids {
			f.place[id] = 0
		}
	}
}

// union returns the nodes of batches by owner, each once.
func (f *features) union(all []sample.Batch) [][]int32 {
	need := make([][]int32, f.shard.Parts)
	for b := range all {
		for _, id := range all[b].Nodes {
			if f.place[id] == 0 {
				f.place[id] = 1
				q := f.dir.Peer[id]
				need[q] = append(need[q], id)
			}
		}
	}
	for _, ids := range need {
		for _, id := range ids {
			f.place[id] = 0
		}
	}
	return need
}

// ask requests the rows that this peer needs from every other peer. It returns the own rows that each peer needs, and
// the number of pieces in which all rows are sent. A request is u32 pieces · u32 n · n u32 IDs; all peers use the
// largest number of pieces.
func (f *features) ask(ctx context.Context, need [][]int32) (give [][]int32, pieces int, err error) {
	pieces = 1
	row := max(1, f.sender.RowLen(f.input.Cols()))
	for q, ids := range need {
		if q != f.shard.Rank {
			pieces = max(pieces, (len(ids)*row+f.piece-1)/f.piece)
		}
	}
	out := make([][]byte, f.shard.Parts)
	for q, ids := range need {
		if q != f.shard.Rank {
			out[q] = appendIDs(binary.LittleEndian.AppendUint32(nil, uint32(pieces)), ids)
		}
	}
	in, err := f.group.SendRecv(ctx, comm.Control, "nodes whose features are needed", out, mostMessage)
	if err != nil {
		return nil, 0, err
	}
	give = make([][]int32, f.shard.Parts)
	for q, b := range in {
		if q == f.shard.Rank {
			continue
		}
		theirs, rest := uint32(0), []byte(nil)
		if len(b) >= 4 {
			theirs = binary.LittleEndian.Uint32(b)
			give[q], rest, err = readIDs(f.dir, b[4:], f.shard.Rank)
		}
		if err == nil && (theirs < 1 || theirs > 1<<20 || len(rest) > 0) {
			err = comm.Refused("a request must have one list and from 1 to %d pieces (got %d, and %d bytes more)",
				1<<20, theirs, len(rest))
		}
		if err != nil {
			return nil, 0, &comm.PeerError{Rank: q, Op: "request of features", Err: err}
		}
		for i, id := range give[q] {
			give[q][i] = f.dir.Local[id]
		}
		pieces = max(pieces, int(theirs))
	}
	return give, pieces, nil
}

// receive exchanges piece k of the rows. It appends the received rows to parts and their nodes to nodes.
func (f *features) receive(ctx context.Context, k, pieces int, need, give [][]int32, parts *[]graph.Features,
	nodes *[][]int32) error {
	cut := func(list []int32) []int32 { return list[k*len(list)/pieces : (k+1)*len(list)/pieces] }
	var rows []int32 // own rows in this piece that any peer needs
	from := make([][]int32, f.shard.Parts)
	ptr := make([]int, f.shard.Parts+1)
	for q := range from {
		if q == f.shard.Rank {
			continue
		}
		for _, i := range cut(give[q]) {
			from[q] = append(from[q], int32(len(rows)))
			rows = append(rows, i)
		}
	}
	ptr[0] = len(rows)
	for q := range f.shard.Parts {
		ptr[q+1] = ptr[q]
		if q != f.shard.Rank {
			part := cut(need[q])
			ptr[q+1] += len(part)
			*nodes = append(*nodes, part)
		}
	}
	x, err := f.sender.Rows(ctx, from, ptr, f.input.Select(rows), f.input.Sparse != nil, "features of sampled nodes")
	if err != nil {
		return err
	}
	if f.input.Sparse != nil && x.Sparse == nil { // some peer sent its rows dense, since that took fewer bytes
		x.Sparse = train.NonZeros(x)
	}
	theirs := make([]int32, ptr[f.shard.Parts]-ptr[0])
	for i := range theirs {
		theirs[i] = int32(ptr[0] + i)
	}
	*parts = append(*parts, x.Select(theirs))
	return nil
}
