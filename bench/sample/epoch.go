package sample

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/clock"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/graph/sample"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

const (
	epochHidden  = 256
	epochClasses = 47
)

// epochs measures training epochs of GraphSAGE: sampling, features, forward, backward and the optimiser. What is
// sampled is the same for any model, and is counted by the sampler.
func (o options) epochs(ctx context.Context, p *page.Page, adj *graph.CSR) error {
	plan := o.plan(o.turns)
	shards, err := heddle.Split(o.labelled(adj), plan)
	if err != nil {
		return err
	}
	for threads := 1; threads <= min(2, runtime.NumCPU()); threads++ {
		was := runtime.GOMAXPROCS(threads)
		best, err := epoch(ctx, plan, shards)
		runtime.GOMAXPROCS(was)
		if err != nil {
			return err
		}
		n := float64(o.batches)
		drawn := o.measured(adj, sample.Config{Kind: plan.MiniBatch.Sampler, Fanouts: o.hops}, 1)
		p.Row(o.graph, "Heddle, mini-batch", threads, 1000*n/best.Seconds(), drawn.edges/best.Seconds()/1e6,
			drawn.edges/n, drawn.inputs/n)
	}
	return nil
}

// plan returns the plan of a run that trains `epochs` epochs after the first.
func (o options) plan(epochs int) heddle.Plan {
	p := heddle.Defaults(plan.MiniBatch, "sage")
	p.Transport, p.Peers, p.Gradient().EvalEvery, p.Gradient().Layers, p.Gradient().Hidden = "memory", 1, 1<<30,
		len(o.hops), epochHidden
	p.MiniBatch.Fanouts, p.MiniBatch.BatchSize = o.hops, 1000
	p.Gradient().Rounds, p.Gradient().Dropout, p.Joint().Norm = epochs+1, 0, "none"
	return p
}

// formats measures epochs on one thread with products of float32 and of bfloat16 in turn.
func (o options) formats(ctx context.Context, p *page.Page, adj *graph.CSR) error {
	plan := o.plan(1)
	shards, err := heddle.Split(o.labelled(adj), plan)
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var took [2][]float64
	var gains []float64
	for turn := range o.turns {
		for k, format := range []string{"float32", "bf16"} {
			plan.Rows = format
			one, err := epoch(ctx, plan, shards)
			if err != nil {
				return err
			}
			took[k] = append(took[k], one.Seconds())
		}
		gains = append(gains, took[0][turn]/took[1][turn])
	}
	p.Row(o.columns, median(took[0]), median(took[1]), median(gains))
	return nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// labelled returns a graph with random features and classes, whose seeds of one turn train.
func (o options) labelled(adj *graph.CSR) *graph.Graph {
	n, key := adj.NumDst, rng.New(1).FoldString("bench/sample/features")
	g := &graph.Graph{Name: "drawn", Adj: *adj, Split: make([]graph.Split, n)}
	g.X.Dense = mat.New(n, o.columns)
	for k := range g.X.Dense.Data {
		g.X.Dense.Data[k] = float32(key.Float64(uint64(k)))
	}
	g.Labels = graph.Labels{Classes: epochClasses, Class: make([]int32, n)}
	for i := range n {
		g.Labels.Class[i] = int32(key.FoldString("class").Uint64(uint64(i)) % epochClasses)
	}
	for _, i := range o.order[:min(n, 1000*o.batches)] {
		g.Split[i] = graph.Train
	}
	return g
}

// epoch returns the processor time of the fastest epoch after the first.
func epoch(ctx context.Context, p heddle.Plan, shards []*shard.Shard) (best time.Duration, err error) {
	err = clock.Epochs(ctx, p, shards, func(e heddle.Event, took measure.Cost) {
		if e.Round > 0 && (best == 0 || took.Processor < best) {
			best = took.Processor
		}
	})
	return best, err
}
