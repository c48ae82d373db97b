package classmeans

import (
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// Where training nodes were drawn by class, logits move to the shares of the classes, which the validation nodes tell
// or, where they were drawn by class as well, the nodes without a label: alike for any number of peers.
func TestLogitsMoveToShares(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		g := graphtest.Skewed(drawn)
		c := plain(g)
		c.Hops, c.Target, c.Random = 0, "labels", 0
		one := mustRun(t, c, cut(t, g, 1), options{}).trainers[0]
		still := c
		still.ClassWeights = []float32{1, 1, 1} // as they were without, but for the move
		before := mustRun(t, still, cut(t, g, 1), options{}).trainers[0].Result().Stages[0].Test
		after := one.Result().Stages[0].Test
		if after < before+0.03 {
			t.Errorf("drawn %v: accuracy is %.4f after the move, must be 3 points above %.4f", drawn, after, before)
		}
		t.Logf("drawn %v: %.4f, after the move %.4f", drawn, before, after)
		for _, tr := range mustRun(t, c, cut(t, g, 4), options{}).trainers {
			for i, v := range tr.Logits().Data {
				k := int(tr.shard.Global[i/3])
				if by := one.Logits().At(k, i%3) - v; math.Abs(float64(by)) > 1e-3 {
					t.Fatalf("drawn %v: node %d has a logit that is %g from that of one peer, must be the same", drawn,
						k, by)
				}
			}
		}
	}
}

// Where the classes are not as frequent at each site, logits move to the shares of a site's own validation nodes. All
// sites have one model, which finds the same logits again in the data of each of them, and a run that is resumed has
// it, too.
func TestLogitsMoveToSharesOfSites(t *testing.T) {
	g := graphtest.Skewed(false)
	g.Site, g.Sites = make([]int32, g.N()), []string{"a", "b"}
	for i, class := range g.Labels.Class { // nine of ten nodes of class 0 are at the first site, and one of ten others
		if (i%100 < 10) == (class == 0) {
			g.Site[i] = 1
		}
	}
	policy, err := partition.ParsePolicy("by-column")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := plain(g)
	c.Hops, c.Target, c.Random = 0, "labels", 0
	still := c
	still.ClassWeights = []float32{1, 1, 1} // as they were without, but for any move
	before := mustRun(t, still, shards, options{}).trainers[0].Result().Stages[0]
	store := []*checkpoint.Store{{Dir: t.TempDir()}, {Dir: t.TempDir()}}
	r := mustRun(t, c, shards, options{setup: func(rank int, tr *Trainer) { tr.Checkpoints = store[rank] }})
	after := r.trainers[0].Result().Stages[0]
	t.Logf("%.3f (validation %.3f), after the moves %.3f (%.3f)", before.Test, before.Val, after.Test, after.Val)
	if after.Test < before.Test+0.1 || after.Val < before.Val+0.1 {
		t.Errorf("accuracy is %.3f (validation %.3f) after the moves, must be 10 points above %.3f (%.3f)", after.Test,
			after.Val, before.Test, before.Val)
	}
	for rank, tr := range r.trainers {
		if by := tr.Model().Spec.SiteShares; by == nil || *by != *r.trainers[0].Model().Spec.SiteShares {
			t.Errorf("the model of peer %d makes the move %v, must be that of peer 0", rank, by)
		}
		again, err := New(c, shards[rank])
		if err != nil {
			t.Fatal(err)
		}
		again.Checkpoints = store[rank]
		if done, err := again.Resume(again); !done || err != nil {
			t.Fatalf("the finished run must be taken up again (got %t, %v)", done, err)
		}
		logits, err := infer.Graph(again.Model(), shards[rank].Alone())
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range tr.Logits().Data {
			if by := logits.Data[i] - v; math.Abs(float64(by)) > 1e-5 {
				t.Fatalf("peer %d: a logit of node %d is %g off by the model file, must be the same", rank, i/3, by)
			}
		}
	}
}
