package heddle

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/rng"
)

// TestRecommendTogether: any number of peers together recommend what the model recommends on the pooled graph, under
// each relation. With near negatives the other ends are only near nodes. No more is sent than is disclosed.
func TestRecommendTogether(t *testing.T) {
	typed := graphtest.Typed(t)
	typed.Types = graph.Types{Names: []string{"one", "two"}, Of: make([]uint8, typed.N())}
	for i := range typed.Types.Of {
		typed.Types.Of[i] = uint8(i % 2)
	}
	fed := *typed
	fed.X = graph.Features{Dense: mat.New(fed.N(), 5)}
	for k := range fed.X.Dense.Data {
		fed.X.Dense.Data[k] = float32(rng.New(2).Normal(uint64(k)))
	}
	for _, c := range []struct {
		settings string
		g        *graph.Graph
	}{
		{"method: full-batch\nmodel: gcn\ndecoder: mlp", graphtest.Communities(90, 9, 3, 0.9, rng.New(1))},
		{"method: full-batch\nmodel: sage\nnegatives_from: near", graphtest.Communities(90, 9, 3, 0.9, rng.New(1))},
		{"method: full-batch\nmodel: rgcn\ndecoder: distmult", typed},
		{"method: layer-wise\nmodel: sage\nencoder: raw\nlayers: 1", &fed},
		{"method: mini-batch\nmodel: sage\ndecoder: distmult\nround_steps: 2\nbatch_size: 50", typed},
	} {
		p := read(t, "task: links\nhidden: 6\nrounds: 3\nlink_holdout: [0.1, 0.2]\npolicy: random\ntransport: memory\n"+
			c.settings)
		p.Peers = 2
		shards, err := Split(c.g, p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Local{Plan: p, Shards: shards}.Train(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.settings, err)
		}
		all := make([]int32, c.g.N())
		for i := range all {
			all[i] = int32(i)
		}
		must, err := infer.Recommend(t.Context(), r.Model, c.g, all, "", c.g.N())
		if err != nil {
			t.Fatal(err)
		}
		score := make(map[string]float32)
		for _, one := range must {
			score[fmt.Sprint(one.Relation, one.Node, one.Other)] = one.Score
		}
		for peers := 1; peers <= 3; peers++ {
			p.Peers = peers
			recommended(t, r, p, c.g, score)
		}
	}
}

// recommended compares what several peers recommend together with the scores of the pooled graph.
func recommended(t *testing.T, r *Result, p Plan, g *graph.Graph, score map[string]float32) {
	t.Helper()
	shards, err := Split(g, p)
	if err != nil {
		t.Fatal(err)
	}
	names, found := r.Model.Decoder.Spec.Relations, 0
	_, config, err := disclosure.Inference(p, r.Model, r.Card)
	if err != nil {
		t.Fatal(err)
	}
	all, sent := make([][]shard.NewLink, len(shards)), make([]comm.Counts, len(shards))
	err = disclosure.Groups(t.Context(), p, len(shards), func(ctx context.Context, group *comm.Group) error {
		own := shards[group.Rank()]
		by, err := p.Links(own)
		if err != nil {
			return err
		}
		var wanted []links.Wanted
		for i := range int32(own.Owned) {
			for k := range names {
				wanted = append(wanted, links.Wanted{Node: i, Relation: int32(k)})
			}
		}
		all[group.Rank()], err = infer.Together(ctx, config, by, r.Model, own, group, group, wanted, g.N())
		sent[group.Rank()] = group.Bytes()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank, own := range shards {
		near := make(map[int64]bool)
		for _, id := range own.Global {
			near[id] = true
		}
		for _, l := range all[rank] {
			must, is := score[fmt.Sprint(names[l.Relation], own.Global[l.Node], l.Other)]
			if !is || math.Abs(float64(l.Score-must)) > 1e-3*(1+math.Abs(float64(must))) ||
				p.Gradient().NegativesFrom == "near" && !near[l.Other] {
				t.Fatalf("%d peers: link %d–%d of %q has score %v (known %t), must be %v", len(shards),
					own.Global[l.Node], l.Other, names[l.Relation], l.Score, is, must)
			}
		}
		found += len(all[rank])
		d, err := disclosure.OfModel(p, r.Model, r.Card, own)
		if err != nil {
			t.Fatal(err)
		}
		if bound := d.Bytes; sent[rank].Total() > bound {
			t.Errorf("peer %d of %d sent %d bytes, must be at most %d, which were disclosed", rank, len(shards),
				sent[rank].Total(), bound)
		}
	}
	if full := len(score); found > full || p.Gradient().NegativesFrom == "all" && found < full || found == 0 {
		t.Errorf("%d peers find %d new links, must be %d, or fewer near ones", len(shards), found, full)
	}
}
