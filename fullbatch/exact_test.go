package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// toy returns a graph of n nodes, the last tenth of them isolated, with dense features, 3 classes and all splits.
func toy(key rng.Key, n, features int) *graph.Graph {
	joined := n - n/10
	edges := make(map[[2]int32]bool)
	for i := range int32(joined) {
		for k := range uint64(4) {
			j := int32(key.Fold(uint64(i)).Uint64(k) % uint64(joined))
			if i != j {
				edges[[2]int32{i, j}], edges[[2]int32{j, i}] = true, true
			}
		}
	}
	g := &graph.Graph{Name: "toy", Adj: graph.CSR{NumDst: n, NumSrc: n, RowPtr: make([]int64, n+1)}}
	g.X.Dense = mat.New(n, features)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.FoldString("x").Normal(uint64(k)))
	}
	g.Labels.Classes = 3
	for i := range int32(n) {
		for j := range int32(n) {
			if edges[[2]int32{i, j}] {
				g.Adj.Col = append(g.Adj.Col, j)
			}
		}
		g.Adj.RowPtr[i+1] = int64(len(g.Adj.Col))
		u := key.FoldString("label").Uint64(uint64(i))
		g.Labels.Class = append(g.Labels.Class, int32(u%3))
		g.Split = append(g.Split, []graph.Split{graph.Train, graph.Val, graph.Test, graph.None}[u>>8%4])
	}
	return g
}

// owners are ways to deal out a toy's nodes: at random and unevenly; with a part that owns nothing; with one that owns
// isolated nodes alone; with all training nodes in one part.
var owners = map[string]func(g *graph.Graph, parts int) []int32{
	"uneven": func(g *graph.Graph, parts int) []int32 {
		o := make([]int32, g.N())
		for i := range o {
			u := rng.New(3).Float64(uint64(i))
			o[i] = int32(float64(parts) * u * u)
		}
		return o
	},
	"empty": func(g *graph.Graph, parts int) []int32 {
		o := make([]int32, g.N())
		for i := range o {
			o[i] = 1 + int32(i%max(parts-1, 1))
			if parts == 1 {
				o[i] = 0
			}
		}
		return o
	},
	"without edges": func(g *graph.Graph, parts int) []int32 {
		o := make([]int32, g.N())
		for i := range o {
			o[i] = int32(i % max(parts-1, 1))
			if i >= g.N()-g.N()/10 {
				o[i] = int32(parts - 1)
			}
		}
		return o
	},
	"training in one": func(g *graph.Graph, parts int) []int32 {
		o := make([]int32, g.N())
		for i := range o {
			o[i] = int32(i % parts)
			if g.Split[i] == graph.Train {
				o[i] = int32(parts / 2)
			}
		}
		return o
	},
}

func cut(t testing.TB, g *graph.Graph, how string, parts int) []*shard.Shard {
	t.Helper()
	if parts == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	s, err := shard.Cut(g, owners[how](g, parts), parts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// workers runs f as every worker of a run, with its trainer begun.
func workers(t testing.TB, c Config, shards []*shard.Shard, f func(tr *Trainer, g *comm.Group) error) []*Trainer {
	t.Helper()
	return traintest.Run(t, shards, func(s *shard.Shard) (*Trainer, error) {
		m, err := c.NewModel()
		if err != nil {
			return nil, err
		}
		return New(c, s, m)
	}, f)
}

// computed is what one step computes: by layer, the rows that it puts out and the gradient of those that it takes in,
// by global ID; and the gradients of the parameters.
type computed struct {
	mu     sync.Mutex
	h, dx  []mat.Dense
	params []float32
}

// onePass computes a whole step over all nodes, in training or not.
func onePass(t testing.TB, c Config, shards []*shard.Shard) *computed {
	t.Helper()
	p := &computed{}
	n := int(shards[0].Nodes)
	workers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		tr.line = &haloLine{ctx: ctx, group: g, sender: train.NewSender(g, tr.shard, c.Rows), fixed: c.Order == "fixed",
			ahead: c.Prefetch}
		if err := errors.Join(tr.Begin(ctx, g, g), tr.prepare(ctx, g)); err != nil {
			return err
		}
		v, err := tr.look(ctx, g, graph.Train, tr.seen, true)
		if err != nil {
			return err
		}
		tr.train = v
		if err := tr.plan(ctx); err != nil {
			return err
		}
		tr.tape.Key = rng.New(9)
		place := func(all *[]mat.Dense, k int, m mat.Dense) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for len(*all) <= k {
				*all = append(*all, mat.Dense{})
			}
			if (*all)[k].Rows == 0 {
				(*all)[k] = mat.New(n, m.Cols)
			}
			for i := range tr.shard.Owned {
				copy((*all)[k].Row(int(tr.shard.Global[i])), m.Row(i))
			}
		}
		w, x := tr.pass(v, tr.tape, tr.statistics(g)), v.input.Dense
		for k := range tr.units {
			var h mat.Dense
			if h, x, err = w.unit(k, x); err != nil {
				return err
			}
			place(&p.h, k, h)
		}
		d := tr.tape.Scratch(x.Rows, x.Cols) // a gradient for every node, not of the training nodes alone
		for i := range d.Rows {
			for j := range d.Row(i) {
				d.Set(i, j, float32(rng.New(5).Fold(uint64(tr.shard.Global[i])).Normal(uint64(j))))
			}
		}
		for k := len(tr.units) - 1; k >= 0; k-- {
			if d, err = w.back(k, d); err != nil {
				return err
			}
			if k > 0 {
				place(&p.dx, k, d)
			}
		}
		if tr.line.now != 0 {
			return fmt.Errorf("%d values of halo rows are still held", tr.line.now)
		}
		if _, err := g.Reduce(ctx, &comm.Contribution{Update: tr.Params.Grad}); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.params != nil && !slices.Equal(p.params, tr.Params.Grad) {
			return errors.New("its sum of gradients has other bits than another worker's")
		}
		p.params = slices.Clone(tr.Params.Grad)
		return nil
	})
	return p
}

// near fails unless every element of got is within 1e-5 of want, relative to its magnitude or, where the sum that it
// is cancels, to the root mean square of all.
func near(t testing.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var sq float64
	for _, v := range want {
		sq += float64(v) * float64(v)
	}
	rms := math.Sqrt(sq / float64(max(len(want), 1)))
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - float64(v)); !(d <= 1e-5*max(math.Abs(float64(v)), rms)) {
			t.Fatalf("%s: value %d is %g, want %g (root mean square %g)", what, i, got[i], v, rms)
		}
	}
}

func (p *computed) compare(t testing.TB, want *computed) {
	t.Helper()
	for k := range want.h {
		near(t, fmt.Sprintf("rows of layer %d", k), p.h[k].Data, want.h[k].Data)
	}
	for k := 1; k < len(want.dx); k++ {
		near(t, fmt.Sprintf("gradient of the input of layer %d", k), p.dx[k].Data, want.dx[k].Data)
	}
	near(t, "gradients of the parameters", p.params, want.params)
}

// models are all layers, with widths that rise and fall, so that both orders of product and sum occur.
func models(features int) map[string]nn.Spec {
	all := make(map[string]nn.Spec)
	for _, name := range []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "gine", "rgcn", "rsage", "rgat"} {
		s := nn.Spec{Task: "single", Features: features, Classes: 3, LayerOutput: nn.Hidden,
			Encoder: nn.EncoderSpec{Kind: "raw", Out: features}}
		in := features
		for k, out := range []int{8, 12, 3} {
			l := nn.LayerSpec{Conv: name, In: in, Out: out, Hops: 1, Act: "relu", Dropout: 0.3}
			if c, _ := nn.ConvolutionNamed(name); c.Heads {
				l.Heads, l.Act, l.AttentionDropout = 4, "elu", 0.4
			}
			if c, _ := nn.ConvolutionNamed(name); c.Typed {
				l.Relations, l.Bases = traintest.Relations, 2*(k%2)
			}
			if name == "gine" {
				l.EdgeColumns = 3
			}
			if k == 1 {
				l.Norm, l.Residual = true, true
			}
			if k == 2 {
				l.Act = ""
				if c, _ := nn.ConvolutionNamed(name); c.Heads {
					l.Heads, l.Average = 2, true
				}
			}
			s.Layers = append(s.Layers, l)
			in = out
		}
		all[name] = s
	}
	edges := all["gatv2"]
	edges.Layers = slices.Clone(edges.Layers)
	for k := range edges.Layers {
		edges.Layers[k].EdgeColumns = 3
	}
	all["gatv2, edges"] = edges
	batch := all["sage"]
	batch.Layers = slices.Clone(batch.Layers)
	batch.Layers[0].BatchNorm, batch.Layers[1].Norm, batch.Layers[1].BatchNorm = true, false, true
	all["sage, batch norm"] = batch
	plain := all["sage"]
	plain.Layers = slices.Clone(plain.Layers)
	plain.Layers[0].Dropout = 0
	all["sage, aggregated once"] = plain
	for _, name := range []string{"gcn", "sage", "gat"} { // whose rows share memory and are made again
		s := all[name]
		s.Layers = slices.Clone(s.Layers)
		for k := range s.Layers {
			l := &s.Layers[k]
			l.Norm, l.Residual = k < 2, false
			if name != "gat" {
				l.Dropout = 0
			}
		}
		all[name+", normed"] = s
	}
	batches := all["gcn, normed"]
	batches.Layers = slices.Clone(batches.Layers)
	for k := range 2 {
		batches.Layers[k].BatchNorm, batches.Layers[k].Norm = true, false
	}
	all["gcn, batch norm, made again"] = batches
	for name, at := range map[string]int{"appnp": 2, "appnp, propagated first": 0} {
		s := all["sage"]
		s.Layers = slices.Clone(s.Layers)
		for k := range s.Layers {
			s.Layers[k].Conv = "mlp"
		}
		s.Layers[at].Conv, s.Layers[at].Hops, s.Layers[at].Alpha = "appnp", 3, 0.2
		all[name] = s
	}
	sign := all["sage"]
	sign.Layers = slices.Clone(sign.Layers)
	sign.Encoder = nn.EncoderSpec{Kind: "sign", Hops: 2, Out: 3 * features}
	sign.Layers[0].Conv, sign.Layers[0].Hops, sign.Layers[0].In, sign.Layers[0].Out = "sign", 2, 3*features, 12
	sign.Layers[1].In, sign.Layers[1].Conv, sign.Layers[2].Conv = 12, "mlp", "mlp"
	all["sign"] = sign
	hops := all["gcn"]
	hops.Layers = slices.Clone(hops.Layers)
	hops.Layers[0].Hops = 3
	all["gcn of 3 hops"] = hops
	scores := all["gat"]
	scores.LayerOutput, scores.Encoder = nn.Logits, nn.EncoderSpec{Kind: "mlp", Out: 3, Hidden: 10, Dropout: 0.2}
	scores.Layers = slices.Clone(scores.Layers)
	for k := range scores.Layers {
		l := &scores.Layers[k]
		l.In, l.Out, l.Average, l.Heads, l.Residual, l.Head = 3, 8, false, 4, false, []int{3}
	}
	all["gat of scores, encoder mlp"] = scores
	return all
}

// TestEveryLayerIsExact holds the rows of every layer, the gradients of its input and those of all parameters to what
// one worker computes. Each model meets each number of workers, each kind of part and each way to fetch; all models
// together meet all combinations.
func TestEveryLayerIsExact(t *testing.T) {
	everyLayerIsExact(t, func(model, parts, how, fetch int) bool {
		if testing.Short() {
			return parts == 1
		}
		return (model+parts+how+fetch)%5 == 0
	})
}

// TestEveryLayerIsExactInAllWays lets each model meet all combinations.
func TestEveryLayerIsExactInAllWays(t *testing.T) {
	testenv.OnlyLong(t)
	everyLayerIsExact(t, func(int, int, int, int) bool { return true })
}

// everyLayerIsExact tries the models by number, those numbers of workers, kinds of part and ways to fetch for which
// tried is true.
func everyLayerIsExact(t *testing.T, tried func(model, parts, how, fetch int) bool) {
	g := traintest.Columned(traintest.Typed(toy(rng.New(1), 90, 9)))
	all := models(9)
	for model, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Defaults(all[name])
			want := onePass(t, c, cut(t, g, "", 1))
			for p, parts := range []int{2, 3, 4, 8} {
				for h, how := range slices.Sorted(maps.Keys(owners)) {
					var shards []*shard.Shard
					for f, fetch := range Fetches {
						if !tried(model, p, h, f) {
							continue
						}
						if shards == nil {
							shards = cut(t, g, how, parts)
						}
						c := c
						c.Fetch, c.Order, c.Prefetch = fetch, "any", parts%3
						if how == "uneven" {
							c.Order = "fixed"
						}
						if fetch == "auto" {
							c.Memory = 900 // some blocks are kept, some are not; nor are the features of the halo
						}
						t.Logf("%d workers, %s, %s, %s", parts, how, fetch, c.Order)
						onePass(t, c, shards).compare(t, want)
					}
				}
			}
		})
	}
}
