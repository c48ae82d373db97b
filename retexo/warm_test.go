package retexo

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/rows"
	"github.com/heddle-gnn/heddle/train"
)

// TestWarmStart: the first columns of a layer's weights have the directions of the ridge regression over the
// pooled graph, then their negatives where the layer is wider than the classes, and the length of a column
// as it is drawn; the columns after them stay as they were drawn.
func TestWarmStart(t *testing.T) {
	g := toy{}.graph(t)
	for _, test := range []struct {
		model, updates string
		layers, hidden int
	}{{"gcn", "", 2, 8}, {"sage", "", 2, 8}, {"gcn", "int8", 1, 8}, {"sage", "int4", 2, 4}} {
		t.Run(fmt.Sprint(test.model, test.updates, test.layers, test.hidden), func(t *testing.T) {
			c := configOf(t, g, Design{Model: test.model, Encoder: "raw", LayerOutput: "hidden", Layers: test.layers, Hidden: test.hidden, Hops: 1})
			c.WarmStart, c.Updates, c.Rounds, c.Optimizer.LR, c.KeepLast = true, test.updates, 1, 1e-12, true
			drawn, err := c.NewModel()
			if err != nil {
				t.Fatal(err)
			}
			got := mustTrain(t, c, cut(t, g, "random", 3), nil).models[0].Layers[0]
			want := directly(t, g, test.model, 1, warmPenalty, false)
			var now, before [][]float32
			for _, l := range []*nn.Layer{got, drawn.Layers[0]} {
				self, nbr, _ := l.Maps()
				for _, m := range []*rows.Linear{self, nbr} {
					for i := 0; m != nil && i < m.W.Value.Rows; i++ {
						if l == got {
							now = append(now, m.W.Value.Row(i))
						} else {
							before = append(before, m.W.Value.Row(i))
						}
					}
				}
			}
			classes := g.Labels.Classes
			for j := range now[0] {
				if j >= 2*classes {
					for i := range now {
						if math.Abs(float64(now[i][j]-before[i][j])) > 1e-6 {
							t.Fatalf("column %d must stay as it was drawn", j)
						}
					}
					continue
				}
				dot, own, other := 0.0, 0.0, 0.0
				for i := range now {
					v, w := float64(now[i][j]), want.At(i, j%classes)
					dot, own, other = dot+v*w, own+v*v, other+w*w
				}
				cosine := dot / math.Sqrt(own*other)
				if j >= classes {
					cosine = -cosine
				}
				if !(cosine > 0.999) {
					t.Errorf("column %d must have the direction of the regression (cosine %.4f)", j, cosine)
				}
				in, out := float64(len(now)), float64(len(now[0]))
				if test.model == "sage" {
					in /= 2
				}
				if length := 2 * float64(len(now)) / (in + out); math.Abs(own/length-1) > 1e-3 {
					t.Errorf("column %d must have length %.4f, squared (got %.4f)", j, length, own)
				}
			}
		})
	}
}

// TestWarmStartIsResumed: a run that stops around a warm start and resumes has the same bits as one that did not stop.
func TestWarmStartIsResumed(t *testing.T) {
	g := toy{}.graph(t)
	for _, at := range []train.Position{{Stage: 1, Round: 0}, {Stage: 1, Round: 3}, {Stage: 2, Round: 0}} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3})
		c.WarmStart, c.LocalSteps, c.Updates, c.Checkpoint, c.Rounds = true, 2, "int4", 2, 6
		shards, dir := cut(t, g, "random", 3), t.TempDir()
		want := mustTrain(t, c, shards, nil)
		interrupted(t, c, shards, dir, at.Stage, at.Round)
		resumed := mustTrain(t, c, shards, stores(dir))
		sameModels(t, []*nn.Model{want.models[0], resumed.models[0]})
	}
}

// TestWarmStartPays: after two rounds a run that began from closed forms has a smaller loss.
func TestWarmStartPays(t *testing.T) {
	g := toy{nodes: 150, features: 10}.graph(t)
	for i := range g.Split {
		if g.Split[i] == graph.Test {
			g.Split[i] = graph.Val
		}
	}
	var loss [2]float64
	for k, warm := range []bool{false, true} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Hops: 1})
		c.WarmStart, c.Rounds = warm, 2
		loss[k] = mustTrain(t, c, cut(t, g, "random", 3), nil).result[0].Stages[0].ValLoss
	}
	if !(loss[1] < loss[0]) {
		t.Errorf("the loss must be below %.3f with a warm start (got %.3f)", loss[0], loss[1])
	}
}

// TestWarmStartApplies: only layers with a closed form take one.
func TestWarmStartApplies(t *testing.T) {
	g := toy{}.graph(t)
	c := configOf(t, g, Design{Model: "gat", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 8, Heads: 2, Hops: 1})
	c.WarmStart = true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "model must be gcn or sage with warm_start (got gat in layers[0])") {
		t.Errorf("%v", err)
	}
}
