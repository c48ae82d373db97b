package retexo

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/graphtest"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestMovedLogitsResume: a run whose logits move to the shares of the classes ends with the same model, logits and
// figures where it is stopped before the move, or when the moved model has been saved; a finished one is taken up as it
// was. It does so whichever stage the model ends with.
func TestMovedLogitsResume(t *testing.T) {
	ends := map[bool]bool{} // before the last stage, or with it
	for _, p := range everyPlan() {
		g := graphtest.Skewed(true)
		p.Layers = 2
		c := configOf(t, g, p)
		c.Rounds = 100
		shards := cut(t, g, "random", 2)
		var trainers [2]*Trainer
		take := func(rank int, tr *Trainer) { trainers[rank] = tr }
		whole := mustTrain(t, c, shards, take)
		want, logits := whole.result[0], trainers[0].Logits().Clone()
		if !trainers[0].moved {
			t.Fatalf("%s: logits are not moved", p.name())
		}
		ends[want.Ends < c.Stages()-1] = true
		still := c
		still.ClassWeights = []float32{1, 1, 1}
		before := mustTrain(t, still, shards, nil).result[0]
		if before, after := before.Final().Test, want.Final().Test; after < before+0.02 {
			t.Errorf("%s: accuracy is %.4f after the move, must be 2 points above %.4f", p.name(), after, before)
		}
		for _, kind := range []train.EventKind{train.StageEnd, train.Saved} {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			setup := func(rank int, tr *Trainer) {
				stores(dir)(rank, tr)
				take(rank, tr)
			}
			_, err := runAll(ctx, c, shards, func(rank int, tr *Trainer) {
				setup(rank, tr)
				on(tr, kind, func(e train.Event) {
					if last := c.Stages() - 1; kind == train.StageEnd && e.Stage == last || e.Stage > last {
						cancel()
					}
				})
			})
			if err == nil {
				t.Fatalf("%s: the run was not stopped at %s", p.name(), kind)
			}
			again := mustTrain(t, c, shards, setup)
			sameModels(t, []*nn.Model{whole.models[0], again.models[0], again.models[1]})
			check := func(what string, got train.Result, tr *Trainer) {
				a, b := got.Final(), want.Final()
				if got.Ends != want.Ends || a.Val != b.Val || a.Test != b.Test || a.ValLoss != b.ValLoss ||
					a.TestLoss != b.TestLoss {
					t.Errorf("%s, stopped at %s, %s: ends with stage %d, %+v; must be %d, %+v", p.name(), kind, what,
						got.Ends, a, want.Ends, b)
				}
				if !slices.Equal(tr.Logits().Data, logits.Data) {
					t.Errorf("%s, stopped at %s, %s: other logits", p.name(), kind, what)
				}
			}
			check("resumed", again.result[0], trainers[0])
			final := trainersOf(t, c, shards)[0]
			final.Checkpoints = &checkpoint.Store{Dir: trainers[0].Checkpoints.Dir}
			if done, err := final.Resume(final); !done || err != nil {
				t.Fatalf("%t, %v", done, err)
			}
			m, err := final.Trained()
			if err != nil {
				t.Fatal(err)
			}
			sameModels(t, []*nn.Model{whole.models[0], m})
			check("taken up", final.Result(), final)
			cancel()
		}
	}
	if len(ends) < 2 {
		t.Errorf("models end before the last stage: %v only", ends)
	}
}

// TestUnmovedLogits: what says how much a class counts, or measures something else, or may go on without a peer keeps
// its logits.
func TestUnmovedLogits(t *testing.T) {
	g := graphtest.Skewed(true)
	for what, change := range map[string]func(c *Config){
		"balanced": func(c *Config) { c.Balanced = true },
		"weights":  func(c *Config) { c.ClassWeights = []float32{1, 1, 1} },
		"macro-f1": func(c *Config) { c.Metric = "macro-f1" },
	} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1})
		c.Rounds = 3
		change(&c)
		mustTrain(t, c, cut(t, g, "random", 2), func(_ int, tr *Trainer) {
			on(tr, train.Note, func(e train.Event) {
				if strings.Contains(e.Text, "shares") {
					t.Errorf("%s: said %q, must be nothing of shares", what, e.Text)
				}
			})
		})
	}
}

// TestLogitsMoveToSharesOfSites: where sites differ in their shares of the classes, trained layers know it. The model
// says so, and a finished run is taken up with it.
func TestLogitsMoveToSharesOfSites(t *testing.T) {
	g := graphtest.Skewed(false)
	owner := make([]int32, g.N())
	for i, class := range g.Labels.Class { // nine of ten nodes of class 0 are at the first site, and one of ten others
		if (i%100 < 10) == (class == 0) {
			owner[i] = 1
		}
	}
	shards, err := shard.Cut(g, owner, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1})
	c.Rounds = 30
	before, dir := mustTrain(t, unmoved(c), shards, nil).result[0].Final(), t.TempDir()
	whole := mustTrain(t, c, shards, stores(dir))
	if after := whole.result[0].Final(); after.Test < before.Test+0.05 || after.Val < before.Val+0.05 {
		t.Errorf("accuracy is %.3f (validation %.3f) after the moves, must be 5 points above %.3f (%.3f)", after.Test,
			after.Val, before.Test, before.Val)
	}
	for rank, final := range trainersOf(t, c, shards) {
		stores(dir)(rank, final)
		if done, err := final.Resume(final); !done || err != nil {
			t.Fatalf("%t, %v", done, err)
		}
		m, err := final.Trained()
		if err != nil {
			t.Fatal(err)
		}
		if by, must := m.Spec.SiteShares, whole.models[rank].Spec.SiteShares; by == nil || must == nil || *by != *must {
			t.Errorf("the model of peer %d moves logits by %v, must by %v", rank, by, must)
		}
	}
}
