package minibatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/internal/train/traintest"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// toy returns a graph of n nodes, the last tenth of them isolated, with 9 features, 3 classes and all splits. Some
// edges have one direction, and some nodes an edge from themselves.
func toy(n int) *graph.Graph {
	key := rng.New(2)
	var src, dst []int32
	for i := range n - n/10 {
		for k := range uint64(7) {
			src, dst = append(src, int32(key.Fold(uint64(i)).Uint64(k)%uint64(n-n/10))), append(dst, int32(i))
		}
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "toy", Adj: adj}
	g.X.Dense = mat.New(n, 9)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.FoldString("x").Normal(uint64(k)))
	}
	g.Labels.Classes = 3
	for i := range n {
		u := key.FoldString("label").Uint64(uint64(i))
		g.Labels.Class = append(g.Labels.Class, int32(u%3))
		g.Split = append(g.Split, []graph.Split{graph.Train, graph.Train, graph.Val, graph.Test}[u>>8%4])
	}
	return g
}

// weighted returns g with weights of its edges.
func weighted(g *graph.Graph) *graph.Graph {
	h := *g
	h.Adj.Weight = make([]float32, len(g.Adj.Col))
	for k := range h.Adj.Weight {
		h.Adj.Weight[k] = 0.5 + float32(k%5)
	}
	return &h
}

// cut deals the nodes out unevenly; of several parts the second owns no training node.
func cut(t testing.TB, g *graph.Graph, parts int) []*shard.Shard {
	t.Helper()
	if parts == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	owner := make([]int32, g.N())
	for i := range owner {
		u := rng.New(3).Float64(uint64(i))
		owner[i] = int32(float64(parts) * u * u)
		if owner[i] == 1 && g.Split[i] == graph.Train {
			owner[i] = 0
		}
	}
	all, err := shard.Cut(g, owner, parts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// of returns the configuration of a small model.
func of(t testing.TB, conv string, g *graph.Graph) Config {
	t.Helper()
	c, _ := nn.ConvolutionNamed(conv)
	a := nn.Architecture{Model: conv, Task: "single", Features: g.X.Cols(), Classes: g.Labels.Classes, Layers: 2,
		Hidden: 8, Dropout: 0.3, Norm: "layer"}
	if c.Heads {
		a.Heads, a.AttentionDropout = 2, 0.3
	}
	if c.Typed {
		a.Relations = g.Typed.Count()
	}
	if c.EdgeColumns {
		a.EdgeColumns = g.EdgeX.Cols
	}
	spec, err := a.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Config: train.Config{
			Seed: 1, Spec: spec, Rounds: 6, EvalEvery: 2, Metric: "accuracy",
			Optimizer: optim.Config{Name: "adam", LR: 0.01, Decay: 5e-4}, Schedule: optim.Schedule{Kind: "constant"},
			Exchange: "auto",
		},
		Sample: Sampling{Kind: "neighbour", Fanouts: []int{3, 4}}, BatchSize: 16, Group: 2,
	}
}

// peers runs f as every peer of a run.
func peers(t testing.TB, c Config, shards []*shard.Shard, f func(tr *Trainer, g *comm.Group) error) []*Trainer {
	t.Helper()
	return traintest.Run(t, shards, func(s *shard.Shard) (*Trainer, error) {
		m, err := c.NewModel()
		if err != nil {
			return nil, err
		}
		return New(c, s, m)
	}, f)
}

func trained(t testing.TB, c Config, shards []*shard.Shard) []*Trainer {
	t.Helper()
	return peers(t, c, shards, func(tr *Trainer, g *comm.Group) error { return tr.Run(context.Background(), g, g) })
}

// edge is a sampled one: of a step, in a block, with the bits of its weight and of its last column.
type edge struct {
	step, block, relation int
	dst, src              int32
	weight, column        uint32
	reached               bool // src is −1: no edge, but whether the relation reaches dst
}

// sampled returns the edges of all batches of two epochs, of all peers together.
func sampled(t *testing.T, c Config, shards []*shard.Shard) map[edge]bool {
	t.Helper()
	all := map[edge]bool{}
	var mu sync.Mutex
	peers(t, c, shards, func(tr *Trainer, g *comm.Group) error {
		ctx := context.Background()
		if err := tr.Begin(ctx, g, g); err != nil {
			return err
		}
		if err := tr.prepare(ctx); err != nil {
			return err
		}
		defer tr.groups.wait()
		for epoch := range 2 {
			for first := 0; first < tr.steps; first += c.Group {
				got, err := tr.groups.next(ctx, epoch*tr.steps+first, c.Group)
				if err != nil {
					return err
				}
				mu.Lock()
				for b, batch := range got.batches {
					for k, block := range batch.Blocks {
						if err := block.Valid(); err != nil {
							return err
						}
						dst := block.NumDst / max(1, c.Spec.Layers[k].Relations)
						for i, is := range batch.Reached[k] {
							all[edge{step: epoch*tr.steps + first + b, block: k, relation: i / dst,
								dst: batch.Nodes[i%dst], src: -1, reached: is}] = true
						}
						for i := range block.NumDst {
							col, weight := block.Row(i)
							columns := block.EdgeRows(i)
							for e, j := range col {
								one := edge{step: epoch*tr.steps + first + b, block: k, relation: i / dst,
									dst: batch.Nodes[i%dst], src: batch.Nodes[j]}
								if columns != nil && columns[e] >= 0 {
									one.column = math.Float32bits(batch.EdgeX[k].Row(int(columns[e]))[2])
								}
								if weight != nil {
									one.weight = math.Float32bits(weight[e])
								}
								all[one] = true
							}
						}
					}
				}
				mu.Unlock()
			}
		}
		return nil
	})
	return all
}

// TestSamplesDoNotDependOnGroupsOrPeers: what is sampled for a batch is the same, to the bits of the weights, in groups
// of 1 to 16 batches and over 1 to 4 peers.
func TestSamplesDoNotDependOnGroupsOrPeers(t *testing.T) {
	g := weighted(traintest.Columned(traintest.Typed(toy(200))))
	for name, set := range map[string]func(c *Config){
		"neighbour": func(*Config) {}, "labor": func(c *Config) { c.Sample.Kind = "labor" },
		"inductive": func(c *Config) { c.Inductive = true },
	} {
		for _, conv := range []string{"gcn", "sage", "gatv2", "rsage"} {
			c := of(t, conv, g)
			set(&c)
			if c.Validate() != nil {
				continue // relations that there are not, or that the sampler does not take
			}
			c.Group = 1
			want := sampled(t, c, cut(t, g, 1))
			if len(want) < 300 {
				t.Fatalf("%s, %s: %d edges are too few to compare", name, conv, len(want))
			}
			for _, k := range []int{1, 2, 3, 4} {
				for _, b := range [][]int{{2, 16}, {1, 5}}[k%2] {
					c.Group = b
					got := sampled(t, c, cut(t, g, k))
					if len(got) != len(want) {
						t.Fatalf("%s, %s, %d peers, groups of %d: %d edges, must be %d", name, conv, k, b, len(got),
							len(want))
					}
					for e := range want {
						if !got[e] {
							t.Fatalf("%s, %s, %d peers, groups of %d: %+v is not sampled", name, conv, k, b, e)
						}
					}
				}
			}
		}
	}
}

// TestModelDoesNotDependOnGroups: the trained parameters are the same bits whatever the size of groups.
func TestModelDoesNotDependOnGroups(t *testing.T) {
	g := toy(160)
	for _, conv := range []string{"gcn", "gat", "sage"} {
		for _, k := range []int{1, 3} {
			c := of(t, conv, g)
			c.Group = 1
			want := trained(t, c, cut(t, g, k))
			for _, b := range []int{2, 3, 8, 16} {
				c.Group = b
				for r, tr := range trained(t, c, cut(t, g, k)) {
					if !slices.Equal(tr.Params.Value, want[r].Params.Value) {
						t.Errorf("%s, %d peers, groups of %d: peer %d has another model", conv, k, b, r)
					}
				}
			}
		}
	}
}

func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) && got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Fatalf("%s: %g, must be %g within %g of it", what, got, want, tol)
	}
}

// TestCurvesDoNotDependOnTheNumberOfPeers: losses of training and validation agree within 1e-4 over 1 to 4 peers.
func TestCurvesDoNotDependOnTheNumberOfPeers(t *testing.T) {
	dense := toy(160)
	unvalidated := *dense
	unvalidated.Split = slices.Clone(dense.Split)
	for i, s := range unvalidated.Split {
		if s == graph.Val {
			unvalidated.Split[i] = graph.None
		}
	}
	for _, k := range []struct {
		name, conv string
		g          *graph.Graph
		set        func(c *Config)
	}{
		{"gcn", "gcn", dense, nil},
		{"gcn, sparse, balanced", "gcn", traintest.Sparsed(dense), func(c *Config) { c.Balanced = true }},
		{"sage, labor", "sage", dense, func(c *Config) { c.Sample.Kind = "labor" }},
		{"sage, weights of edges, residual", "sage", weighted(dense),
			func(c *Config) { c.Spec.Layers[0].Residual = true }},
		{"sage-pool", "sage-pool", dense, nil},
		{"gat, sparse", "gat", traintest.Sparsed(dense), nil},
		{"gatv2, inductive", "gatv2", dense, func(c *Config) { c.Inductive = true }},
		{"gin", "gin", dense, nil},
		{"rgcn, two bases", "rgcn", traintest.Typed(dense), func(c *Config) {
			for i := range c.Spec.Layers {
				c.Spec.Layers[i].Bases = 2
			}
		}},
		{"rsage, inductive, sparse", "rsage", traintest.Typed(traintest.Sparsed(dense)),
			func(c *Config) { c.Inductive = true }},
		{"rgat", "rgat", traintest.Typed(dense), nil},
		{"rsage, labor", "rsage", traintest.Typed(dense), func(c *Config) { c.Sample.Kind = "labor" }},
		{"gatv2, columns of edges", "gatv2", traintest.Columned(dense), nil},
		{"gcn, no validation nodes, schedule", "gcn", &unvalidated,
			func(c *Config) { c.Schedule = optim.Schedule{Kind: "cosine"} }},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := of(t, k.conv, k.g)
			c.Optimizer = optim.Config{Name: "sgd", LR: 0.05, Momentum: 0.9}
			if k.set != nil {
				k.set(&c)
			}
			want := trained(t, c, cut(t, k.g, 1))[0].Result().Final()
			if want.Val != want.Val || want.Test != want.Test || len(want.Curve) != c.Rounds {
				t.Fatalf("%+v is no result", want)
			}
			for _, parts := range []int{2, 3, 4} {
				for r, tr := range trained(t, c, cut(t, k.g, parts)) {
					got := tr.Result().Final()
					for i, w := range want.Curve {
						at := fmt.Sprintf("peer %d of %d, epoch %d: ", r, parts, i)
						within(t, at+"loss", got.Curve[i].Loss, w.Loss, 1e-4)
						within(t, at+"validation loss", got.Curve[i].ValLoss, w.ValLoss, 1e-4)
					}
					within(t, "test loss", got.TestLoss, want.TestLoss, 1e-4)
				}
			}
		})
	}
}

// TestAllEdgesAreFullBatch: with every in-edge and all training labels in one batch, training is that of method
// full-batch.
func TestAllEdgesAreFullBatch(t *testing.T) {
	for _, conv := range nn.Convolutions(Samples) {
		t.Run(conv, func(t *testing.T) {
			t.Parallel()
			g := traintest.Columned(traintest.Typed(toy(160)))
			c := of(t, conv, g)
			for i := range c.Spec.Layers {
				c.Spec.Layers[i].Dropout, c.Spec.Layers[i].AttentionDropout = 0, 0
			}
			c.Rounds, c.EvalEvery = 12, 1
			c.Sample.Fanouts, c.BatchSize = []int{-1, -1}, 1000
			c.Optimizer = optim.Config{Name: "sgd", LR: 0.05, Momentum: 0.9}
			full := fullbatch.Defaults(c.Spec)
			full.Config = c.Config
			m, err := full.NewModel()
			if err != nil {
				t.Fatal(err)
			}
			oracle, err := fullbatch.New(full, shard.Whole(g), m)
			if err != nil {
				t.Fatal(err)
			}
			group := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			defer group.Close()
			if err := oracle.Run(context.Background(), group, group); err != nil {
				t.Fatal(err)
			}
			want := oracle.Result().Final()
			for _, parts := range []int{1, 3} {
				got := trained(t, c, cut(t, g, parts))[0].Result().Final()
				for i, w := range want.Curve {
					at := fmt.Sprintf("%d peers, epoch %d: ", parts, i)
					within(t, at+"loss", got.Curve[i].Loss, w.Loss, 1e-4)
					within(t, at+"validation loss", got.Curve[i].ValLoss, w.ValLoss, 1e-4)
				}
				within(t, "test loss", got.TestLoss, want.TestLoss, 1e-4)
			}
		})
	}
}

// TestRelays: for each group a peer sends every other one two messages for each hop but the first, whose nodes are its
// own, and two for the features: the nodes that are needed, and their rows in as many pieces as fit.
func TestRelays(t *testing.T) {
	g := toy(600)
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(i % 3)
	}
	even, err := shard.Cut(g, owner, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []int{1, 3, 4} {
		for _, pieces := range []int{1, 3} {
			c := of(t, "sage", g)
			c.Group, c.Rounds = b, 1
			peers(t, c, even, func(tr *Trainer, group *comm.Group) error {
				ctx := context.Background()
				if err := tr.Begin(ctx, group, group); err != nil {
					return err
				}
				if err := tr.prepare(ctx); err != nil {
					return err
				}
				if pieces > 1 {
					tr.groups.features.piece = 1 // a row each
				}
				before, groups := group.Messages(), 0
				var rows []*inputs
				for first := 0; first < tr.steps; first += b {
					got, err := tr.groups.next(ctx, first, b)
					if err != nil {
						return err
					}
					rows = append(rows, got.inputs)
					groups++
				}
				sent := group.Messages() - before
				if want := int64(groups * 2 * (2*(2-1) + 2)); pieces == 1 && sent != want ||
					pieces > 1 && sent <= want {
					return fmt.Errorf("%d messages for %d groups of %d, must be %d", sent, groups, b, want)
				}
				for _, x := range rows {
					for _, at := range x.at {
						for _, k := range at {
							if k < 0 || int(k) >= x.rows.Rows() {
								return fmt.Errorf("row %d of %d", k, x.rows.Rows())
							}
						}
					}
				}
				return nil
			})
		}
	}
}

// TestFeaturesArrive: each node of a batch has the features that its owner has, in pieces of any size and in any coding
// that is exact, sparse or dense.
func TestFeaturesArrive(t *testing.T) {
	for _, g := range []*graph.Graph{toy(200), traintest.Sparsed(toy(200))} {
		x := g.X
		if x.Sparse != nil {
			x.Dense = x.Sparse.Dense()
		}
		for _, piece := range []int{1, 100, pieceLen} {
			for _, coding := range []comm.Coding{{}, {Compress: "zstd"}} {
				c := of(t, "sage", g)
				c.Rows = coding
				peers(t, c, cut(t, g, 3), func(tr *Trainer, group *comm.Group) error {
					ctx := context.Background()
					if err := tr.Begin(ctx, group, group); err != nil {
						return err
					}
					if err := tr.prepare(ctx); err != nil {
						return err
					}
					tr.groups.features.piece, tr.groups.total = piece, tr.steps
					got, err := tr.groups.next(ctx, 0, c.Group)
					if err != nil {
						return err
					}
					defer tr.groups.wait()
					rows := got.inputs.rows
					if (rows.Sparse != nil) != (g.X.Sparse != nil) {
						return errors.New("sparse rows must stay so, and dense ones, too")
					}
					if rows.Sparse != nil {
						rows.Dense = rows.Sparse.Dense()
					}
					for b, batch := range got.batches {
						for i, id := range batch.Nodes {
							if !slices.Equal(rows.Dense.Row(int(got.inputs.at[b][i])), x.Dense.Row(int(id))) {
								return fmt.Errorf("node %d has other features", id)
							}
						}
					}
					return nil
				})
			}
		}
	}
}

// reducer is a function as a comm.Reducer.
type reducer func(ctx context.Context, c *comm.Contribution) (comm.Reduced, error)

func (f reducer) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	return f(ctx, c)
}

// TestReductionsHaveNamesOfTheirOwn: no two sums of a run have the same ID.
func TestReductionsHaveNamesOfTheirOwn(t *testing.T) {
	g := toy(120)
	c := of(t, "gcn", g)
	peers(t, c, cut(t, g, 2), func(tr *Trainer, group *comm.Group) error {
		seen := map[comm.ReduceID]bool{}
		return tr.Run(context.Background(), group,
			reducer(func(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
				if seen[c.ID] {
					return comm.Reduced{}, fmt.Errorf("%v for the second time", c.ID)
				}
				seen[c.ID] = true
				return group.Reduce(ctx, c)
			}))
	})
}

// TestPatience: a run ends when validation has not improved for so long, with groups under way.
func TestPatience(t *testing.T) {
	g := toy(160)
	c := of(t, "sage", g)
	c.Rounds, c.Patience, c.EvalEvery, c.Group = 300, 4, 1, 3
	for _, tr := range trained(t, c, cut(t, g, 3)) {
		if r := tr.Result().Final(); !r.Ended || len(r.Curve) >= 300 || len(r.Curve) != r.BestRound+4 {
			t.Errorf("%d epochs, the best one %d: must end 4 epochs later", len(r.Curve), r.BestRound)
		}
	}
}

// TestCora holds the accuracy of sampled training to that of published full-batch training, within what one seed
// varies.
func TestCora(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	g, err := dataset.Read(testenv.DataDir(t, "cora"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, conv := range []string{"gcn", "sage"} {
		spec, err := nn.Preset(conv, "single", g.X.Cols(), g.Labels.Classes, 32, 2)
		if err != nil {
			t.Fatal(err)
		}
		c := of(t, conv, g)
		c.Spec, c.Rounds, c.EvalEvery, c.BatchSize = spec, 60, 2, 64
		c.Sample.Fanouts = []int{10, 10}
		r := trained(t, c, cut(t, g, 2))[0].Result().Final()
		t.Logf("%s, best epoch %d: val %.4f, test %.4f", conv, r.BestRound, r.Val, r.Test)
		if r.Test < 0.78 {
			t.Errorf("%s: test accuracy %.4f, must be at least 0.78", conv, r.Test)
		}
	}
}

// TestFeed: a layer whose rows are summed where they lie gives, to the bit, what it gives of the rows of all sources.
func TestFeed(t *testing.T) {
	const nodes, sources, destinations = 300, 120, 40
	key := rng.New(5)
	rows := mat.New(nodes, 20)
	for i := range rows.Data {
		rows.Data[i] = float32(key.Normal(uint64(i)))
	}
	at := key.Perm(nodes)[:sources]
	block := &graph.CSR{NumDst: destinations, NumSrc: sources, RowPtr: []int64{0}}
	for i := range destinations {
		for e := range i % 7 { // some have no edge
			block.Col = append(block.Col, int32(key.Uint64(uint64(100*i+e))%sources))
			block.Weight = append(block.Weight, 1/float32(i%7))
		}
		block.RowPtr = append(block.RowPtr, int64(len(block.Col)))
	}
	x := mat.New(sources, rows.Cols)
	for i, k := range at {
		copy(x.Row(i), rows.Row(int(k)))
	}
	for conv, sums := range map[string]bool{"sage": true, "gcn": true, "gin": true, "gat": false, "sage-pool": false} {
		grads := func(feed bool) []float32 {
			spec := nn.LayerSpec{Conv: conv, In: rows.Cols, Out: 24, Hops: 1, Act: "relu", Heads: 2}
			if conv != "gat" {
				spec.Heads = 0
			}
			l, err := nn.NewLayer("l", spec, rng.New(1))
			if err != nil {
				t.Fatal(err)
			}
			if sumsFirst(l) != sums {
				t.Errorf("%s: sums first is %t, must be %t", conv, !sums, sums)
			}
			tr := &Trainer{Epochs: &train.Epochs{}, tape: tape.New()}
			tr.Model = &nn.Model{Layers: []*nn.Layer{l}}
			in := nn.Input{G: block, X: graph.Features{Dense: x}, Nodes: make([]int64, sources)}
			if feed {
				in.X = graph.Features{}
				tr.feed(&in, &inputs{rows: graph.Features{Dense: rows}, at: [][]int32{at}}, 0)
			}
			h := tr.tape.Raw(destinations, 24)
			l.Forward(h, in, tr.tape)
			all := slices.Clone(h.Data)
			l.Backward(mat.Dense{}, h, tr.tape)
			for _, p := range l.Params() {
				all = append(all, p.Grad.Data...)
			}
			return all
		}
		if !slices.Equal(grads(true), grads(false)) {
			t.Errorf("%s: rows that are summed where they lie give other bits", conv)
		}
	}
}
