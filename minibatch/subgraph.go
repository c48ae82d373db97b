package minibatch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/sample"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/owners"
)

// subgraphs says which nodes batches have that are induced subgraphs.
type subgraphs struct {
	*sample.Subgraphs
	group  *comm.Group
	shard  *shard.Shard
	dir    *directory
	pairs  *sample.Pairs // of saint-edge
	trains []bool        // [Owned]
}

// learnSubgraphs learns from the other peers by what batches are drawn, where those of c are induced subgraphs: of cluster
// the clusters that each makes of its own nodes, of the others the weights of nodes, which no partition changes.
func (t *Trainer) learnSubgraphs(ctx context.Context, sender *train.Sender, g *comm.Group, dir *directory, view train.GraphView, e *sample.Edges) (*subgraphs, error) {
	c := t.config.Sample
	if !c.Induced() {
		return nil, nil
	}
	s := &subgraphs{group: g, shard: t.shard, dir: dir, trains: make([]bool, t.shard.Owned)}
	for _, i := range t.labelled(graph.Train) {
		s.trains[i] = true
	}
	if c.Kind == "cluster" {
		own, err := t.ownClusters(view.Adj)
		if err != nil {
			return nil, err
		}
		cluster, n, err := dir.learnClusters(ctx, g, t.shard, own)
		s.Subgraphs = sample.Clusters(c, cluster, n)
		return s, err
	}
	counts := make([]float32, t.shard.Owned)
	for i := range counts {
		counts[i] = float32(view.Adj.RowPtr[i+1] - view.Adj.RowPtr[i])
	}
	degree, err := sender.Numbers(ctx, counts, "edges of each node")
	if err != nil {
		return nil, err
	}
	weight, touch := make([]uint64, len(t.shard.Global)), make([]uint64, len(t.shard.Global))
	if c.Kind == "saint-edge" {
		pairs := e
		if e.Relations > 0 {
			pairs = sample.NewEdges(view.Adj, t.shard.Global, false, false)
		}
		s.pairs = sample.NewPairs(pairs, degree)
		if err := dir.learnReverse(ctx, g, t.shard, pairs, s.pairs); err != nil {
			return nil, err
		}
		s.pairs.Weights(weight, touch)
	} else {
		sample.SaintNodes(view.Adj, degree, weight)
	}
	if t.config.Inductive { // nodes that training does not see have no edges
		for i, of := range t.shard.Split {
			if of == graph.Val || of == graph.Test {
				weight[i], touch[i] = 0, 0
			}
		}
	}
	if weight, touch, err = dir.learnWeights(ctx, g, t.shard, weight, touch); err != nil {
		return nil, err
	}
	if c.Kind == "saint-node" {
		touch = nil
	}
	s.Subgraphs = sample.Saint(c, weight, touch)
	return s, nil
}

// ownClusters makes this peer's share of the clusters of its own nodes, by the edges between them.
func (t *Trainer) ownClusters(adj *graph.CSR) ([]int32, error) {
	s, cluster := t.shard, make([]int32, t.shard.Owned)
	n := int(math.Round(float64(t.config.Sample.Clusters) * float64(s.Owned) / float64(s.Nodes)))
	if n = min(n, s.Owned); n <= 1 {
		return cluster, nil
	}
	own := &graph.Graph{Name: s.Name, Adj: *adj.Within(s.Owned), X: s.X, Split: s.Split}
	cluster, err := t.Cluster(own, n, t.key.FoldString("clusters"))
	if err != nil {
		return nil, fmt.Errorf("minibatch: %d clusters: %w", n, err)
	}
	return cluster, nil
}

// learnClusters tells the other peers the clusters of own nodes, and returns those of all nodes and how many there are: those
// of the first peer come first.
func (d *directory) learnClusters(ctx context.Context, g *comm.Group, s *shard.Shard, own []int32) (cluster []int32, n int, err error) {
	var message []byte
	for _, k := range own {
		message = binary.AppendUvarint(message, uint64(k))
	}
	in, err := g.SendRecv(ctx, comm.Control, "clusters of nodes", toOthers(s, message), binary.MaxVarintLen32*int(s.Nodes))
	if err != nil {
		return nil, 0, err
	}
	in[s.Rank] = message
	of := d.Of(s.Parts)
	cluster = make([]int32, s.Nodes)
	for q, b := range in {
		most := -1
		for _, id := range of[q] {
			k, size := binary.Uvarint(b)
			if size <= 0 || k >= uint64(len(of[q])) {
				return nil, 0, &comm.PeerError{Rank: q, Op: "clusters of nodes", Err: comm.Refused("each of %d nodes must have a cluster below as many (got %d)", len(of[q]), k)}
			}
			b = b[size:]
			cluster[id], most = int32(n)+int32(k), max(most, int(k))
		}
		if len(b) > 0 {
			return nil, 0, &comm.PeerError{Rank: q, Op: "clusters of nodes", Err: comm.Refused("clusters must end with the last node (got %d bytes more)", len(b))}
		}
		n += most + 1
	}
	return cluster, n, nil
}

// toOthers returns a message for each other peer.
func toOthers(s *shard.Shard, message []byte) [][]byte {
	out := make([][]byte, s.Parts)
	for q := range out {
		if q != s.Rank {
			out[q] = message
		}
	}
	return out
}

// mostWeight bounds the sum of all weights.
const mostWeight = 1 << 62

// learnWeights adds up what the peers have found of the weights of sources, and returns those of all nodes. A message is, of
// each own node, uvarint weight · uvarint touch, then of each other node u32 ID · the same.
func (d *directory) learnWeights(ctx context.Context, g *comm.Group, s *shard.Shard, weight, touch []uint64) (allWeight, allTouch []uint64, err error) {
	var message []byte
	for j, id := range s.Global {
		if j >= s.Owned {
			message = binary.LittleEndian.AppendUint32(message, uint32(id))
		}
		message = binary.AppendUvarint(binary.AppendUvarint(message, weight[j]), touch[j])
	}
	in, err := g.SendRecv(ctx, comm.Control, "weights of nodes", toOthers(s, message), (4+2*binary.MaxVarintLen64)*int(s.Nodes))
	if err != nil {
		return nil, nil, err
	}
	in[s.Rank] = message
	of := d.Of(s.Parts)
	allWeight, allTouch = make([]uint64, s.Nodes), make([]uint64, s.Nodes)
	total := [2]uint64{}
	for q, b := range in {
		refuse := func(format string, args ...any) error {
			return &comm.PeerError{Rank: q, Op: "weights of nodes", Err: comm.Refused(format, args...)}
		}
		for k := 0; k < len(of[q]) || len(b) > 0; k++ {
			id := uint32(0)
			switch {
			case k < len(of[q]):
				id = uint32(of[q][k])
			case len(b) < 4:
				return nil, nil, refuse("the weight of another peer's node must begin with its ID (got %d bytes)", len(b))
			default:
				id, b = binary.LittleEndian.Uint32(b), b[4:]
			}
			if id >= uint32(len(d.Peer)) || d.Peer[id] == owners.Nobody {
				return nil, nil, refuse("weights must be of nodes of the graph (got %d)", id)
			}
			for f, all := range [][]uint64{allWeight, allTouch} {
				x, size := binary.Uvarint(b)
				if size <= 0 || x > mostWeight || total[f]+x > mostWeight {
					return nil, nil, refuse("weights must be numbers of a sum of at most %d (got %d of node %d)", uint64(mostWeight), x, id)
				}
				b = b[size:]
				all[id], total[f] = all[id]+x, total[f]+x
			}
		}
	}
	if total[0] == 0 {
		return nil, nil, fmt.Errorf("minibatch: a graph must have a node to draw (got none with a weight)")
	}
	return allWeight, allTouch, nil
}

// learnReverse learns which own edges have a reverse. Each peer tells the others of its edges from their nodes, as u32
// destination · u32 source.
func (d *directory) learnReverse(ctx context.Context, g *comm.Group, s *shard.Shard, e *sample.Edges, p *sample.Pairs) error {
	const what = "edges between two peers"
	out := make([][]byte, s.Parts)
	for v := range s.Owned {
		for _, j := range e.Col[e.RowPtr[v]:e.RowPtr[v+1]] {
			if int(j) >= s.Owned {
				q := d.Peer[s.Global[j]]
				out[q] = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out[q], uint32(s.Global[v])), uint32(s.Global[j]))
			}
		}
	}
	for q, b := range out {
		if len(b) > mostMessage {
			return fmt.Errorf("minibatch: sampler saint-edge: peers %d and %d must have at most %d edges between them (got %d)", s.Rank, q, mostMessage/8, len(b)/8)
		}
	}
	in, err := g.SendRecv(ctx, comm.Control, what, out, mostMessage)
	if err != nil {
		return err
	}
	theirs := make([][]uint64, s.Parts) // destination, source
	for q, b := range in {
		if q == s.Rank {
			continue
		}
		if len(b)%8 != 0 {
			return &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("edges must have 8 bytes each (got %d)", len(b))}
		}
		for ; len(b) > 0; b = b[8:] {
			theirs[q] = append(theirs[q], uint64(binary.LittleEndian.Uint32(b))<<32|uint64(binary.LittleEndian.Uint32(b[4:])))
		}
		slices.Sort(theirs[q])
	}
	p.Reverse(func(u, v uint64) bool {
		if q := int(d.Peer[u]); q != s.Rank {
			_, found := slices.BinarySearch(theirs[q], u<<32|v)
			return found
		}
		row := d.Local[u]
		_, found := slices.BinarySearchFunc(e.Col[e.RowPtr[row]:e.RowPtr[row+1]], int64(v), func(j int32, v int64) int { return int(s.Global[j] - v) })
		return found
	})
	return nil
}

// draw returns the nodes of batches of an epoch from a step on, ascending, and of each the own nodes that train. All peers
// call it.
func (s *subgraphs) draw(ctx context.Context, epoch rng.Key, batches []rng.Key, step int) (nodes, seeds [][]int32, err error) {
	nodes, seeds = make([][]int32, len(batches)), make([][]int32, len(batches))
	var message []byte
	for b, key := range batches {
		var hits []sample.Hit
		if nodes[b], hits = s.Draw(epoch, key, step+b); s.pairs == nil {
			continue
		}
		var sources []int32
		for _, h := range hits {
			if int(s.dir.Peer[h.Node]) == s.shard.Rank {
				sources = append(sources, int32(s.shard.Global[s.pairs.Source(s.dir.Local[h.Node], h.Rest)]))
			}
		}
		message = appendIDs(message, sources)
		nodes[b] = append(nodes[b], sources...)
	}
	if s.pairs != nil {
		if err := s.sources(ctx, message, nodes); err != nil {
			return nil, nil, err
		}
	}
	for b, list := range nodes {
		for _, id := range list {
			if int(s.dir.Peer[id]) == s.shard.Rank && s.trains[s.dir.Local[id]] {
				seeds[b] = append(seeds[b], id)
			}
		}
	}
	return nodes, seeds, nil
}

// sources adds to the nodes of batches the sources of drawn edges that the other peers own, and sorts them.
func (s *subgraphs) sources(ctx context.Context, message []byte, nodes [][]int32) error {
	const what = "sources of drawn edges"
	in := make([][]byte, s.shard.Parts)
	if s.shard.Parts > 1 { // else the group is that of the steps, which are at it
		var err error
		if in, err = s.group.SendRecv(ctx, comm.Control, what, toOthers(s.shard, message), mostMessage); err != nil {
			return err
		}
	}
	for q, b := range in {
		if q == s.shard.Rank {
			continue
		}
		for k := range nodes {
			ids, rest, err := s.dir.readIDs(b, anyRank)
			if err != nil {
				return &comm.PeerError{Rank: q, Op: what, Err: err}
			}
			b = rest
			nodes[k] = append(nodes[k], ids...)
		}
		if len(b) > 0 {
			return &comm.PeerError{Rank: q, Op: what, Err: comm.Refused("sources must end with the last batch (got %d bytes more)", len(b))}
		}
	}
	for k := range nodes {
		slices.Sort(nodes[k])
		nodes[k] = slices.Compact(nodes[k])
	}
	return nil
}
