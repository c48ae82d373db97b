package retexo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/train"
)

// besideClasses is the config of a model whose layers see columns of classes beside components.
func besideClasses(t *testing.T, g *graph.Graph, model string) Config {
	t.Helper()
	columns := classmeans.Config{Seed: 1, Task: "single", Features: g.X.Cols(), Classes: g.Labels.Classes,
		Metric: "accuracy", RowNorm: "none", Target: "labels", LeaveOut: "true", ClassRounds: 2, Hops: 2, Random: 4,
		Shrink: 3, MinClass: 2, Lambdas: classmeans.Lambdas(), Exchange: "halo", Sums: "float32"}
	layout := columns.Layout()
	c := configOf(t, g, Design{Model: model, Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2, Hidden: 8,
		Hops: 1, Heads: 2, Dropout: 0.3, Classes: &layout})
	c.Classes, c.KeepLast = &columns, true
	return c
}

// TestColumnsOfClasses: the loss is the same for any number of peers, and the model on the whole graph, which leaves
// out own parts as training did, gives the logits that training ended with.
func TestColumnsOfClasses(t *testing.T) {
	g := toy{}.graph(t)
	for _, model := range []string{"gcn", "sage", "gat"} {
		t.Run(model, func(t *testing.T) {
			c := besideClasses(t, g, model)
			var first []train.Point
			for _, parts := range []int{1, 3} {
				shards, logits := cut(t, g, "random", parts), make([]func() [][]float32, parts)
				r := mustTrain(t, c, shards, func(rank int, tr *Trainer) {
					logits[rank] = func() (rows [][]float32) {
						for i := range tr.Logits().Rows {
							rows = append(rows, tr.Logits().Row(i))
						}
						return rows
					}
				})
				if first == nil {
					first = r.result[0].Curve()
				}
				sameCurve(t, fmt.Sprintf("%d parts", parts), first, r.result[0].Curve(), 1e-4)
				whole, err := infer.Graph(r.models[0], g)
				if err != nil {
					t.Fatal(err)
				}
				for rank, s := range shards {
					for i, row := range logits[rank]() {
						for k, v := range row {
							if w := whole.At(int(s.Global[i]),
								k); !(math.Abs(float64(v-w)) <= 1e-4*(1+math.Abs(float64(w)))) {
								t.Fatalf("%d parts: logit %d of node %d is %v, must be %v as on the whole graph", parts,
									k, s.Global[i], v, w)
							}
						}
					}
				}
			}
		})
	}
}

// TestColumnsOfClassesAreResumed: a run that stops in any layer goes on to the same bits, with the columns of its
// checkpoint.
func TestColumnsOfClassesAreResumed(t *testing.T) {
	g := toy{}.graph(t)
	c := besideClasses(t, g, "sage")
	c.Checkpoint, c.Rounds = 2, 6
	shards := cut(t, g, "random", 3)
	want := mustTrain(t, c, shards, nil)
	for _, at := range []train.Position{{Stage: 1, Round: 0}, {Stage: 1, Round: 3}, {Stage: 2, Round: 1}} {
		dir := t.TempDir()
		interrupted(t, c, shards, dir, at.Stage, at.Round)
		resumed := mustTrain(t, c, shards, stores(dir))
		sameModels(t, []*nn.Model{want.models[0], resumed.models[0]})
	}
}

// TestFewOfEachClass: where most classes have fewer training nodes than min_class, the columns are zeros and a warning
// says so, whatever the number of peers; the layers are trained all the same.
func TestFewOfEachClass(t *testing.T) {
	g := toy{}.graph(t)
	c := besideClasses(t, g, "gcn")
	c.Classes.MinClass = 1000
	for _, parts := range []int{1, 3} {
		said := make([]string, parts)
		r := mustTrain(t, c, cut(t, g, "random", parts), func(rank int, tr *Trainer) {
			on(tr, train.Warning, func(e train.Event) { said[rank] += e.Text })
		})
		for rank, text := range said {
			if !strings.Contains(text, "the layers see no columns of classes: most classes must have 1000 training "+
				"nodes (min_class) for class means") {
				t.Errorf("peer %d of %d warns %q", rank, parts, text)
			}
		}
		for _, p := range r.models[0].Encoder.Classes.Heads[1].Weight.Value.Data {
			if p != 0 {
				t.Fatalf("a weight of the columns is %v, must be 0", p)
			}
		}
		if !(r.result[0].Stages[1].Val > 1/float64(g.Labels.Classes)) {
			t.Errorf("%d parts: validation is %v, must be above chance", parts, r.result[0].Stages[1].Val)
		}
	}
}

// TestEnoughLabels: from so many training labels of all peers on, weights do not decay.
func TestEnoughLabels(t *testing.T) {
	g := toy{}.graph(t)
	c := besideClasses(t, g, "gat")
	shards := cut(t, g, "random", 3)
	labelled := 0
	for i := range g.Split {
		if g.Split[i] == graph.Train && g.Labels.Has(i) {
			labelled++
		}
	}
	model := func(enough int, decay float32) []*nn.Model {
		d := c
		d.EnoughLabels, d.Optimizer.Decay = enough, decay
		return mustTrain(t, d, shards, nil).models[:1]
	}
	const decay = 0.05
	sameModels(t, slices.Concat(model(labelled, decay), model(0, 0)))
	sameModels(t, slices.Concat(model(labelled+1, decay), model(0, decay)))
}

// TestColumnsOfClassesApply: what does not fit them is refused.
func TestColumnsOfClassesApply(t *testing.T) {
	g := toy{}.graph(t)
	for name, change := range map[string]func(*Config){
		"inductive":       func(c *Config) { c.Inductive = true },
		"without columns": func(c *Config) { c.Classes = nil },
		"of numbers":      func(c *Config) { c.Spec.Task = "regression" },
		"of residuals":    func(c *Config) { c.Spec.Encoder.Classes = &closed.Layout{Rounds: 1, Residual: true} },
	} {
		c := besideClasses(t, g, "gcn")
		change(&c)
		if err := errors.Join(c.Validate(), c.Spec.Validate()); err == nil ||
			!strings.Contains(err.Error(), "classes") {
			t.Errorf("%s: the error is %v, must be of the columns of classes", name, err)
		}
	}
}
