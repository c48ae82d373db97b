package retexo

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// toy describes a small random graph whose neighbours and features both tell the class: what the tests of protocol and
// arithmetic train on. Zero fields are those of defaults.
type toy struct {
	seed                        uint64
	nodes, features, classes    int
	degree                      int  // edges drawn a node
	sparse, values              bool // sparse features, all of one value unless values
	multi, directed, hasWeights bool
}

func (o toy) graph(t testing.TB) *graph.Graph {
	t.Helper()
	o.nodes, o.features, o.classes, o.degree = either(o.nodes, 90), either(o.features, 12), either(o.classes, 3),
		either(o.degree, 3)
	key := rng.New(o.seed + 1).FoldString("toy")
	n, f, c := o.nodes, o.features, o.classes
	class := func(i int) int { return i % c }
	g := &graph.Graph{Name: "toy", Labels: graph.Labels{Classes: c}, Split: make([]graph.Split, n)}

	var src, dst []int32
	var weight []float32
	edges := key.FoldString("edges")
	for i := range n {
		for k := range o.degree {
			at := uint64(i*o.degree + k)
			j := int(edges.Uint64(at) % uint64(n))
			if edges.Fold(1).Float64(at) < 0.7 { // a friend of the same class
				j = j - class(j) + class(i)
			}
			if j < n && j != i {
				src, dst, weight = append(src, int32(i)), append(dst, int32(j)),
					append(weight, float32(0.5+edges.Fold(2).Float64(at)))
			}
		}
	}
	if !o.hasWeights {
		weight = nil
	}
	var err error
	if g.Adj, err = graph.FromEdges(n, src, dst, weight, graph.Build{Directed: o.directed}); err != nil {
		t.Fatal(err)
	}

	x, noise := mat.New(n, f), key.FoldString("features")
	for i := range n {
		for j := range f {
			at := uint64(i*f + j)
			switch {
			case o.sparse && noise.Float64(at) < 0.1+0.3*b2f(j%c == class(i)):
				x.Set(i, j, 1)
				if o.values {
					x.Set(i, j, float32(0.5+noise.Fold(1).Float64(at)))
				}
			case !o.sparse:
				x.Set(i, j, float32(noise.Normal(at)+b2f(j%c == class(i))))
			}
		}
	}
	g.X.Dense = x
	if o.sparse {
		g.X = graph.Features{Sparse: sparseOf(x)}
	}

	splits, bits := key.FoldString("splits"), key.FoldString("bits")
	for i := range n {
		g.Split[i] = []graph.Split{graph.Train, graph.Val, graph.Test,
			graph.None}[min(3, int(splits.Float64(uint64(i))*3.3))]
		if !o.multi {
			g.Labels.Class = append(g.Labels.Class, int32(class(i)))
			continue
		}
		for k := range c {
			g.Labels.Bits = append(g.Labels.Bits, uint8(b2f(k == class(i) || bits.Float64(uint64(i*c+k)) < 0.2)))
		}
	}
	if err := g.Valid(); err != nil {
		t.Fatal(err)
	}
	return g
}

func either(x, other int) int {
	if x == 0 {
		return other
	}
	return x
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sparseOf(d mat.Dense) *mat.Sparse {
	s := &mat.Sparse{Rows: d.Rows, Cols: d.Cols, RowPtr: make([]int64, d.Rows+1)}
	for i := range d.Rows {
		for j, v := range d.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.RowPtr[i+1] = int64(len(s.Col))
	}
	return s
}

// configOf is the config of p over g with little to do: ten rounds a stage of a fast optimiser, and rows of the halo as
// the paper has them.
func configOf(t testing.TB, g *graph.Graph, p Design) Config {
	t.Helper()
	task := "single"
	if g.Labels.Multi() {
		task = "multi"
	}
	spec, err := p.Spec(task, g.X.Cols(), g.Labels.Classes)
	if err != nil {
		t.Fatal(err)
	}
	c := Defaults(spec)
	c.Rounds, c.Optimizer.LR, c.Exchange = 10, 0.02, "halo"
	return c
}

// unmoved is c of a run whose logits stay as they were trained. About as many nodes of each class of a toy train, so
// that they would be moved to the shares of the classes, but where the user says what a class counts.
func unmoved(c Config) Config {
	c.ClassWeights = slices.Repeat([]float32{1}, c.Spec.Classes)
	return c
}

// mustTrain is runAll of a run that must succeed and leave the same bits on all peers.
func mustTrain(t testing.TB, c Config, shards []*shard.Shard, setup func(rank int, tr *Trainer)) run {
	t.Helper()
	r, err := runAll(context.Background(), c, shards, setup)
	if err != nil {
		t.Fatal(err)
	}
	if tt, ok := t.(*testing.T); ok {
		sameModels(tt, r.models)
	}
	return r
}

// trainOver runs c over the shards and the transports, one goroutine a peer, and returns the error of each. A peer
// that fails closes its group, as a program that ends does. setup may be nil.
func trainOver(ctx context.Context, c func(rank int) Config, shards []*shard.Shard, transports []comm.Transport,
	setup func(rank int, t *Trainer)) (run, []error) {
	return trainThrough(ctx, c, shards, transports, func(_ int, g *comm.Group) comm.Reducer { return g }, setup)
}

// trainThrough is trainOver with reducers of the caller's own.
func trainThrough(ctx context.Context, c func(rank int) Config, shards []*shard.Shard, transports []comm.Transport,
	through func(rank int, g *comm.Group) comm.Reducer, setup func(rank int, t *Trainer)) (run, []error) {
	k := len(shards)
	out := run{models: make([]*nn.Model, k), result: make([]train.Result, k)}
	errs, trainers, groups := make([]error, k), make([]*Trainer, k), make([]*comm.Group, k)
	for rank, s := range shards {
		c := c(rank)
		m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
		if err != nil {
			return out, []error{err}
		}
		if trainers[rank], err = New(c, s, m); err != nil {
			return out, []error{err}
		}
		if setup != nil {
			setup(rank, trainers[rank])
		}
		out.models[rank], groups[rank] = m, comm.NewGroup(transports[rank], rank, k)
	}
	done := make(chan int)
	for rank, tr := range trainers {
		g := groups[rank]
		go func() {
			if errs[rank] = g.Refuse(ctx, tr.Run(ctx, g, through(rank, g))); errs[rank] != nil {
				g.Close()
			} else {
				out.models[rank], errs[rank] = tr.Trained()
			}
			out.result[rank] = tr.Result()
			done <- rank
		}()
	}
	for range shards {
		<-done
	}
	for _, g := range groups {
		b := g.Bytes()
		out.bytes.Halo += b.Halo
		out.bytes.Reduce += b.Reduce
		out.bytes.Control += b.Control
		g.Close()
	}
	return out, errs
}

// runAll runs c over the shards in memory. setup may be nil.
func runAll(ctx context.Context, c Config, shards []*shard.Shard, setup func(rank int, t *Trainer)) (run, error) {
	r, errs := trainOver(ctx, func(int) Config { return c }, shards,
		netsim.New(len(shards), netsim.Config{}).Transports(), setup)
	return r, errors.Join(errs...)
}

// spy counts the frames that one member sends, by door, and shows each to see.
type spy struct {
	comm.Transport
	frames [3]atomic.Int64
	see    func(to int, door comm.Door, payload []byte) // may be nil
}

func (s *spy) Send(ctx context.Context, to int, head, body []byte) error {
	s.frames[head[2]].Add(1) // the door: comm, "every frame begins with the same header"
	if s.see != nil {
		s.see(to, comm.Door(head[2]), body)
	}
	return s.Transport.Send(ctx, to, head, body)
}

func spies(size int) (all []*spy, transports []comm.Transport) {
	for _, t := range netsim.New(size, netsim.Config{}).Transports() {
		s := &spy{Transport: t}
		all, transports = append(all, s), append(transports, s)
	}
	return all, transports
}

// everyPlan is one plan of every kind of stage that there is, small.
func everyPlan() []Design {
	return []Design{
		{Model: "gcn", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3},
		{Model: "gcn", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 2,
			Dropout: 0.3},
		{Model: "sage", Encoder: "raw", LayerOutput: "logits", Layers: 2, Hidden: 8, Hops: 2, Dropout: 0.3},
		{Model: "sage", Encoder: "mlp", LayerOutput: "logits", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3},
		{Model: "sage-pool", Encoder: "raw", LayerOutput: "hidden", Layers: 2, Hidden: 8, Hops: 1, Dropout: 0.3,
			Residual: true},
		{Model: "gat", Encoder: "mlp", LayerOutput: "hidden", Layers: 2, Hidden: 8, Heads: 2, Hops: 1, Dropout: 0.3,
			AttentionDropout: 0.3},
		{Model: "gatv2", Encoder: "pca", Components: 4, LayerOutput: "hidden", Layers: 2, Hidden: 8, Heads: 2, Hops: 1,
			Dropout: 0.3, AttentionDropout: 0.3},
		{Model: "gin", Encoder: "pca", Components: 4, LayerOutput: "logits", Layers: 1, Hidden: 8, Hops: 1},
	}
}

func (p Design) name() string { return p.Model + "-" + p.Encoder + "-" + p.LayerOutput }

// on has do called with the events of a kind, after whatever was to be called before.
func on(tr *Trainer, kind train.EventKind, do func(train.Event)) {
	before := tr.OnEvent
	tr.OnEvent = func(e train.Event) {
		if before != nil {
			before(e)
		}
		if e.Kind == kind {
			do(e)
		}
	}
}

func trainersOf(t *testing.T, c Config, shards []*shard.Shard) []*Trainer {
	t.Helper()
	all := make([]*Trainer, len(shards))
	for r, s := range shards {
		m, err := c.NewModel()
		if err != nil {
			t.Fatal(err)
		}
		if all[r], err = New(c, s, m); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
