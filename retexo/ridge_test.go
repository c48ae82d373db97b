package retexo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gmat "gonum.org/v1/gonum/mat"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/rows"
	"github.com/heddle-gnn/heddle/train"
)

// directly solves Σ w‖zW − y‖² + λ·mean diag(ZᵀwZ)·‖W‖² on the pooled graph in float64: z is the rows of the nodes after
// hops aggregations (for sage behind their own rows) and a constant that is not penalised.
func directly(t *testing.T, g *graph.Graph, model string, hops int, lambda float64, balanced bool) *gmat.Dense {
	t.Helper()
	norm := map[string]graph.Norm{"gcn": graph.GCN, "sage": graph.Mean}[model]
	adj := graph.Normalise(&g.Adj, g.Adj.Degrees(), norm)
	x := g.X.Dense
	if g.X.Sparse != nil {
		x = g.X.Sparse.Dense()
	}
	n, f := x.Rows, x.Cols
	own := gmat.NewDense(n, f, nil)
	for i := range n {
		for j := range f {
			own.Set(i, j, float64(x.At(i, j)))
		}
	}
	a := gmat.NewDense(n, n, nil)
	for i := range n {
		col, weight := adj.Row(i)
		for k, j := range col {
			a.Set(i, int(j), float64(weight[k]))
		}
	}
	h := gmat.DenseCopyOf(own)
	for range hops {
		var next gmat.Dense
		next.Mul(a, h)
		h = &next
	}
	d := f + 1
	if model == "sage" {
		d += f
	}
	c := g.Labels.Classes
	perClass, labelled := make([]float64, c), 0.0
	for i, s := range g.Split {
		if s == graph.Train && !g.Labels.Multi() && g.Labels.Class[i] >= 0 {
			perClass[g.Labels.Class[i]]++
			labelled++
		}
	}
	lhs, rhs := gmat.NewDense(d, d, nil), gmat.NewDense(d, c, nil)
	for i, s := range g.Split {
		if s != graph.Train || !g.Labels.Multi() && g.Labels.Class[i] < 0 {
			continue
		}
		z := make([]float64, 0, d)
		if model == "sage" {
			z = append(z, own.RawRowView(i)...)
		}
		z = append(append(z, h.RawRowView(i)...), 1)
		w := 1.0
		if balanced {
			w = labelled / (float64(c) * perClass[g.Labels.Class[i]])
		}
		for p := range d {
			for q := range d {
				lhs.Set(p, q, lhs.At(p, q)+w*z[p]*z[q])
			}
			for k := range c {
				y := 0.0
				if g.Labels.Multi() {
					y = float64(g.Labels.Bits[i*c+k])
				} else if int(g.Labels.Class[i]) == k {
					y = 1
				}
				rhs.Set(p, k, rhs.At(p, k)+w*z[p]*y)
			}
		}
	}
	trace := 0.0
	for i := range d - 1 {
		trace += lhs.At(i, i)
	}
	for i := range d - 1 {
		lhs.Set(i, i, lhs.At(i, i)+lambda*trace/float64(d-1))
	}
	var w gmat.Dense
	if err := w.Solve(lhs, rhs); err != nil {
		t.Fatal(err)
	}
	return &w
}

// solution reads the layer of a trained model as the rows of directly's: own, aggregate, constant.
func solution(l *nn.Layer) (list [][]float32) {
	self, nbr, _ := l.Affine()
	for _, lin := range []*rows.Linear{self, nbr} {
		if lin != nil {
			for i := range lin.W.Value.Rows {
				list = append(list, lin.W.Value.Row(i))
			}
		}
	}
	return append(list, nbr.B.Value.Row(0))
}

// TestRidgeIsExact holds the one-round solution to a direct one on the pooled graph, however the nodes are spread.
func TestRidgeIsExact(t *testing.T) {
	for _, model := range []string{"gcn", "sage"} {
		for _, hops := range []int{1, 2} {
			for _, o := range []struct {
				name     string
				toy      toy
				balanced bool
				strip    bool // take labels from some training nodes
			}{
				{name: "dense"}, {name: "sparse", toy: toy{sparse: true}}, {name: "balanced", toy: toy{classes: 4, nodes: 95}, balanced: true},
				{name: "multi", toy: toy{multi: true}}, {name: "weighted edges", toy: toy{hasWeights: true}}, {name: "unlabelled", strip: true},
			} {
				t.Run(fmt.Sprintf("%s-%d-%s", model, hops, o.name), func(t *testing.T) {
					g := o.toy.graph(t)
					for i := range g.Split {
						if o.strip && i%4 == 0 {
							g.Labels.Class[i] = -1
						}
					}
					c := configOf(t, g, Design{Model: model, Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: hops})
					c.Solver, c.Lambdas, c.Balanced = "ridge", []float64{0.1}, o.balanced
					if !o.balanced {
						c = unmoved(c)
					}
					want := directly(t, g, model, hops, 0.1, o.balanced)
					lonely := make([]int32, g.N()) // all training nodes with peer 1; peer 3 has no node at all
					for i, s := range g.Split {
						lonely[i] = []int32{0, 1, 2}[i%3]
						if s == graph.Train {
							lonely[i] = 1
						}
					}
					alone, err := shard.Cut(g, lonely, 4)
					if err != nil {
						t.Fatal(err)
					}
					for name, shards := range map[string][]*shard.Shard{"1 peer": cut(t, g, "random", 1), "4 peers": cut(t, g, "random", 4), "one trains": alone} {
						r := mustTrain(t, c, shards, nil)
						got := solution(r.models[0].Layers[0])
						if d, _ := want.Dims(); len(got) != d {
							t.Fatalf("%d rows of the solution, want %d", len(got), d)
						}
						for i, row := range got {
							for j, v := range row {
								if w := want.At(i, j); math.Abs(float64(v)-w) > 1e-4*(1+math.Abs(w)) {
									t.Fatalf("%s: element (%d, %d) is %v, want %v", name, i, j, v, w)
								}
							}
						}
					}
				})
			}
		}
	}
}

// TestRidgeOnRowsOfZeros takes features that say nothing: the constant alone is solved, as the shares of the classes.
func TestRidgeOnRowsOfZeros(t *testing.T) {
	g := toy{}.graph(t)
	g.X.Dense.Zero()
	c := unmoved(configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1}))
	c.Solver = "ridge"
	r := mustTrain(t, c, cut(t, g, "random", 2), nil)
	share := make([]float64, 3)
	n := 0.0
	for i, s := range g.Split {
		if s == graph.Train {
			share[g.Labels.Class[i]]++
			n++
		}
	}
	rows := solution(r.models[0].Layers[0])
	for k, v := range rows[len(rows)-1] {
		if math.Abs(float64(v)-share[k]/n) > 1e-5 {
			t.Errorf("class %d: constant %v, want its share %v", k, v, share[k]/n)
		}
	}
}

// TestCostsBeforeAnythingTravels: a closed form that no site would wait for is refused when its trainer is made, and a
// long one is announced once.
func TestCostsBeforeAnythingTravels(t *testing.T) {
	g := toy{features: 5000, sparse: true}.graph(t)
	c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	c.Solver = "ridge"
	s := cut(t, g, "random", 2)[0]
	start := func() (*Trainer, error) {
		m, err := c.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		return New(c, s, m)
	}
	tr, err := start()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	tr.OnEvent = func(e train.Event) { said = append(said, string(e.Kind)+": "+e.Text) }
	group := comm.NewGroup(netsim.New(2, netsim.Config{}).Transport(0), 0, 2)
	defer group.Close()
	tr.join(group, group)
	tr.warnOfCosts()
	tr.warnOfCosts()
	if len(said) != 1 || !strings.HasPrefix(said[0], "warning: solver ridge with 5001 columns, 3 outputs and 9 penalties takes about") || group.Bytes().Total() != 0 {
		t.Errorf("said %q after %d bytes, want one warning before any", said, group.Bytes().Total())
	}
	s.HaloPtr, s.Boundary = []int{0, 0, 1 << 19}, [][]int32{nil, make([]int32, 1<<19)}
	said, tr.warned, tr.config.Spec.Layers[0].Hops = nil, false, 2
	if tr.warnOfCosts(); len(said) != 2 || !strings.Contains(said[0], "up to 10485 MB of rows, of 524288 nodes") {
		t.Errorf("said %q, want a warning of the rows", said)
	}
	c.Lambdas = append(c.Lambdas, slices.Repeat([]float64{1000}, 100)...)
	if _, err := start(); err == nil || !strings.Contains(err.Error(), "use fewer lambdas") {
		t.Errorf("%v, want that 5001 columns with %d penalties are refused", err, len(c.Lambdas))
	}
}

// TestRidgeRefuses holds the errors to what is wrong: sums that overflow, too many columns.
func TestRidgeRefuses(t *testing.T) {
	huge := toy{}.graph(t)
	for i := range huge.X.Dense.Data {
		huge.X.Dense.Data[i] *= 1e25
	}
	wide := toy{features: 1<<13 + 1, sparse: true}.graph(t)
	for want, g := range map[string]*graph.Graph{"overflow": huge, "use encoder pca": wide} {
		c := configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
		c.Solver = "ridge"
		_, err := runAll(context.Background(), c, cut(t, g, "random", 2), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	// A column of zeros, and a penalty that is too small to be a number once it is scaled.
	flat := toy{}.graph(t)
	for i := range flat.X.Dense.Rows {
		for j := range flat.X.Dense.Row(i) {
			flat.X.Dense.Row(i)[j] *= 0.01 * float32(min(j, 1))
		}
	}
	c := configOf(t, flat, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
	c.Solver, c.Lambdas = "ridge", []float64{math.SmallestNonzeroFloat64}
	if _, err := runAll(context.Background(), c, cut(t, flat, "random", 2), nil); err == nil || !strings.Contains(err.Error(), "singular with penalty 5e-324") {
		t.Errorf("%v, want singular equations", err)
	}
	for field, set := range map[string]func(c *Config){
		"lambdas must have at least one penalty":                 func(c *Config) { c.Lambdas = nil },
		"lambdas must be finite and above 0 (got 0)":             func(c *Config) { c.Lambdas = []float64{0} },
		"lambdas must be finite and above 0 (got NaN)":           func(c *Config) { c.Lambdas = []float64{math.NaN()} },
		"lambdas must be finite and above 0 (got +Inf)":          func(c *Config) { c.Lambdas = []float64{math.Inf(1)} },
		"layers[0] must be gcn or sage":                          func(c *Config) { c.Spec.Layers[0].Norm = true },
		"encoder must be raw or pca with solver ridge (got mlp)": func(c *Config) { c.Spec.Encoder.Kind = "mlp" },
	} {
		c := configOf(t, toy{}.graph(t), Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1, Hidden: 1, Hops: 1})
		c.Solver = "ridge"
		set(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want %q", err, field)
		}
	}
}
