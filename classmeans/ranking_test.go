package classmeans

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

// TestAUC: candidates take 32 counts each, and the AUC that is reported is that of the logits: also where they hardly
// differ, as those of large penalties, of which bins of any log-odds tell nothing.
func TestAUC(t *testing.T) {
	for _, penalties := range [][]float64{{0.01, 0.1, 1}, {1e5, 1e6, 1e7}} {
		for _, classes := range []int{2, 3} {
			g := communities(600, 3)
			for i, k := range g.Labels.Class {
				g.Labels.Class[i] = min(k, int32(classes-1))
			}
			g.Labels.Classes = classes
			c := narrowed(g)
			c.Metric, c.Lambdas, c.ClassRounds, c.Random = "auc", penalties, 1, 20
			c.LastHop = true
			counts, shards := map[string]int{}, cut(t, g, 3)
			r := mustRun(t, c, shards, options{reducer: func(rank int, g *comm.Group) comm.Reducer {
				return liar{g, func(c *comm.Contribution) {
					if rank == 0 {
						counts[c.ID.Kind] = len(c.Counts)
					}
				}}
			}})
			curves := classes
			if classes == 2 {
				curves = 1
			}
			if got := counts["validation"]; got != 2*2*2*16*curves+1 { // two sets of columns, every second penalty
				t.Errorf("%d classes: candidates take %d counts", classes, got)
			}
			if got := counts["finished model"]; got != 2*(4+1+2+3*classes+2*256*curves) {
				t.Errorf("%d classes: the result takes %d counts", classes, got)
			}
			var logits []float32
			of := graph.Labels{Classes: classes}
			for k, s := range shards {
				for _, i := range s.NodesIn(graph.Test) {
					logits, of.Class = append(logits, r.trainers[k].Logits().Row(int(i))...),
						append(of.Class, s.Labels.Class[i])
				}
			}
			exact := areaUnder(logits, of.Class, classes)
			if got := r.trainers[0].Result().Final().Test; math.Abs(got-exact) > 1e-3 || exact < 0.7 {
				t.Errorf("%d classes, penalties %v: AUC is %.4f, must be %.4f", classes, penalties, got, exact)
			}
		}
	}
}

// areaUnder returns the area under the ROC curve from all pairs of log-odds: of class 1 of two, else the mean over
// classes.
func areaUnder(logits []float32, class []int32, classes int) (sum float64) {
	curves := []int{1}
	for k := 0; classes > 2 && k < classes; k++ {
		curves = append(curves[:k], k)
	}
	for _, k := range curves {
		odds := make([]float64, len(class))
		for i := range class {
			rest := 0.0
			for c, v := range logits[i*classes:][:classes] {
				if c != k {
					rest += math.Exp(float64(v - logits[i*classes+k]))
				}
			}
			odds[i] = -math.Log(rest)
		}
		above, pairs := 0.0, 0.0
		for i, x := range odds {
			for j, y := range odds {
				if int(class[i]) != k || int(class[j]) == k {
					continue
				}
				pairs++
				if x > y {
					above++
				} else if x == y {
					above += 0.5
				}
			}
		}
		sum += above / pairs / float64(len(curves))
	}
	return sum
}

// TestOlderCheckpoint: a checkpoint that does not say on which bins AUC is counted is of another version, and refused.
func TestOlderCheckpoint(t *testing.T) {
	g := communities(300, 3)
	c := narrowed(g)
	c.Random, c.Metric = 10, "auc"
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	shards := cut(t, g, 1)
	setup := func(_ int, tr *Trainer) { tr.Checkpoints = &checkpoint.Store{Dir: dir} }
	start(ctx, c, shards, options{setup: func(rank int, tr *Trainer) {
		setup(rank, tr)
		tr.OnEvent = func(e train.Event) {
			switch e.Kind {
			case train.RoundEnd:
				tr.scales = nil
			case train.Saved:
				cancel()
			}
		}
	}})
	again := start(t.Context(), c, shards, options{setup: setup})
	if _, is := errors.AsType[*checkpoint.MismatchError](again.errs[0]); !is {
		t.Errorf("the checkpoint must be refused (got %v)", again.errs[0])
	}
}
