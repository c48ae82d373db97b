package minibatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/rng"
)

// relay samples batches together with the other peers: each samples in-edges of its own nodes for all peers.
type relay struct {
	group   *comm.Group
	shard   *shard.Shard
	dir     *links.Directory
	hops    int
	edges   *sample.InEdges
	sampler *sample.Sampler
	builder *sample.Builder

	foreign bool         // seeds may be other peers' nodes
	left    []links.Left // [batch] edges that samples omit (nil = none)
	means   bool         // a layer's sum over edges is a weighted mean
}

// mostMessage bounds a message of a relay.
const mostMessage = comm.MaxUnread

// sample returns a batch for each of the lists of seeds, sampled with its key. Seeds are own nodes; nodes of the
// batches are global IDs. All peers call it with the same number of keys.
func (r *relay) sample(ctx context.Context, keys []rng.Key, seeds [][]int32) ([]sample.Batch, error) {
	all := make([]sample.Batch, len(keys))
	for b := range all {
		all[b].Begin(seeds[b], r.hops)
	}
	for hop := range r.hops {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := r.split(all)
		drawn := make([][]sample.Drawn, len(keys)) // [batch][peer]
		for b, key := range keys {
			drawn[b] = make([]sample.Drawn, r.shard.Parts)
			drawn[b][r.shard.Rank] = r.draw(b, key, hop, f.of[b][r.shard.Rank])
		}
		if r.shard.Parts > 1 && (hop > 0 || r.foreign) {
			if err := r.ask(ctx, keys, hop, f, drawn); err != nil {
				return nil, err
			}
		}
		for b := range all {
			r.builder.Hop(&all[b], hop, drawn[b], f.part[b])
		}
	}
	return all, nil
}

// frontier is the nodes whose in-edges a hop samples.
type frontier struct {
	of   [][][]int32 // [batch][peer] IDs
	part [][]uint16  // [batch] owner of each node
}

// split sorts the nodes of batches by owner.
func (r *relay) split(all []sample.Batch) frontier {
	f := frontier{make([][][]int32, len(all)), make([][]uint16, len(all))}
	for b := range all {
		f.of[b], f.part[b] = make([][]int32, r.shard.Parts), make([]uint16, len(all[b].Nodes))
		if r.shard.Parts == 1 {
			f.of[b][0] = all[b].Nodes
			continue
		}
		for i, id := range all[b].Nodes {
			q := r.dir.Peer[id]
			f.part[b][i], f.of[b][q] = q, append(f.of[b][q], id)
		}
	}
	return f
}

// draw samples in-edges of own nodes for a batch; nodes are global IDs.
func (r *relay) draw(batch int, key rng.Key, hop int, ids []int32) (d sample.Drawn) {
	own := make([]int32, len(ids))
	for i, id := range ids {
		own[i] = r.dir.Local[id]
	}
	r.sampler.Draw(key, hop, own, &d)
	if r.left != nil {
		r.leave(&d, own, r.left[batch])
	}
	global := r.shard.Global
	for k, j := range d.Src {
		d.Src[k] = int32(global[j])
	}
	return d
}

// leave removes edges from the samples of own nodes. Their weight in a mean goes to the node's other edges: otherwise a
// node's row would reveal that it is an end of a link. A relation without a remaining edge does not reach a node.
func (r *relay) leave(d *sample.Drawn, own []int32, out links.Left) {
	kinds := max(1, r.edges.Relations)
	n := (len(r.edges.RowPtr) - 1) / kinds
	relation := func(row int) int32 {
		if r.edges.Relations == 0 {
			return -1
		}
		return int32(row % kinds)
	}
	d.Without(r.edges.EdgeX.Cols,
		func(row int, source int32) bool { return out.Edge(relation(row), own[row/kinds], source) })
	for row, hi := range d.End {
		node, lo := own[row/kinds], int32(0)
		if row > 0 {
			lo = d.End[row-1]
		}
		if !out.Of(node) {
			continue
		}
		all, others, some := 0.0, 0.0, false
		at := row%kinds*n + int(node)
		for e := r.edges.RowPtr[at]; e < r.edges.RowPtr[at+1]; e++ {
			w := 1.0
			if r.edges.Weight != nil {
				w = float64(r.edges.Weight[e])
			}
			if all += w; !out.Edge(relation(row), node, r.edges.Col[e]) {
				others, some = others+w, true
			}
		}
		if d.Reached != nil {
			d.Reached[row] = some
		}
		if r.means && d.Weight != nil && others > 0 {
			for k := range d.Weight[lo:hi] {
				d.Weight[int(lo)+k] *= float32(all / others)
			}
		}
	}
}

// ask sends each other peer its nodes in all batches, and puts their samples into the last argument. A request is, for
// each batch, u32 n · n u32 IDs.
func (r *relay) ask(ctx context.Context, keys []rng.Key, hop int, f frontier, drawn [][]sample.Drawn) error {
	out := make([][]byte, r.shard.Parts)
	for q := range out {
		if q == r.shard.Rank {
			continue
		}
		for b := range keys {
			out[q] = appendIDs(out[q], f.of[b][q])
		}
	}
	in, err := r.group.SendRecv(ctx, comm.Control, fmt.Sprintf("nodes whose edges hop %d samples", hop), out,
		mostMessage)
	if err != nil {
		return err
	}
	for q := range out {
		if q == r.shard.Rank {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if out[q], err = r.serve(keys, hop, in[q]); err != nil {
			return &comm.PeerError{Rank: q, Op: "request of a sample", Err: err}
		}
	}
	what := fmt.Sprintf("sampled edges of hop %d", hop)
	if in, err = r.group.SendRecv(ctx, comm.Halo, what, out, mostMessage); err != nil {
		return err
	}
	for q, message := range in {
		if q == r.shard.Rank {
			continue
		}
		for b := range keys {
			if drawn[b][q], message, err = r.readDrawn(message, len(f.of[b][q])); err != nil {
				return &comm.PeerError{Rank: q, Op: what, Err: err}
			}
		}
		if len(message) > 0 {
			return &comm.PeerError{Rank: q, Op: what,
				Err: comm.Refused("samples must end with the last batch (got %d bytes more)", len(message))}
		}
	}
	return nil
}

// appendIDs appends a list of IDs to a request.
func appendIDs(b []byte, ids []int32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// readIDs reads a list of IDs of a peer's nodes from the front of a message.
func readIDs(d *links.Directory, b []byte, rank int) (ids []int32, rest []byte, err error) {
	n := uint32(0)
	if len(b) >= 4 {
		n, b = binary.LittleEndian.Uint32(b), b[4:]
	} else {
		return nil, nil, comm.Refused("a request must have a list for each batch (got %d bytes for one)", len(b))
	}
	if int64(n) > int64(len(b)/4) {
		return nil, nil, comm.Refused("a request of %d nodes must have 4 bytes for each (got %d bytes)", n, len(b))
	}
	ids = make([]int32, n)
	for i := range ids {
		id := binary.LittleEndian.Uint32(b[4*i:])
		if id >= uint32(len(d.Peer)) || int(d.Peer[id]) != rank || d.Peer[id] == links.Nobody {
			return nil, nil, comm.Refused("a request must name nodes of this peer (got %d)", id)
		}
		ids[i] = int32(id)
	}
	return ids, b[4*n:], nil
}

// serve answers a request. For each batch an answer has, for each node and relation, a uvarint: its number of edges. If
// a layer reads which relations reach a node, it is twice the number, plus 1 if this relation does. Then come u32 IDs
// of the edges' sources. If samples have weights, f32 of each edge follows and, if nodes have edges from themselves,
// f32 of each node.
func (r *relay) serve(keys []rng.Key, hop int, request []byte) (answer []byte, err error) {
	for b, key := range keys {
		var ids []int32
		if ids, request, err = readIDs(r.dir, request, r.shard.Rank); err != nil {
			return nil, err
		}
		d := r.draw(b, key, hop, ids)
		before := int32(0)
		for i, end := range d.End {
			n := uint64(end - before)
			if r.edges.Reached {
				if n <<= 1; d.Reached[i] {
					n |= 1
				}
			}
			answer = binary.AppendUvarint(answer, n)
			before = end
		}
		for _, id := range d.Src {
			answer = binary.LittleEndian.AppendUint32(answer, uint32(id))
		}
		for _, x := range [][]float32{d.Weight, d.Loop, d.EdgeX} {
			answer = append(answer, comm.FloatBytes(x)...)
		}
	}
	if len(request) > 0 {
		return nil, comm.Refused("a request must end with the last batch (got %d bytes more)", len(request))
	}
	return answer, nil
}

// readDrawn reads the samples of `nodes` nodes from the front of an answer.
func (r *relay) readDrawn(b []byte, nodes int) (d sample.Drawn, rest []byte, err error) {
	d.End = make([]int32, nodes*max(1, r.edges.Relations))
	edges := uint64(0)
	for i := range d.End {
		n, k := binary.Uvarint(b)
		if r.edges.Reached {
			d.Reached = append(d.Reached, n&1 != 0)
			n >>= 1
		}
		if k <= 0 || n > uint64(len(r.dir.Peer)) {
			return d, nil, comm.Refused("row %d of a sample must have from 0 to %d edges (got %d)", i, len(r.dir.Peer),
				n)
		}
		b, edges = b[k:], edges+n
		d.End[i] = int32(min(edges, math.MaxInt32))
	}
	size, columns := 4*edges, 0
	if r.edges.Scaled {
		if size *= 2; r.edges.Loops {
			size += 4 * uint64(nodes)
		}
	}
	if r.edges.Edge != nil {
		columns = r.edges.EdgeX.Cols
		size += 4 * edges * uint64(columns)
	}
	if edges > math.MaxInt32 || size > uint64(len(b)) {
		return d, nil, comm.Refused("a sample of %d edges must have %d bytes (got %d)", edges, size, len(b))
	}
	d.Src = make([]int32, edges)
	for k := range d.Src {
		id := binary.LittleEndian.Uint32(b[4*k:])
		if id >= uint32(len(r.dir.Peer)) || r.dir.Peer[id] == links.Nobody {
			return d, nil, comm.Refused("the source of a sampled edge must be a node of the graph (got %d)", id)
		}
		d.Src[k] = int32(id)
	}
	b = b[4*edges:]
	if r.edges.Scaled {
		if d.Weight, b, err = readNumbers(b, int(edges), "weight"); err == nil && r.edges.Loops {
			d.Loop, b, err = readNumbers(b, nodes, "weight")
		}
	}
	if err == nil && columns > 0 {
		d.EdgeX, b, err = readNumbers(b, int(edges)*columns, "column")
	}
	return d, b, err
}

// readNumbers reads n weights, or columns, of edges from the front of an answer.
func readNumbers(b []byte, n int, what string) (x []float32, rest []byte, err error) {
	x = make([]float32, n)
	for k := range x {
		v := math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:]))
		if !(math.Abs(float64(v)) <= math.MaxFloat32) {
			return nil, nil, comm.Refused("the %s of a sampled edge must be finite (got %g)", what, v)
		}
		x[k] = v
	}
	return x, b[4*n:], nil
}
