package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/optim"
	"github.com/heddle-gnn/heddle/retexo"
)

// experiment is one row of a table.
type experiment struct {
	Name string
	Data string
	Mode string // retexo, or standalone: all layers jointly on one machine
	retexo.Plan
	Peers    int
	Policy   string
	Metric   string
	Rounds   int
	Local    int
	Patience int
	Every    int
	Solver   string
	LR       float64
	Decay    float64
	Lambdas  string
	Passes   int
	Norm     bool // standalone: LayerNorm after hidden layers
	Balanced bool
}

func (e *experiment) flags(f *flag.FlagSet) {
	f.StringVar(&e.Data, "data", "cora", "data set")
	f.StringVar(&e.Mode, "mode", "retexo", "retexo or standalone")
	f.StringVar(&e.Model, "model", "gcn", "gcn, sage, sage-pool, gat or gin")
	f.StringVar(&e.Encoder, "encoder", "raw", "raw, pca:K or mlp")
	f.StringVar(&e.Carry, "carry", "hidden", "hidden or scores")
	f.IntVar(&e.Layers, "layers", 2, "graph layers")
	f.IntVar(&e.Hidden, "hidden", 256, "hidden width")
	f.IntVar(&e.Hops, "hops", 1, "aggregations before a layer")
	f.IntVar(&e.Heads, "heads", 8, "attention heads")
	f.Func("dropout", "of a layer's input", float(&e.Dropout))
	f.Func("attention-dropout", "of attention", float(&e.AttentionDropout))
	f.BoolVar(&e.UnitSum, "unit-sum", false, "divide a node's features by their sum")
	f.BoolVar(&e.Residual, "residual", false, "add a layer's input to its output")
	f.IntVar(&e.Peers, "peers", 4, "peers")
	f.StringVar(&e.Policy, "policy", "random", "random, contiguous or by-column")
	f.StringVar(&e.Metric, "metric", "accuracy", "accuracy, auc, …")
	f.IntVar(&e.Rounds, "rounds", 200, "rounds of a stage, or epochs")
	f.IntVar(&e.Local, "local", 1, "local steps")
	f.IntVar(&e.Patience, "patience", 0, "rounds without improvement; 0: all rounds")
	f.IntVar(&e.Every, "every", 1, "rounds between looks at the validation nodes")
	f.StringVar(&e.Solver, "solver", "adam", "adam, adamw, sgd or ridge")
	f.Float64Var(&e.LR, "lr", 0.003, "learning rate")
	f.Float64Var(&e.Decay, "decay", 5e-4, "weight decay")
	f.StringVar(&e.Lambdas, "lambdas", "", "ridge penalties, by commas")
	f.IntVar(&e.Passes, "passes", 1, "encoder pca: passes")
	f.BoolVar(&e.Norm, "norm", false, "standalone: LayerNorm after hidden layers")
	f.BoolVar(&e.Balanced, "balanced", false, "weigh classes alike")
}

func float(x *float32) func(string) error {
	return func(s string) error {
		v, err := strconv.ParseFloat(s, 32)
		*x = float32(v)
		return err
	}
}

// outcome is one run.
type outcome struct {
	val, test []float64 // of each stage
	bytes     comm.Counts
	seconds   float64
}

// summary is an experiment's runs.
type summary struct {
	experiment
	runs []outcome
}

// final returns mean and deviation of the last stage's metric, and the mean of its validation.
func (s summary) final() (mean, dev, val float64) {
	var tests []float64
	for _, r := range s.runs {
		tests = append(tests, r.test[len(r.test)-1])
		val += r.val[len(r.val)-1]
	}
	mean, dev = spread(tests)
	return mean, dev, val / float64(len(s.runs))
}

// stages returns the mean metric of each stage.
func (s summary) stages() []float64 {
	m := make([]float64, len(s.runs[0].test))
	for _, r := range s.runs {
		for k, v := range r.test {
			m[k] += v / float64(len(s.runs))
		}
	}
	return m
}

func (s summary) bytes() (halo, reduce, control float64) {
	n := float64(len(s.runs))
	for _, r := range s.runs {
		halo += float64(r.bytes.Halo) / n
		reduce += float64(r.bytes.Reduce) / n
		control += float64(r.bytes.Control) / n
	}
	return halo, reduce, control
}

func (s summary) seconds() (mean float64) {
	for _, r := range s.runs {
		mean += r.seconds / float64(len(s.runs))
	}
	return mean
}

func (s summary) String() string {
	mean, dev, val := s.final()
	halo, reduce, control := s.bytes()
	var stages []string
	for _, v := range s.stages() {
		stages = append(stages, fmt.Sprintf("%.1f", 100*v))
	}
	return fmt.Sprintf("%s %s %s %s h%d l%d hops%d %s lr%g wd%g do%g: test %.2f±%.2f val %.2f stages %s halo %.2f reduce %.2f control %.2f MB %.1fs n=%d",
		s.Data, s.Mode, s.Model, s.Encoder, s.Hidden, s.Layers, s.Hops, s.Solver, s.LR, s.Decay, s.Dropout, 100*mean, 100*dev, 100*val,
		strings.Join(stages, "/"), halo/1e6, reduce/1e6, control/1e6, s.seconds(), len(s.runs))
}

func spread(x []float64) (mean, dev float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		dev += (v - mean) * (v - mean)
	}
	if len(x) > 1 {
		dev = math.Sqrt(dev / float64(len(x)-1))
	}
	return mean, dev
}

// run runs the experiment n times.
func (e experiment) run(ctx context.Context, dir string, n int) (summary, error) {
	s := summary{experiment: e, runs: make([]outcome, n)}
	splits, err := countSplits(dir)
	if err != nil {
		return s, err
	}
	errs := make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	graphs := make([]*graph.Graph, min(splits, n))
	for i := range graphs {
		if graphs[i], err = dataset.Read(dir, i); err != nil {
			return s, err
		}
		if graphs[i].X.Cols() == 0 {
			graphs[i].X = graph.Identity(graphs[i].N())
		}
	}
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := time.Now()
			g := graphs[i%len(graphs)]
			if e.Mode == "standalone" {
				s.runs[i], errs[i] = e.standalone(ctx, g, uint64(i+1))
			} else {
				s.runs[i], errs[i] = e.layerwise(ctx, g, uint64(i+1))
			}
			s.runs[i].seconds = time.Since(start).Seconds()
		})
	}
	wg.Wait()
	return s, errors.Join(errs...)
}

func (e experiment) spec(g *graph.Graph) (nn.Spec, error) {
	task := "single"
	if g.Labels.Multi() {
		task = "multi"
	}
	return e.Spec(task, g.X.Cols(), g.Labels.Classes)
}

func (e experiment) standalone(ctx context.Context, g *graph.Graph, seed uint64) (outcome, error) {
	spec, err := e.spec(g)
	if err != nil {
		return outcome{}, err
	}
	for k := range spec.Layers {
		l := &spec.Layers[k]
		l.Norm = e.Norm && k < len(spec.Layers)-1
		if e.Model == "gat" && k < len(spec.Layers)-1 {
			l.Act = "elu"
		}
		if e.Model == "gat" && k == len(spec.Layers)-1 && e.Hidden <= 64 {
			l.Heads = 1
		}
	}
	c := fullbatch.Defaults(spec)
	c.Seed, c.Epochs, c.Patience, c.EvalEvery, c.Metric, c.Balanced = seed, e.Rounds, e.Patience, e.Every, eval.Metric(e.Metric), e.Balanced
	c.Optimizer = optim.Config{Name: e.Solver, LR: float32(e.LR), Decay: float32(e.Decay)}
	m, err := nn.New(spec, rng.New(seed).FoldString("init"))
	if err != nil {
		return outcome{}, err
	}
	t, err := fullbatch.New(c, partition.Whole(g), m)
	if err != nil {
		return outcome{}, err
	}
	group := comm.NewGroup(sim.New(1, sim.Config{}).Transport(0), 0, 1)
	defer group.Close()
	if err := t.Run(ctx, group, group); err != nil {
		return outcome{}, err
	}
	r := t.Result()
	return outcome{val: []float64{r.Val}, test: []float64{r.Test}, bytes: r.Bytes}, nil
}

func (e experiment) layerwise(ctx context.Context, g *graph.Graph, seed uint64) (outcome, error) {
	spec, err := e.spec(g)
	if err != nil {
		return outcome{}, err
	}
	c := retexo.Defaults(spec)
	c.Exchange = "halo" // whose bytes the formulas give
	c.Seed, c.Rounds, c.LocalSteps, c.Patience, c.EvalEvery = seed, e.Rounds, e.Local, e.Patience, e.Every
	c.Metric, c.Solver, c.Balanced, c.PCAPasses = eval.Metric(e.Metric), e.Solver, e.Balanced, e.Passes
	c.Optimizer = optim.Config{Name: e.Solver, LR: float32(e.LR), Decay: float32(e.Decay)}
	if e.Lambdas != "" {
		c.Lambdas = nil
		for _, s := range strings.Split(e.Lambdas, ",") {
			x, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return outcome{}, err
			}
			c.Lambdas = append(c.Lambdas, x)
		}
	}
	policy, err := partition.ParsePolicy(e.Policy)
	if err != nil {
		return outcome{}, err
	}
	shards, err := partition.Partition(g, policy, e.Peers, seed)
	if err != nil {
		return outcome{}, err
	}
	return together(ctx, c, shards)
}

// together runs one peer a shard, all in this process.
func together(ctx context.Context, c retexo.Config, shards []*partition.Shard) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	network := sim.New(len(shards), sim.Config{})
	errs := make([]error, len(shards))
	counts := make([]comm.Counts, len(shards))
	var first retexo.Result
	var wg sync.WaitGroup
	for rank, s := range shards {
		m, err := nn.New(c.Spec, rng.New(c.Seed).FoldString("init"))
		if err != nil {
			return outcome{}, err
		}
		t, err := retexo.New(c, s, m)
		if err != nil {
			return outcome{}, err
		}
		wg.Go(func() {
			g := comm.NewGroup(network.Transport(rank), rank, len(shards))
			defer g.Close()
			if errs[rank] = t.Run(ctx, g, g); errs[rank] != nil {
				cancel()
			}
			counts[rank] = g.Bytes()
			if rank == 0 {
				first = t.Result()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return outcome{}, err
	}
	var o outcome
	for _, s := range first.Stages {
		o.val, o.test = append(o.val, s.Val), append(o.test, s.Test)
	}
	for _, b := range counts {
		o.bytes.Halo += b.Halo
		o.bytes.Reduce += b.Reduce
		o.bytes.Control += b.Control
	}
	return o, nil
}

// countSplits returns how many splits the data set in dir has, at most 10.
func countSplits(dir string) (int, error) {
	if _, err := dataset.Read(dir, 0); err != nil {
		return 0, err
	}
	for k := 1; k < 10; k++ {
		if _, err := dataset.Read(dir, k); err != nil {
			return k, nil
		}
	}
	return 10, nil
}
