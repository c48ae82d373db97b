package sampled

import (
	"context"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// What -bytes trains: GraphSAGE of three layers, whose hops draw these in-edges from the seeds outward, on batches of
// bytesBatch labels of all peers together.
var bytesFanouts = []int{5, 10, 15}

const (
	bytesBatch   = 1000
	bytesColumns = 100 // of random features if a graph has none
)

// volume prints the bytes of samples, features and requests that all peers send in an epoch, by group and cache. Next
// to them are the bytes of DistDGL's messages for samples of the same sizes.
func volume(ctx context.Context, p *page.Page, root, names string, share float64, peers, groups, caches string) error {
	p.Table("graph %s", "peers %d", "group %d", "cache MiB %d", "MB an epoch %.1f", "hit rate percent %.1f",
		"DistDGL's messages MB %.1f", "DistDGL / Heddle %.2f")
	var lists [3][]int
	for k, text := range []string{peers, groups, caches} {
		var err error
		if lists[k], err = numbers(text); err != nil {
			return err
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		g, err := graphs.Open(root, name)
		if err != nil {
			return err
		}
		g = split(featured(g), share, 1)
		for _, k := range lists[0] {
			by := heddle.Defaults(plan.MiniBatch, "sage")
			by.Transport, by.Peers, by.Gradient().EvalEvery, by.Gradient().Layers, by.Gradient().Hidden = "memory", k,
				1<<30, len(bytesFanouts), 8
			by.MiniBatch.Fanouts, by.MiniBatch.BatchSize = bytesFanouts, bytesBatch
			shards, err := heddle.Split(g, by)
			if err != nil {
				return err
			}
			theirs := distDGL(g, shards)
			for _, b := range lists[1] {
				for _, cache := range lists[2] {
					by.MiniBatch.Group, by.MiniBatch.FeatureCache = b, plan.Mebibytes(cache)
					ours, hits, err := sent(ctx, by, shards)
					if err != nil {
						return err
					}
					p.Row(name, k, b, cache, ours/1e6, 100*hits, theirs/1e6, theirs/ours)
				}
			}
		}
	}
	return nil
}

// featured returns g with features if it has none.
func featured(g *graph.Graph) *graph.Graph {
	if g.X.Cols() > 0 {
		return g
	}
	one, key := *g, rng.New(1).FoldString("bench/sampled/features")
	one.X.Dense = mat.New(g.N(), bytesColumns)
	for k := range one.X.Dense.Data {
		one.X.Dense.Data[k] = float32(key.Float64(uint64(k)))
	}
	one.Labels = graph.Labels{Classes: 2, Class: make([]int32, g.N())}
	for i := range one.Labels.Class {
		one.Labels.Class[i] = int32(key.FoldString("class").Uint64(uint64(i)) % 2)
	}
	return &one
}

// sent returns the bytes of rows and requests that all peers send in an epoch. It is half of what two further epochs
// send, so that what a run sends once, and its last validation, are left out. hits is the cache's hit rate at the first
// peer.
func sent(ctx context.Context, p heddle.Plan, shards []*shard.Shard) (bytes, hits float64, err error) {
	for k, rounds := range []int{1, 3} {
		p.Gradient().Rounds = rounds
		r, err := heddle.Local{Plan: p, Shards: shards}.Train(ctx)
		if err != nil {
			return 0, 0, err
		}
		all := r.Total()
		bytes += float64(2*k-1) * float64(all.Halo+all.Control) / 2
		hits = float64(r.Fetched.Cached) / float64(max(1, r.Fetched.Rows))
	}
	return bytes, hits, nil
}

// distDGL returns the bytes that DistDGL would send in an epoch whose batches have the same seeds, by its message
// layout: for each node of another machine whose edges a hop samples 8 bytes, and 24 for each sampled edge (source,
// destination, ID of the edge); for each other machine's node of a batch 8 bytes and its features as float32. Headers
// are left out.
func distDGL(g *graph.Graph, shards []*shard.Shard) (bytes float64) {
	owner := make([]int, g.N())
	for q, s := range shards {
		for _, id := range s.Global[:s.Owned] {
			owner[id] = q
		}
	}
	edges := sample.NewEdges(&g.Adj, nil, false, false)
	sampler, builder := sample.New(sample.Config{Kind: "neighbour", Fanouts: bytesFanouts}, edges),
		sample.NewBuilder(g.N(), edges)
	var train []int32
	for i, of := range g.Split {
		if of == graph.Train {
			train = append(train, int32(i))
		}
	}
	order := rng.New(4).Perm(len(train))
	for first := 0; first < len(order); first += bytesBatch {
		seeds := make([][]int32, len(shards))
		for _, k := range order[first:min(first+bytesBatch, len(order))] {
			q := owner[train[k]]
			seeds[q] = append(seeds[q], train[k])
		}
		for q := range seeds {
			batch := sampler.Batch(rng.New(5).Fold(uint64(first)), seeds[q], builder)
			for _, block := range batch.Blocks {
				for i, id := range batch.Nodes[:block.NumDst] {
					if owner[id] != q {
						bytes += 8 + 24*float64(block.RowPtr[i+1]-block.RowPtr[i])
					}
				}
			}
			for _, id := range batch.Nodes {
				if owner[id] != q {
					bytes += 8 + 4*float64(g.X.Cols())
				}
			}
		}
	}
	return bytes
}
