package fullbatch

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// linked makes c one that learns links of these relations with a decoder, by layers that put out rows of 8 columns.
func linked(c *Config, decoder string, relations ...string) {
	traintest.Linked(&c.Spec, decoder, relations...)
	c.Metric, c.Links = "mrr", &train.LinkTask{HeldOut: [2]float64{0.2, 0.2}, Negatives: 2}
}

// TestLinksDoNotDependOnTheNumberOfWorkers: losses, validation losses and ranks of links agree for 1, 2 and 4 workers.
func TestLinksDoNotDependOnTheNumberOfWorkers(t *testing.T) {
	dense := toy(rng.New(2), 120, 9)
	all := models(9)
	for _, k := range []struct {
		name, model, decoder string
		g                    *graph.Graph
		relations            []string
		set                  func(c *Config)
	}{
		{"gcn, dot", "gcn", "dot", dense, []string{""}, nil},
		{"sage, mlp", "sage", "mlp", traintest.Sparsed(dense), []string{""}, nil},
		{"rgcn, distmult", "rgcn", "distmult", traintest.BothWays(dense), []string{"a", "c"}, func(c *Config) {
			c.Links.Relations = []string{"a", "c=c (inverse)"}
			for i := range c.Spec.Layers {
				c.Spec.Layers[i].Relations = 2 * traintest.Relations
			}
		}},
		{"rgcn, near", "rgcn", "dot", traintest.BothWays(dense), []string{"b"}, func(c *Config) {
			c.Links.Relations, c.Links.Near = []string{"b"}, true
			for i := range c.Spec.Layers {
				c.Spec.Layers[i].Relations = 2 * traintest.Relations
			}
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := Defaults(all[k.model])
			linked(&c, k.decoder, k.relations...)
			if c.Rounds, c.EvalEvery = 20, 5; k.set != nil {
				k.set(&c)
			}
			alone := trained(t, c, cut(t, k.g, "", 1))[0]
			must := alone.Result().Final()
			ranks, ok := alone.Links[graph.Test]
			if !ok || ranks.All.Links == 0 || !(must.Curve[19].Loss < must.Curve[0].Loss) {
				t.Fatalf("%d links are ranked (%t), losses %v and %v", ranks.All.Links, ok, must.Curve[0].Loss,
					must.Curve[19].Loss)
			}
			for _, parts := range []int{2, 4} {
				own, mean := int64(0), 0.0
				for r, tr := range trained(t, c, cut(t, k.g, "uneven", parts)) {
					is := tr.Result().Final()
					if c.Links.Near { // what is drawn depends on who sees which nodes
						within(t, "loss", is.Curve[19].Loss, must.Curve[19].Loss, 0.5)
						continue
					}
					for i, w := range must.Curve {
						at := fmt.Sprintf("worker %d of %d, epoch %d: ", r, parts, i)
						within(t, at+"loss", is.Curve[i].Loss, w.Loss, 1e-4)
						within(t, at+"validation loss", is.Curve[i].ValLoss, w.ValLoss, 1e-4)
					}
					theirs := tr.Links[graph.Test]
					own, mean = own+theirs.Own.Links, mean+theirs.Own.MRR*float64(theirs.Own.Links)
					relations := theirs.All.Links
					for _, one := range theirs.Relations {
						relations -= one.Links
					}
					if many := len(k.relations) > 1; many != (len(theirs.Relations) == len(k.relations)) ||
						many && relations != 0 {
						t.Errorf("%d relations have figures, of %d links less than all: must be all of %q",
							len(theirs.Relations), relations, k.relations)
					}
					within(t, "ranked links", float64(theirs.All.Links), float64(ranks.All.Links), 0)
					within(t, "mean reciprocal rank", theirs.All.MRR, ranks.All.MRR, 1e-3)
					within(t, "area under the curve", theirs.All.AUC, ranks.All.AUC, 1e-3)
				}
				if !c.Links.Near {
					within(t, "links of all workers' own nodes", float64(own), float64(ranks.All.Links), 0)
					within(t, "their mean reciprocal rank", mean/float64(own), ranks.All.MRR, 1e-3)
				}
			}
		})
	}
}
