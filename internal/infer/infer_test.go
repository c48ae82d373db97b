package infer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// sites returns a graph of two relations whose edges have two columns, with sparse features or dense ones.
func sites(t *testing.T, sparse bool) *graph.Graph {
	t.Helper()
	g := dataset.Sites(dataset.SitesConfig{Nodes: 120, Sites: 2, Classes: 3, Columns: 12, Degree: 6, Words: 4,
		Train: 0.3, Val: 0.2}, rng.New(4))
	if !sparse {
		g.X = graph.Features{Dense: g.X.Sparse.Dense()}
	}
	g.Typed.Names = []string{"likes", "knows"}
	var list []*graph.CSR
	for kind := range 2 {
		var src, dst []int32
		for i := range g.N() {
			col, _ := g.Adj.Row(i)
			for k, j := range col {
				if k%2 == kind {
					src, dst = append(src, j), append(dst, int32(i))
				}
			}
		}
		adj, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{Directed: true})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &adj)
	}
	g.Typed.Adj = graph.Stack(list)
	number := func(adj *graph.CSR) {
		for i := range adj.NumDst {
			col, _ := adj.Row(i)
			for _, j := range col {
				node := int32(i % g.N())
				adj.Edge = append(adj.Edge, min(node, j)*7+max(node, j)*3)
			}
		}
	}
	number(&g.Adj)
	number(&g.Typed.Adj)
	g.EdgeX = mat.New(10*g.N(), 2)
	for k := range g.EdgeX.Data {
		g.EdgeX.Data[k] = float32(rng.New(5).Normal(uint64(k)))
	}
	return g
}

// cut returns the parts of g, whose nodes the peers own in turn.
func cut(t *testing.T, g *graph.Graph, peers int) []*shard.Shard {
	t.Helper()
	owner := make([]int32, g.N())
	for i := range owner {
		owner[i] = int32(i % peers)
	}
	all, err := shard.Cut(g, owner, peers)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// each runs do for each peer, in memory, and returns what they answer.
func each(shards []*shard.Shard, do func(g *comm.Group, own *shard.Shard) (*Answer, error)) ([]*Answer, []error) {
	network := netsim.New(len(shards), netsim.Config{})
	all, errs := make([]*Answer, len(shards)), make([]error, len(shards))
	var wait sync.WaitGroup
	for rank, own := range shards {
		wait.Go(func() {
			g := comm.NewGroup(network.Transport(rank), rank, len(shards))
			defer g.Close()
			all[rank], errs[rank] = do(g, own)
		})
	}
	wait.Wait()
	return all, errs
}

// traced returns a model whose every parameter differs from zero and one.
func traced(t *testing.T, spec nn.Spec) *nn.Model {
	t.Helper()
	m, err := nn.New(spec, rng.New(7))
	if err != nil {
		t.Fatal(err)
	}
	key := rng.New(8)
	for i, p := range m.Params() {
		for k := range p.Value.Data {
			p.Value.Data[k] += float32(0.2 * key.Fold(uint64(i)).Normal(uint64(k)))
			if strings.Contains(p.Name, "var") || strings.Contains(p.Name, "counts") ||
				strings.Contains(p.Name, "inverse") {
				p.Value.Data[k] = 3 + float32(math.Abs(float64(p.Value.Data[k])))
			}
		}
	}
	return m
}

// specs are models of every convolution, trained layer by layer and end to end, and in closed form.
func specs(t *testing.T) map[string]nn.Spec {
	t.Helper()
	all := map[string]nn.Spec{}
	for _, conv := range nn.Convolutions(nil) {
		a := nn.Architecture{Model: conv, Task: "single", Features: 12, Classes: 3, Layers: 2, Hidden: 8,
			Residual: conv != "sign"}
		c, _ := nn.ConvolutionNamed(conv)
		a.Heads, a.Hops, a.Alpha = min(2, c.Recipe.Heads), c.Recipe.Hops, c.Recipe.Alpha
		if c.Typed {
			a.Relations = 2
		}
		a.EdgeColumns = 2
		for _, norm := range []string{"none", "layer", "batch"} {
			a.Norm = norm
			s, err := a.Spec()
			if err != nil {
				t.Fatal(err)
			}
			all[conv+" "+norm] = s
		}
		a.Norm = "none"
		if c.Hops && c.Aggregates {
			a.Layers, a.Hops = 1, 3
			s, err := a.Spec()
			if err != nil {
				t.Fatal(err)
			}
			all[conv+" of 3 hops"] = s
		}
	}
	labels := all["gcn none"]
	labels.Layers = append([]nn.LayerSpec(nil), labels.Layers...)
	labels.Encoder.Labels, labels.Encoder.Out, labels.Layers[0].In = 0.5, 15, 15
	all["gcn with labels"] = labels
	smoothed := all["sage none"]
	smoothed.CorrectSmooth = &nn.CorrectSmooth{Steps: 3, Correct: 0.9, Smooth: 0.8}
	all["sage, smoothed"] = smoothed
	layer := nn.LayerSpec{Conv: "gcn", In: 4, Out: 6, Hops: 2, Norm: true, Act: "relu", Head: []int{3}}
	next := layer
	next.In = 6
	all["layers on pca"] = nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden,
		Encoder: nn.EncoderSpec{Kind: "pca", Out: 4}, Layers: []nn.LayerSpec{layer, next}}
	beside := layer
	beside.In = 4 + 3
	all["layers on pca and classes"] = nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden,
		Encoder: nn.EncoderSpec{Kind: "pca", Out: 4 + 3,
			Classes: &closed.Layout{Rounds: 3, Hops: 2, AllHops: true, Degree: true, LeaveOut: true, Random: 5}},
		Layers: []nn.LayerSpec{beside, next}}
	layer.In, next.In = 3, 3
	all["logits of mlp"] = nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Logits,
		Encoder: nn.EncoderSpec{Kind: "mlp", Out: 3, Hidden: 7}, Layers: []nn.LayerSpec{layer, next}}
	all["mlp alone"] = nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden,
		Encoder: nn.EncoderSpec{Kind: "mlp", Out: 7, Hidden: 7}}
	for name, form := range map[string]closed.Layout{
		"class means": {Rounds: 3, Hops: 2, LeaveOut: true},
		"residuals": {Rounds: 3, Hops: 2, AllHops: true, Degree: true, Mean: true, LogitHops: 2, Residual: true,
			Random: 9},
		"left out":     {Rounds: 2, Hops: 1, Residual: true, LeaveOut: true},
		"features":     {Rounds: 1},
		"coarse means": {Rounds: 2, Hops: 2, Coarse: 6},
		"own exact":    {Rounds: 2, Hops: 2, AllHops: true, Coarse: 6, OwnExact: true},
		"alone": {Rounds: 4, Hops: 2, AllHops: true, Mean: true, LogitHops: 2, Residual: true, Coarse: 6,
			Alone: 2},
	} {
		all[name] = nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden, Closed: &form,
			Encoder: nn.EncoderSpec{Kind: "closed", Out: 3, L2Norm: true}}
	}
	return all
}

// TestAsOnTheWholeGraph: the peers' logits equal the logits of the model on the whole graph, up to rounding, for every
// model and number of peers, whatever is sent instead of rows.
func TestAsOnTheWholeGraph(t *testing.T) {
	for _, sparse := range []bool{true, false} {
		g := sites(t, sparse)
		for name, spec := range specs(t) {
			m := traced(t, spec)
			want, err := Graph(m, g)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			far := 0.0
			for _, v := range want.Data {
				far = max(far, math.Abs(float64(v)))
			}
			for peers, c := range map[int]Config{1: {Exchange: "halo", Layerwise: true},
				2: {Exchange: "cover", Layerwise: true}, 3: {Exchange: "halo"}, 4: {Exchange: "auto"}} {
				if m.Closed != nil && c.Exchange == "cover" {
					c.Exchange = "auto"
				}
				c.Metric = "accuracy"
				shards := cut(t, g, peers)
				all, errs := each(shards, func(group *comm.Group, own *shard.Shard) (*Answer, error) {
					return Run(t.Context(), c, m, own, group, group)
				})
				if err := errors.Join(errs...); err != nil {
					t.Fatalf("%s, %d peers: %v", name, peers, err)
				}
				score := c.Metric.Pooled(eval.Scored{Scores: want, Labels: g.Labels, Rows: g.InSplit(graph.Test)})
				for rank, a := range all {
					for i, node := range shards[rank].Global[:shards[rank].Owned] {
						for k, v := range a.Logits.Row(i) {
							if off := math.Abs(float64(v - want.At(int(node), k))); !(off <= 2e-5*far) {
								t.Fatalf("%s, sparse %t, %d peers: logit %d of node %d is %v, on the whole graph %v",
									name, sparse, peers, k, node, v, want.At(int(node), k))
							}
						}
					}
					if a.Test != score || a.Tested != int64(len(g.InSplit(graph.Test))) {
						t.Errorf("%s, %d peers: accuracy %v of %d nodes, on the whole graph %v", name, peers, a.Test,
							a.Tested, score)
					}
				}
			}
		}
	}
}

// TestSiteWithoutEdges: a site without edges to the others takes part in all exchanges, although it reads no row of
// theirs.
func TestSiteWithoutEdges(t *testing.T) {
	g := sites(t, true)
	var src, dst []int32
	for i := range int32(g.N()) {
		col, _ := g.Adj.Row(int(i))
		for _, j := range col {
			if (i%3 == 2) == (j%3 == 2) {
				src, dst = append(src, j), append(dst, i)
			}
		}
	}
	adj, err := graph.FromEdges(g.N(), src, dst, nil, graph.Build{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj, g.Typed, g.EdgeX = adj, graph.Relations{}, mat.Dense{}
	all := specs(t)
	for _, name := range []string{"gcn none", "sign none", "sage, smoothed", "logits of mlp", "residuals"} {
		m := traced(t, all[name])
		want, err := Graph(m, g)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shards := cut(t, g, 3)
		got, errs := each(shards, func(group *comm.Group, own *shard.Shard) (*Answer, error) {
			return Run(t.Context(), Config{Exchange: "halo", Metric: "accuracy"}, m, own, group, group)
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for rank, a := range got {
			if own := shards[rank]; !near(a.Logits, want.Select(nodesOf(own))) {
				t.Errorf("%s: site %d has other logits than the whole graph", name, rank)
			}
		}
	}
}

// nodesOf returns the numbers of the own nodes of s in the whole graph.
func nodesOf(s *shard.Shard) (nodes []int32) {
	for _, node := range s.Global[:s.Owned] {
		nodes = append(nodes, int32(node))
	}
	return nodes
}

// TestHidden: the model's last linear map makes the logits of the hidden rows.
func TestHidden(t *testing.T) {
	g := sites(t, false)
	for name, spec := range specs(t) {
		m := traced(t, spec)
		shards := cut(t, g, 2)
		all, errs := each(shards, func(group *comm.Group, own *shard.Shard) (*Answer, error) {
			return Run(t.Context(), Config{Exchange: "halo", Layerwise: true, Metric: "accuracy"}, m, own, group, group)
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a := all[1]
		if a.Hidden.Empty() {
			if spec.Layers == nil || len(spec.Layers) > 1 {
				t.Errorf("%s: no hidden rows", name)
			}
			continue
		}
		var head tape.Operator
		switch {
		case m.Closed != nil:
			if got := m.Closed.Heads[len(m.Closed.Heads)-1].Logits(a.Hidden); !near(got, a.Logits) {
				t.Errorf("%s: the last regression makes other logits of the hidden rows", name)
			}
			continue
		case len(m.Layers) == 0:
			head = m.Encoder.Layer.Head
		default:
			head = m.Layers[len(m.Layers)-1].Head
		}
		if head != nil && m.Spec.CorrectSmooth == nil && !near(headRows(head, a.Hidden), a.Logits) {
			t.Errorf("%s: the head makes other logits of the hidden rows", name)
		}
		if head == nil && a.Hidden.Rows != shards[1].Owned {
			t.Errorf("%s: %d hidden rows of %d nodes", name, a.Hidden.Rows, shards[1].Owned)
		}
	}
}

// headRows returns what a head makes of rows.
func headRows(head tape.Operator, rows mat.Dense) mat.Dense {
	_, classes := head.Dims()
	y := mat.New(rows.Rows, classes)
	head.Forward(y, rows, nil)
	return y
}

func near(a, b mat.Dense) bool {
	for i := range a.Data {
		if math.Abs(float64(a.Data[i]-b.Data[i])) > 1e-4*(1+math.Abs(float64(b.Data[i]))) {
			return false
		}
	}
	return a.Rows == b.Rows && a.Cols == b.Cols
}

// TestRefused: what does not fit is an error before anything is sent.
func TestRefused(t *testing.T) {
	g := sites(t, true)
	m := traced(t, specs(t)["gcn none"])
	wide := *cut(t, g, 2)[0]
	wide.X = graph.Features{Dense: mat.New(wide.Owned, 13)}
	bare := *cut(t, g, 2)[0]
	bare.Labels = graph.Labels{}
	other := *cut(t, g, 2)[0]
	other.Labels = graph.Labels{Classes: 4, Class: make([]int32, other.Owned)}
	unrounded := nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden,
		Closed: &closed.Layout{Rounds: 3, Hops: 2, Unconnected: true}, Encoder: nn.EncoderSpec{Kind: "closed", Out: 3}}
	private := nn.Spec{Task: "single", Features: 12, Classes: 3, LayerOutput: nn.Hidden,
		Closed: &closed.Layout{Rounds: 3, Own: 1}, Encoder: nn.EncoderSpec{Kind: "closed", Out: 3}}
	for _, c := range []struct {
		m    *nn.Model
		s    *shard.Shard
		want string
	}{
		{m, &wide, "12 features, as the model has (got 13)"},
		{traced(t, specs(t)["rgcn none"]),
			func() *shard.Shard { s := *cut(t, g, 2)[0]; s.Typed = graph.Relations{}; return &s }(), "2 relations"},
		{traced(t, specs(t)["class means"]), &other, "labels of 3 classes for task single, or none"},
		{traced(t, specs(t)["class means"]), &bare, ""},
		{traced(t, private), cut(t, g, 2)[0], "private edges"},
		{traced(t, unrounded), cut(t, g, 2)[0], "does not round rows"},
		{traced(t, unrounded), cut(t, g, 1)[0], ""},
		{m, &bare, ""},
	} {
		err := Fits(c.m, c.s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, must have %q", err, c.want)
		}
	}
}

// TestWithoutLabels: a site without labels predicts like one whose nodes have none, whichever labels the model reads.
func TestWithoutLabels(t *testing.T) {
	for _, name := range []string{"class means", "sage, smoothed", "gcn with labels", "gat none"} {
		g := sites(t, false)
		for i := range g.Labels.Class {
			if i%2 == 1 {
				g.Labels.Class[i], g.Split[i] = -1, graph.None
			}
		}
		m := traced(t, specs(t)[name])
		shards := cut(t, g, 2)
		answer := func(group *comm.Group, own *shard.Shard) (*Answer, error) {
			return Run(t.Context(), Config{Exchange: "halo", Metric: "accuracy"}, m, own, group, group)
		}
		want, errs := each(shards, answer)
		shards[1].Labels, shards[1].Split = graph.Labels{}, make([]graph.Split, shards[1].Owned)
		got, more := each(shards, answer)
		if err := errors.Join(append(errs, more...)...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for rank := range got {
			if !near(got[rank].Logits, want[rank].Logits) || got[rank].Tested != want[rank].Tested ||
				got[rank].Tested == 0 {
				t.Errorf("%s: site %d has other predictions", name, rank)
			}
		}
	}
}

// TestFailedPeer: the error of a peer that is gone names it, and nobody waits for it.
func TestFailedPeer(t *testing.T) {
	g := sites(t, true)
	for name, c := range map[string]Config{"gcn none": {Layerwise: true}, "gat layer": {}, "class means": {}} {
		m := traced(t, specs(t)[name])
		c.Metric, c.Exchange = "accuracy", "halo"
		_, errs := each(cut(t, g, 3), func(group *comm.Group, own *shard.Shard) (*Answer, error) {
			if own.Rank == 1 {
				return nil, nil
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			return Run(ctx, c, m, own, group, group)
		})
		for _, rank := range []int{0, 2} {
			var failed *comm.PeerError
			if !errors.As(errs[rank], &failed) {
				t.Errorf("%s: peer %d: %v, must be an error of a peer", name, rank, errs[rank])
			}
		}
		if errs[1] != nil {
			t.Error(fmt.Sprint(errs[1]))
		}
	}
}
