package retexo

import (
	"fmt"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// The formulas below say from the shards and the spec alone how many bytes all peers send (reference: Σ_k Σ_p H_p·d_k·4
// rows and Σ_k rounds_k·2·(W−1)·|θ_k|·4 updates); the counts of a run equal them.

// parameters is |θ_k| while stage k trains: its layer and its head.
func parameters(s nn.Spec, stage int) int {
	if stage == 0 {
		h, c := s.Encoder.Hidden, s.Classes
		return s.Features*h + h + 2*h + h*c + c // linear, norm, head
	}
	l := s.Layers[stage-1]
	n := 0
	switch l.Conv {
	case "gcn":
		n = l.In*l.Out + l.Out
	case "sage":
		n = 2*l.In*l.Out + l.Out
	case "sage-pool":
		n = l.In*l.Out + l.Out + l.In*l.Out + l.Out*l.Out + l.Out // pool, own, pooled
	case "gin":
		n = l.In*l.Out + l.Out + l.Out*l.Out + l.Out
	case "gat", "gatv2":
		dim := l.Out / l.Heads
		if l.Average {
			dim = l.Out
		}
		n = l.In*l.Heads*dim + 2*l.Heads*dim + l.Out
		if l.Conv == "gatv2" { // two maps with biases, one vector
			n += l.In*l.Heads*dim + l.Heads*dim
		}
	}
	if l.Norm {
		n += 2 * l.Out
	}
	if l.Residual && l.In != l.Out {
		n += l.In * l.Out
	}
	if stage < len(s.Layers) || len(l.Head) > 0 {
		n += l.Out*s.Classes + s.Classes
	}
	return n
}

// metricBytes are those of the counts of a metric without ranking and of a mean loss, in 16 bits: the loss in four
// numbers of five digits for 2 to 8 peers, the labels, the rows, the right ones, and three of each class.
func metricBytes(classes int) int { return 2 * (4*5 + 1 + 2 + 3*classes) }

// updates is the bytes that one peer adds to all sums of a run that no patience ends.
func updateBytes(c Config, m *nn.Model) int {
	s, metric := c.Spec, metricBytes(c.Spec.Classes)
	floats, counts := 0, 2*(2*s.Classes+3) // bytes of label counts
	fixed := 0                             // bytes of sums in fixed point
	first := 1
	switch e := s.Encoder; e.Kind {
	case "pca":
		w := min(e.Out+8, s.Features)
		if numbers := c.PCAPasses*s.Features*w + w*w; c.Sums == "" {
			floats += numbers
		} else {
			fixed = numbers*map[string]int{"int16": 2, "int8": 1}[c.Sums] + 4*(c.PCAPasses+1)*w
		}
	case "mlp":
		first = 0
	}
	for k := first; k <= len(s.Layers); k++ {
		counts += 2 * metric // validation and test of the finished stage
		if c.Updates == "" {
			floats += c.Rounds * parameters(s, k)
		} else { // and a magnitude of each tensor
			layer := m.Encoder.Layer
			if k > 0 {
				layer = m.Layers[k-1]
			}
			tensors := len(layer.Params())
			if k < len(s.Layers) || layer.Head != nil {
				tensors += 2
			}
			fixed += c.Rounds * ((parameters(s, k)*map[string]int{"int16": 16, "int8": 8, "int4": 4}[c.Updates]+7)/8 +
				4*tensors)
		}
		evals := (c.Rounds + c.EvalEvery - 1) / c.EvalEvery
		counts += (c.Rounds-evals)*8*(4+4) + evals*2*5*(4+4) // loss and labels
		counts += evals*metric + metric
	}
	return 4*floats + counts + fixed
}

// halo is the bytes of rows that all peers send.
func halo(c Config, g *graph.Graph, shards []*shard.Shard, m *nn.Model) (n int) {
	rows := 0
	for _, s := range shards {
		rows += s.Halo()
	}
	if len(shards) == 1 {
		return 0
	}
	if c.Inductive {
		n += 4 * rows // whether a node is held out
	}
	for k, l := range c.Spec.Layers {
		gcn, sparse := l.Conv == "gcn", k == 0 && c.Spec.Encoder.Kind == "raw" && g.X.Sparse != nil
		if c.Inductive && k == 0 && gcn {
			n += 4 * rows // and where they are all
		}
		for hop := range exchanges(m, k+1) {
			views := 1 // training sees what the full graph shows
			if c.Inductive && k+hop > 0 {
				views = 2
			}
			if gcn && sparse {
				n += views * 4 * rows // degrees
			}
			if !sparse {
				n += views * 4 * rows * l.In
				continue
			}
			for view := range views {
				n += sparseBytes(g, shards, hop, l, c, view == 1)
			}
		}
	}
	return n
}

// sparseBytes is the bytes of raw sparse rows after so many hops, of the pooled graph or of that without held-out
// nodes: a code, and the shorter of all values and, for what is not zero, lengths, columns and values (one where all
// are equal).
func sparseBytes(g *graph.Graph, shards []*shard.Shard, hops int, l nn.LayerSpec, c Config, training bool) (n int) {
	adj := &g.Adj
	if training {
		adj = adj.Without(g.Split, graph.Val, graph.Test)
	}
	norm := map[string]graph.Norm{"gcn": graph.GCN, "sage": graph.Mean, "gin": graph.Loops}[l.Conv]
	x := g.X.Sparse.Dense()
	for range hops {
		x = aggregate.Features(aggregate.Sum{}, graph.Normalise(adj, adj.Degrees(), norm),
			graph.Features{Dense: x}).Dense
	}
	for _, s := range shards {
		for q, boundary := range s.Boundary {
			if q == s.Rank {
				continue
			}
			distinct, stored := map[float32]bool{}, 0
			for _, i := range boundary {
				for _, v := range x.Row(int(s.Global[i])) {
					if v != 0 {
						distinct[v] = true
						stored++
					}
				}
			}
			values := stored
			if len(distinct) <= 1 {
				values = len(distinct)
			}
			n += 1 + 4*min(len(boundary)*x.Cols, len(boundary)+stored+values)
		}
	}
	return n
}

func TestBytesEqualTheFormulas(t *testing.T) {
	type variant struct {
		name string
		set  func(c *Config)
	}
	variants := []variant{
		{"", func(*Config) {}},
		{"every third", func(c *Config) { c.EvalEvery = 3 }},
		{"local steps", func(c *Config) { c.LocalSteps = 3 }},
		{"inductive", func(c *Config) { c.Inductive = true }},
		{"int8", func(c *Config) { c.Updates, c.Sums = "int8", "int16" }},
	}
	for _, model := range []string{"gcn", "sage", "gat", "gin", "sage-pool"} {
		for _, encoder := range []string{"raw", "pca", "mlp"} {
			for _, hops := range []int{1, 2} {
				if hops == 2 && (model == "gat" || model == "sage-pool") {
					continue
				}
				for i, v := range variants {
					p := Design{Model: model, Encoder: encoder, Components: 4,
						LayerOutput: []string{"hidden", "logits"}[i%2], Layers: 2, Hidden: 6, Hops: hops}
					if model == "gat" {
						p.Heads = 2
					}
					for _, o := range []toy{{}, {sparse: true}, {sparse: true, values: true, features: 60}} {
						if (o.values || !o.sparse) && i > 0 {
							continue
						}
						t.Run(fmt.Sprintf("%s-%s-%d hops-%s-%t", model, encoder, hops, v.name,
							o.sparse), func(t *testing.T) {
							g := o.graph(t)
							c := unmoved(configOf(t, g, p))
							c.Rounds, c.PCAPasses = 4, 2
							v.set(&c)
							checkBytes(t, c, g, cut(t, g, "random", 3))
						})
					}
				}
			}
		}
	}
}

func checkBytes(t *testing.T, c Config, g *graph.Graph, shards []*shard.Shard) {
	t.Helper()
	c.KeepLast = true // the model tells what its layers exchange
	r := mustTrain(t, c, shards, nil)
	if got, want := r.bytes.Halo, int64(halo(c, g, shards, r.models[0])); got != want {
		t.Errorf("%d bytes of rows, want %d", got, want)
	}
	if got, want := r.bytes.Reduce, int64(2*(len(shards)-1)*updateBytes(c, r.models[0])); got != want {
		t.Errorf("%d bytes of updates, want %d", got, want)
	}
}

// TestSparseAndDenseAggregatesMix holds a hop over sparse rows to any mix of peers whose aggregate is sparse and peers
// whose is dense: the dense part of the graph here is all in one shard.
func TestSparseAndDenseAggregatesMix(t *testing.T) {
	const n, f = 60, 100
	x := mat.New(n, f)
	var src, dst []int32
	for i := range n {
		x.Set(i, i, 1)
		if i < n/2 {
			for j := range i { // half of the nodes are a clique
				src, dst = append(src, int32(i)), append(dst, int32(j))
			}
		} else if i > n/2 {
			src, dst = append(src, int32(i)), append(dst, int32(i-1))
		}
	}
	src, dst = append(src, 0), append(dst, n/2)
	g := toy{nodes: n}.graph(t)
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		t.Fatal(err)
	}
	g.Adj, g.X = adj, graph.Features{Sparse: sparseOf(x)}
	c := unmoved(configOf(t, g, Design{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 1,
		Hidden: 1, Hops: 3}))
	c.Optimizer = sgd
	want := mustTrain(t, c, cut(t, g, "contiguous", 1), nil).result[0]
	for _, parts := range []int{2, 3} {
		shards := cut(t, g, "contiguous", parts)
		got := mustTrain(t, c, shards, nil)
		sameCurve(t, fmt.Sprintf("%d parts", parts), want.Curve(), got.result[0].Curve(), 1e-5)
		checkBytes(t, c, g, shards)
	}
}

// TestOnePeerSendsNothing holds a run of one peer to silence.
func TestOnePeerSendsNothing(t *testing.T) {
	for _, p := range everyPlan() {
		g := toy{sparse: true}.graph(t)
		if r := mustTrain(t, configOf(t, g, p), cut(t, g, "random", 1), nil); r.bytes != (comm.Counts{}) {
			t.Errorf("%s: %+v", p.name(), r.bytes)
		}
	}
}

// TestOneWayRows holds raw rows to graphs in which a peer sends many rows and receives none.
func TestOneWayRows(t *testing.T) {
	g := toy{sparse: true}.graph(t)
	var src, dst []int32
	for i := range int32(45) {
		src, dst = append(src, i, i), append(dst, 45+i, 45+(i+7)%45)
	}
	var err error
	if g.Adj, err = graph.FromEdges(90, src, dst, nil, graph.Build{Directed: true}); err != nil {
		t.Fatal(err)
	}
	c := unmoved(configOf(t, g, Design{Model: "sage", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 6,
		Hops: 2}))
	shards := cut(t, g, "contiguous", 2)
	if shards[0].Halo() != 0 || shards[1].Halo() != 45 {
		t.Fatalf("%d and %d halo rows", shards[0].Halo(), shards[1].Halo())
	}
	checkBytes(t, c, g, shards)
}
