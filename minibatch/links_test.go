package minibatch

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/train"
)

// linked returns the configuration of a small model that learns links of these relations of g by a decoder.
func linked(t testing.TB, conv, decoder string, g *graph.Graph, relations ...string) Config {
	t.Helper()
	c := of(t, conv, g)
	traintest.Linked(&c.Spec, decoder, relations...)
	c.Metric, c.Links = "mrr", &train.LinkTask{HeldOut: [2]float64{0.15, 0.15}, Negatives: 2}
	c.BatchSize = 100
	return c
}

// both returns toy with the reverse of each edge.
func both(t testing.TB, n int) *graph.Graph {
	t.Helper()
	g := toy(n)
	var src, dst []int32
	for i := range n {
		col, _ := g.Adj.Row(i)
		for _, j := range col {
			src, dst = append(src, j), append(dst, int32(i))
		}
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj = adj
	return g
}

// TestLinksDoNotDependOnPeersOrGroups: groups of any size train the same links to the last bit, and other numbers of
// peers up to rounding.
func TestLinksDoNotDependOnPeersOrGroups(t *testing.T) {
	g := both(t, 90)
	for _, k := range []struct {
		name, model, decoder string
		g                    *graph.Graph
		relations            []string
		set                  func(c *Config)
	}{
		{"gcn, dot", "gcn", "dot", g, []string{""}, nil},
		{"sage, mlp, labor", "sage", "mlp", traintest.Sparsed(g), []string{""},
			func(c *Config) { c.Sample.Kind = "labor" }},
		{"rgcn, distmult", "rgcn", "distmult", traintest.BothWays(g), []string{"a", "c"},
			func(c *Config) { c.Links.Relations = []string{"a", "c"} }},
		{"sage over types", "sage", "dot", traintest.BothWays(g), []string{"a"},
			func(c *Config) { c.Links.Relations = []string{"a"} }},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := linked(t, k.model, k.decoder, k.g, k.relations...)
			if c.Rounds, c.BatchSize = 4, 200; k.set != nil {
				k.set(&c)
			}
			one := trained(t, c, cut(t, k.g, 1))[0]
			must := one.Result().Final()
			ranks, ok := one.Links[graph.Test]
			if !ok || ranks.All.Links == 0 || !(must.Curve[3].Loss < must.Curve[0].Loss) {
				t.Fatalf("%d links are ranked (%t), losses are %v and %v", ranks.All.Links, ok, must.Curve[0].Loss,
					must.Curve[3].Loss)
			}
			for _, parts := range []int{1, 2, 4} {
				var first *Trainer
				for _, size := range []int{1, 16} {
					if c.Group = size; parts == 1 && size == 1 || parts == 4 && size == 16 {
						continue
					}
					tr := trained(t, c, cut(t, k.g, parts))[0]
					if first == nil {
						first = tr
					} else if !slices.Equal(tr.Params.Value, first.Params.Value) {
						t.Errorf("%d peers: parameters by groups of %d batches differ from those of "+
							"1, must be the same", parts, size)
					}
					is := tr.Result().Final()
					for i, w := range must.Curve {
						if math.Abs(is.Curve[i].Loss-w.Loss) > 1e-4 {
							t.Errorf("%d peers, round %d: the loss is %v, must be %v", parts, i, is.Curve[i].Loss,
								w.Loss)
						}
					}
					theirs := tr.Links[graph.Test]
					if theirs.All.Links != ranks.All.Links || math.Abs(theirs.All.MRR-ranks.All.MRR) > 1e-3 {
						t.Errorf("%d peers: MRR is %v of %d links, must be %v of %d", parts, theirs.All.MRR,
							theirs.All.Links, ranks.All.MRR, ranks.All.Links)
					}
				}
			}
		})
	}
}

// TestStepOfLinks: with all neighbours, the loss of a step is that of the whole graph without the links that the step
// learns.
func TestStepOfLinks(t *testing.T) {
	g := both(t, 120)
	for _, k := range []struct {
		model     string
		g         *graph.Graph
		relations []string
	}{{"sage", g, []string{""}}, {"rsage", traintest.BothWays(g), []string{"a", "b", "c"}},
		{"rgcn", traintest.BothWays(g), []string{"a", "b", "c"}}} {
		c := linked(t, k.model, "distmult", k.g, k.relations...)
		for i := range c.Spec.Layers {
			c.Spec.Layers[i].Dropout = 0
		}
		c.Sample.Fanouts, c.RoundSteps, c.Rounds, c.EvalEvery = []int{-1, -1}, 1, 3, 3
		c.Optimizer.LR = 1e-9 // parameters stay what they are
		tr := trained(t, c, cut(t, k.g, 1))[0]
		m, err := c.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		all := tr.links.Batches(0, tr.steps)
		for step := range c.Rounds {
			b, err := all.Batch(step)
			if err != nil {
				t.Fatal(err)
			}
			part, out := *tr.shard, 0
			adj, relation := &part.Adj, int32(-1)
			if part.Typed.Count() > 0 {
				adj = &part.Typed.Adj
			}
			keep := make([]bool, adj.NumEdges())
			for row := range adj.NumDst {
				if part.Typed.Count() > 0 {
					relation = int32(row / part.Owned)
				}
				for e := adj.RowPtr[row]; e < adj.RowPtr[row+1]; e++ {
					if keep[e] = !all.Left(step).Edge(relation, int32(row%part.Owned), adj.Col[e]); !keep[e] {
						out++
					}
				}
			}
			*adj = *adj.Keep(keep)
			if b.Pairs.Len() < 50 || out < b.Pairs.Len() {
				t.Fatalf("%s: step %d leaves out %d edges for %d links, must be as many or more", k.model, step, out,
					b.Pairs.Len())
			}
			of := slices.Clone(b.Pairs.Pairs)
			for i, p := range of {
				of[i].U, of[i].V = b.Nodes[p.U], b.Nodes[p.V]
			}
			traintest.Run(t, []*shard.Shard{&part}, func(*shard.Shard) (int, error) { return 0, nil }, func(_ int,
				group *comm.Group) error {
				z, _, err := infer.Logits(t.Context(), infer.Config{Exchange: "halo"}, m, &part, group)
				if err != nil {
					return err
				}
				must := b.Pairs.Loss(nil, m.Decoder.Scores(z, of)) / float64(b.Pairs.Len())
				if is := tr.Result().Final().Curve[step].Loss; math.Abs(is-must) > 1e-5*must {
					t.Errorf("%s: the loss of step %d is %v, must be %v", k.model, step, is, must)
				}
				return nil
			})
		}
	}
}

// TestLinksRefused: what batches of links cannot have is named.
func TestLinksRefused(t *testing.T) {
	g := both(t, 60)
	for must, set := range map[string]func(c *Config){
		"negatives_from must be all": func(c *Config) { c.Links.Near = true },
		"inductive must be false":    func(c *Config) { c.Inductive = true },
		"must be given together":     func(c *Config) { c.Links = nil },
	} {
		c := linked(t, "sage", "dot", g, "")
		set(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), must) {
			t.Errorf("the error is %v, must contain %q", err, must)
		}
	}
}
