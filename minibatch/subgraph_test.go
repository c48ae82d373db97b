package minibatch

import (
	"encoding/binary"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/sample"
)

// TestSubgraphsOfAPeerAreNotBelieved: what a peer may not say of clusters, weights, edges and drawn sources is refused, with
// its name.
func TestSubgraphsOfAPeerAreNotBelieved(t *testing.T) {
	g := toy(50)
	shards := cut(t, g, 2)
	theirs := shards[1].Owned
	uvarints := func(n int, x uint64) (b []byte) {
		for range n {
			b = binary.AppendUvarint(b, x)
		}
		return b
	}
	foreign := append(uvarints(2*theirs, 1), 50, 0, 0, 0, 1, 1) // node 50 of 50
	type one func(tr *Trainer, group *comm.Group, d *directory) error
	clusters := one(func(tr *Trainer, group *comm.Group, d *directory) error {
		_, _, err := d.learnClusters(t.Context(), group, tr.shard, make([]int32, tr.shard.Owned))
		return err
	})
	weights := one(func(tr *Trainer, group *comm.Group, d *directory) error {
		all := make([]uint64, len(tr.shard.Global))
		_, _, err := d.learnWeights(t.Context(), group, tr.shard, all, all)
		return err
	})
	edges := one(func(tr *Trainer, group *comm.Group, d *directory) error {
		e := sample.NewEdges(&tr.shard.Adj, tr.shard.Global, false, true)
		return d.learnReverse(t.Context(), group, tr.shard, e, sample.NewPairs(e, make([]float32, len(tr.shard.Global))))
	})
	sources := one(func(tr *Trainer, group *comm.Group, d *directory) error {
		s := subgraphs{group: group, shard: tr.shard, dir: d}
		return s.sources(t.Context(), appendIDs(nil, nil), [][]int32{{1}})
	})
	for name, c := range map[string]struct {
		learn one
		bad   []byte
	}{
		"few clusters":       {clusters, uvarints(theirs-1, 0)},
		"many clusters":      {clusters, uvarints(theirs+1, 0)},
		"no such cluster":    {clusters, uvarints(theirs, uint64(theirs))},
		"few weights":        {weights, uvarints(2*theirs-1, 1)},
		"half an ID":         {weights, append(uvarints(2*theirs, 1), 1, 0)},
		"weights of no node": {weights, foreign},
		"too large":          {weights, uvarints(2*theirs, mostWeight)},
		"half an edge":       {edges, make([]byte, 12)},
		"half a source":      {sources, []byte{1, 0, 0, 0, 7, 0}},
		"no source":          {sources, appendIDs(nil, []int32{50})},
		"a batch too many":   {sources, appendIDs(appendIDs(nil, nil), nil)},
	} {
		t.Run(name, func(t *testing.T) {
			peers(t, of(t, "gcn", g), shards, func(tr *Trainer, group *comm.Group) error {
				d, err := learnDirectory(t.Context(), group, tr.shard, nil)
				if err != nil {
					return err
				}
				if tr.shard.Rank == 1 {
					_, err := group.SendRecv(t.Context(), comm.Control, "what is wrong", [][]byte{c.bad, nil}, 1<<20)
					return err
				}
				refusedBy(t, c.learn(tr, group, d), 1)
				return nil
			})
		})
	}
}

// TestFewNodesTakeFewClusters: each peer has a cluster at least, and no more than nodes, and together they have about as
// many as are wanted.
func TestFewNodesTakeFewClusters(t *testing.T) {
	g := toy(200)
	for _, want := range []int{1, 12, 1000} {
		c, all := of(t, "sage", g), 0
		c.Sample.Clusters = want
		for _, s := range cut(t, g, 3) {
			tr := Trainer{config: c, shard: s, Cluster: inOrder}
			own, err := tr.ownClusters(&s.Adj)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[int32]bool{}
			for _, k := range own {
				seen[k] = true
			}
			if len(seen) < 1 || len(own) != s.Owned {
				t.Errorf("%d of %d nodes are in %d clusters", len(own), s.Owned, len(seen))
			}
			all += len(seen)
		}
		if least, most := min(want, g.N())/2, max(3, want+2); all < least || all > most {
			t.Errorf("%d clusters, must be from %d to %d", all, least, most)
		}
	}
}
