package classmeans

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/checkpoint"
)

func TestMain(m *testing.M) { testenv.MainWithoutLeaks(m) }

// communities returns a graph of three groups whose edges and features tell the group, one node in
// labelled of which is in training, and as many in validation.
func communities(n, labelled int) *graph.Graph {
	key, x := rng.New(5), mat.New(n, 10)
	var src, dst []int32
	for k := range 4 * n {
		i, j := k/4, int(key.Fold(1).Uint64(uint64(k))%uint64(n/3))*3
		if j += i % 3; key.Fold(2).Float64(uint64(k)) < 0.2 {
			j = (j + 1) % n
		}
		if i != j {
			src, dst = append(src, int32(i)), append(dst, int32(j))
		}
	}
	adj, err := graph.FromEdges(n, src, dst, nil, graph.Build{})
	if err != nil {
		panic(err)
	}
	g := &graph.Graph{Name: "communities", Adj: adj, Split: make([]graph.Split, n),
		Labels: graph.Labels{Classes: 3, Class: make([]int32, n)}}
	for i := range n {
		class := i % 3
		g.Labels.Class[i] = int32(class)
		for j := range x.Cols {
			x.Set(i, j, float32(math.Abs(key.Normal(uint64(i*x.Cols+j)))))
		}
		x.Set(i, class, x.At(i, class)+1)
		switch i / 3 % labelled {
		case 0:
			g.Split[i] = graph.Train
		case 1:
			g.Split[i] = graph.Val
		default:
			g.Split[i] = graph.Test
		}
	}
	g.X = graph.Features{Dense: x}
	return g
}

func several(g *graph.Graph) *graph.Graph {
	n, c := g.N(), g.Labels.Classes
	bits := make([]uint8, n*c)
	for i, k := range g.Labels.Class {
		bits[i*c+int(k)] = 1
		if i%5 == 0 {
			bits[i*c+(int(k)+1)%c] = 1
		}
	}
	g.Labels = graph.Labels{Classes: c, Bits: bits}
	return g
}

// plain returns a configuration in which nothing is rounded.
func plain(g *graph.Graph) Config {
	c := Config{Seed: 3, Task: "single", Features: g.X.Cols(), Classes: g.Labels.Classes, Metric: "accuracy",
		RowNorm: "l2", Target: Auto, LeaveOut: Auto, Hops: 2, Random: -1, Shrink: 3, MinClass: 5,
		Lambdas: []float64{1e-3, 1e-2, 0.1, 1}, Sums: "float32", Exchange: Auto}
	if g.Labels.Multi() {
		c.Task, c.Metric = "multi", "micro-f1"
	}
	labelled := 0
	for _, i := range g.InSplit(graph.Train) {
		if g.Labels.Has(int(i)) {
			labelled++
		}
	}
	if c.Target = "labels"; c.Residual(float64(labelled), float64(g.N())) ||
		(Config{Task: c.Task, Target: Auto}).Residual(float64(labelled), float64(g.N())) {
		c.Target = "residual"
	}
	return c
}

// narrowed is plain as the preset has it.
func narrowed(g *graph.Graph) Config {
	c := plain(g)
	c.Rows, c.Sums = comm.Coding{Values: "int8", Columns: true}, Auto
	return c
}

func cut(t testing.TB, g *graph.Graph, parts int) []*shard.Shard {
	t.Helper()
	if parts == 1 {
		return []*shard.Shard{shard.Whole(g)}
	}
	policy, err := partition.ParsePolicy("random")
	if err != nil {
		t.Fatal(err)
	}
	shards, err := partition.Partition(g, policy, parts, 1)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// run is what the peers of a run ended with.
type run struct {
	trainers []*Trainer
	groups   []*comm.Group
	errs     []error
}

// options of a run, by rank; nil: nothing.
type options struct {
	setup   func(rank int, t *Trainer)
	reducer func(rank int, g *comm.Group) comm.Reducer
}

func start(ctx context.Context, c Config, shards []*shard.Shard, o options) run {
	size := len(shards)
	network := netsim.New(size, netsim.Config{})
	r := run{make([]*Trainer, size), make([]*comm.Group, size), make([]error, size)}
	done := make(chan bool)
	for k, s := range shards {
		go func() {
			defer func() { done <- true }()
			g := comm.NewGroup(network.Transport(k), k, size)
			r.groups[k] = g
			t, err := New(c, s)
			if err == nil {
				r.trainers[k] = t
				if o.setup != nil {
					o.setup(k, t)
				}
				var through comm.Reducer = g
				if o.reducer != nil {
					through = o.reducer(k, g)
				}
				err = g.Refuse(ctx, t.Run(ctx, g, through))
			}
			if r.errs[k] = err; err != nil {
				g.Close()
			}
		}()
	}
	for range shards {
		<-done
	}
	return r
}

func mustRun(t testing.TB, c Config, shards []*shard.Shard, o options) run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := start(ctx, c, shards, o)
	if err := errors.Join(r.errs...); err != nil {
		t.Fatal(err)
	}
	return r
}

// flat returns all parameters of a trainer's model.
func (r run) flat(rank int) (x []float32) {
	for _, p := range r.trainers[rank].Model().Params() {
		x = append(x, p.Value.Clone().Data...)
	}
	return x
}

func (r run) sent() (sum comm.Counts) {
	for _, g := range r.groups {
		sum = sum.Plus(g.Bytes())
	}
	return sum
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// variants are the ways in which rounds differ: soft labels, residuals, several classes a node.
var variants = map[string]func() (*graph.Graph, Config){
	"labels": func() (*graph.Graph, Config) { g := communities(300, 12); return g, plain(g) },
	"coarse": func() (*graph.Graph, Config) {
		g := communities(300, 12)
		c := plain(g)
		c.Coarse = true
		return g, c
	},
	"residual": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		c := plain(g)
		c.Random = 20
		return g, c
	},
	"auc": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		c := plain(g)
		c.Random, c.Metric = 20, "auc"
		return g, c
	},
	"residual, own part out": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		c := plain(g)
		c.Random, c.LeaveOut = 0, "true"
		return g, c
	},
	"all hops": func() (*graph.Graph, Config) {
		g := communities(300, 12)
		c := plain(g)
		return g, c
	},
	"no hops": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		c := plain(g)
		c.Random, c.Hops = 20, 0
		return g, c
	},
	"no features": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		g.X = graph.Identity(g.N())
		c := plain(g)
		c.Random, c.Adjacent = 20, g.N()
		return g, c
	},
	"no features, hashed": func() (*graph.Graph, Config) {
		g := communities(300, 3)
		g.X = graph.Identity(g.N())
		c := plain(g)
		c.Adjacent, c.Target, c.Random = 200, "labels", 0
		return g, c
	},
	"several classes": func() (*graph.Graph, Config) {
		g := several(communities(300, 3))
		c := plain(g)
		c.Random = 0
		return g, c
	},
	"directed, weighted": func() (*graph.Graph, Config) {
		g := communities(300, 12)
		var src, dst []int32
		var weight []float32
		for i := range g.N() {
			col, _ := g.Adj.Row(i)
			for k, j := range col {
				if (i+k)%3 > 0 {
					src, dst, weight = append(src, j), append(dst, int32(i)), append(weight, 0.5+float32(k%4))
				}
			}
		}
		adj, err := graph.FromEdges(g.N(), src, dst, weight, graph.Build{Directed: true})
		if err != nil {
			panic(err)
		}
		g.Adj = adj
		return g, plain(g)
	},
}

// TestSameForAnyPeers: where nothing is rounded, one peer, two and seven find the same model, but for
// the order of sums, and all of them the same bits.
func TestSameForAnyPeers(t *testing.T) {
	for name, of := range variants {
		t.Run(name, func(t *testing.T) {
			g, c := of()
			one := mustRun(t, c, cut(t, g, 1), options{})
			if v := one.trainers[0].Result().Final(); v.Test < 0.7 {
				t.Errorf("test metric %.3f: nothing was learned", v.Test)
			}
			for _, test := range []struct {
				parts    int
				exchange string
			}{{2, Auto}, {7, Auto}, {7, "halo"}} {
				parts := test.parts
				c.Exchange = test.exchange
				r := mustRun(t, c, cut(t, g, parts), options{})
				for k := range r.trainers {
					if !sameBits(r.flat(k), r.flat(0)) {
						t.Errorf("%d peers: peer %d has other parameters than peer 0", parts, k)
					}
				}
				want, got := one.trainers[0].Result().Final(), r.trainers[0].Result().Final()
				if len(want.Curve) != len(got.Curve) || want.BestRound != got.BestRound ||
					math.Abs(want.Val-got.Val) > 1e-9 || math.Abs(want.TestLoss-got.TestLoss) > 1e-3 {
					t.Errorf("%d peers: %+v, of one peer %+v", parts, got, want)
				}
			}
		})
	}
}

// TestInferenceIsTheRun: the model gives the nodes of the graph that it was trained on the metric that
// the run reported, training nodes' own parts left out alike.
func TestInferenceIsTheRun(t *testing.T) {
	for name, of := range variants {
		t.Run(name, func(t *testing.T) {
			g, c := of()
			r := mustRun(t, c, cut(t, g, 1), options{})
			logits, err := infer.Graph(r.trainers[0].Model(), g)
			if err != nil {
				t.Fatal(err)
			}
			want := r.trainers[0].Logits()
			for i, v := range logits.Data {
				if math.Abs(float64(v-want.Data[i])) > 2e-4 {
					t.Fatalf("logit %d is %g, in the run %g", i, v, want.Data[i])
				}
			}
		})
	}
}

// TestNoHops: without hops no row travels, whatever rounds learn from.
func TestNoHops(t *testing.T) {
	for _, target := range []string{"labels", "residual"} {
		g := communities(300, 3)
		c := plain(g)
		c.Hops, c.Target = 0, target
		r := mustRun(t, c, cut(t, g, 4), options{})
		if got := r.sent(); got.Halo != 0 || got.Reduce == 0 {
			t.Errorf("%s: %+v, want sums only", target, got)
		}
	}
}

// TestBytes holds what travels to the formula of docs/reference/wire.md.
func TestBytes(t *testing.T) {
	const k, f, classes, hops = 4, 10, 3, 5
	g := communities(300, 12)
	c := narrowed(g)
	c.ClassRounds, c.Hops, c.LastHop, c.Random = 1, hops, true, 0
	shards := cut(t, g, k)
	sent := map[string]int64{}
	for _, exchange := range []string{"halo", Auto} {
		c.Exchange = exchange
		halo, covers := 0, 0
		for _, s := range shards {
			for q := range s.Parts {
				if q == s.Rank {
					continue
				}
				rows := s.HaloPtr[q+1] - s.HaloPtr[q]
				cover := shard.NewCover(s.From(&s.Adj, q))
				fewer, asked := rows-cover.Len(), len(cover.Append(nil))
				if exchange == Auto && fewer*hops*classes > asked {
					rows, halo = cover.Len(), halo+asked
					covers++
				}
				halo += hops * (1 + 4*classes + classes*rows) // layout, scales, values
			}
		}
		if (covers > 0) != (exchange != "halo") {
			t.Errorf("exchange %s: %d covers", exchange, covers)
		}
		r := mustRun(t, c, shards, options{})
		if sent[exchange] = r.sent().Halo; sent[exchange] != int64(halo) {
			t.Errorf("exchange %s: rows take %d bytes, want %d", exchange, sent[exchange], halo)
		}
	}
	if sent[Auto] >= sent["halo"] {
		t.Errorf("%v bytes were sent, want fewer of sums", sent)
	}
	r := mustRun(t, c, shards, options{})
	predicted, moved, sites := c.ShareCounts()
	sums := 2*(2*classes+3) + // label counts
		2*2*f + 4*2 + 8 + // statistics of 16 bits, two grids, nodes
		f*classes + 4*classes + 8*classes + // class means of 8 bits, grids, counts
		4*2*classes + // deviations
		4*(1+classes)*(2+classes)/2 + 4*(1+classes)*classes + // normal equations
		2*(len(c.Lambdas)+1) + // right answers of each candidate, validation nodes
		2*predicted + 2*moved + // predicted classes, right nodes of each move
		2*sites + // right nodes of each move to the shares of sites
		2*2*(4*5+1+2+3*classes) // metrics of the finished model, a loss in four numbers of five digits
	if got := r.sent().Reduce; got != int64(2*(k-1)*sums) {
		t.Errorf("sums take %d bytes, want %d", got, 2*(k-1)*sums)
	}
}

// TestLeaveOwnIsExact holds the rows to maps of means that were computed without the node.
func TestLeaveOwnIsExact(t *testing.T) {
	g := communities(120, 6)
	c := plain(g)
	c.ClassRounds = 1
	r := mustRun(t, c, cut(t, g, 1), options{})
	tr := r.trainers[0]
	x, closed := tr.features().Dense, tr.Model().Closed
	z, p := mat.New(g.N(), 3), g.Labels.Rows(g.InSplit(graph.Train))
	for i := range g.N() {
		for k := range 3 {
			for j, v := range x.Row(i) {
				z.Set(i, k, z.At(i, k)+v*closed.Means[0].Value.At(j, k))
			}
		}
	}
	closed.LeaveOwn(0, tr.features(), z, p)
	for _, v := range g.InSplit(graph.Train)[:5] {
		k := g.Labels.Class[v]
		n, want := 0.0, 0.0
		mean := make([]float64, x.Cols)
		for _, i := range g.InSplit(graph.Train) {
			if i != v && g.Labels.Class[i] == k {
				n++
				for j, f := range x.Row(int(i)) {
					mean[j] += float64(f)
				}
			}
		}
		for j, f := range x.Row(int(v)) {
			want += float64(f) * float64(closed.Inverse.Value.Data[j]) *
				(mean[j]/n - float64(closed.Centre.Value.Data[j]))
		}
		want *= float64(closed.Counts[0].Value.At(1, int(k)))
		if got := float64(z.At(int(v), int(k))); math.Abs(got-want) > 1e-4 {
			t.Errorf("node %d: %g, by the means of the others %g", v, got, want)
		}
	}
}

// TestResume: a run that is stopped at the beginning of any round goes on to the same bits.
func TestResume(t *testing.T) {
	for _, test := range []struct {
		inductive bool
		metric    eval.Metric
	}{{false, "accuracy"}, {true, "auc"}} {
		inductive := test.inductive
		g := communities(300, 3)
		c := narrowed(g)
		// so many that sums are worth asking for
		c.Random, c.Inductive, c.Hops, c.Metric = 10, inductive, 6, test.metric
		shards := cut(t, g, 3)
		whole := mustRun(t, c, shards, options{})
		rounds := len(whole.trainers[0].Result().Final().Curve)
		if rounds < 2 {
			t.Fatalf("%d rounds leave nothing to resume", rounds)
		}
		for stop := 1; stop < rounds; stop++ {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			setup := func(rank int, tr *Trainer) {
				tr.Checkpoints = &checkpoint.Store{Dir: fmt.Sprintf("%s/%d", dir, rank)}
			}
			start(ctx, c, shards, options{setup: func(rank int, tr *Trainer) {
				setup(rank, tr)
				saved := 0
				tr.OnEvent = func(e train.Event) {
					if e.Kind == train.Saved {
						if saved++; saved == stop && rank == 0 {
							cancel()
						}
					}
				}
			}})
			cancel()
			again := mustRun(t, c, shards, options{setup: setup})
			if !sameBits(again.flat(1), whole.flat(1)) {
				t.Errorf("inductive %t, stopped after round %d: other parameters than in one go", inductive, stop)
			}
			a, b := again.trainers[0].Result().Final(), whole.trainers[0].Result().Final()
			if a.Test != b.Test || len(a.Curve) != len(b.Curve) {
				t.Errorf("inductive %t, stopped after round %d: %+v, in one go %+v", inductive, stop, a, b)
			}
			tr, err := New(c, shards[0])
			if err != nil {
				t.Fatal(err)
			}
			setup(0, tr)
			if done, err := tr.Resume(tr); !done || err != nil || tr.Model() == nil {
				t.Errorf("the final model is taken up: %t, %v", done, err)
			}
		}
	}
}

// TestInductiveSeesNoHeldOutNode: the model is the same whatever the features and edges of validation
// and test nodes are.
func TestInductiveSeesNoHeldOutNode(t *testing.T) {
	g := communities(300, 3)
	c := plain(g)
	c.Inductive, c.Random, c.ClassRounds = true, 10, 1 // after round 1 validation decides whether to go on
	c.Lambdas = []float64{0.1}                         // as it does about penalties
	c.LastHop = true
	want := mustRun(t, c, cut(t, g, 3), options{})
	for i, split := range g.Split {
		if split == graph.Val || split == graph.Test {
			for j := range g.X.Dense.Row(i) {
				g.X.Dense.Set(i, j, float32(j))
			}
		}
	}
	got := mustRun(t, c, cut(t, g, 3), options{})
	for r, p := range got.trainers[0].Model().Params() {
		q := want.trainers[0].Model().Params()[r]
		if strings.HasSuffix(p.Name, "weight") && !sameBits(p.Value.Data, q.Value.Data) &&
			strings.Contains(p.Name, "means") {
			t.Errorf("%s depends on held-out nodes", p.Name)
		}
	}
}

// apart changes the sums of the normal equations that one peer sees; much, so that they add up to the same.
type apart struct {
	comm.Reducer
	by float32
}

func (a apart) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	r, err := a.Reducer.Reduce(ctx, c)
	if c.ID.Kind == "normal equations" {
		off := c.Update[len(c.Update)-1] * (a.by - 1)
		c.Update[len(c.Update)-1] += off
		if a.by > 1.001 {
			c.Update[len(c.Update)-2] -= off
		}
	}
	return r, err
}

// TestSolutionsApart: peers whose processors round apart take the solution of most; one whose solution
// is another is named.
func TestSolutionsApart(t *testing.T) {
	g := communities(300, 12)
	for _, by := range []float32{1 + 1e-7, 1.01} {
		synced := 0
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		c := plain(g)
		c.LastHop, c.Random = true, 0
		r := start(ctx, c, cut(t, g, 3), options{
			reducer: func(rank int, g *comm.Group) comm.Reducer {
				if rank == 1 {
					return apart{g, by}
				}
				return g
			},
			setup: func(rank int, tr *Trainer) {
				tr.OnEvent = func(e train.Event) {
					if rank == 1 && e.Kind == train.Resync && e.Differed {
						synced++
					}
				}
			},
		})
		cancel()
		err := errors.Join(r.errs...)
		if by > 1.001 {
			if err == nil || !strings.Contains(err.Error(), "more than the 0.0001 that rounding explains") {
				t.Errorf("a false solution: %v", err)
			}
			continue
		}
		if err != nil || synced == 0 {
			t.Fatalf("%d syncs, %v", synced, err)
		}
		for k, p := range r.trainers[1].Model().Closed.Heads {
			if !sameBits(p.Weight.Value.Data, r.trainers[0].Model().Closed.Heads[k].Weight.Value.Data) {
				t.Error("the peers end with different weights")
			}
		}
	}
}
