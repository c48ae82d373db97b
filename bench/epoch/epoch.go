// Package epoch times whole epochs of end-to-end training against PyTorch Geometric.
package epoch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/baselines"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/train"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "epoch",
	Title: "Epochs of end-to-end training",
	Text: `One epoch of end-to-end training on one machine against PyTorch Geometric and DGL: the same layers,
widths, initial weights, dropout, Adam and split, features whose rows add up to 1. All train for
real and take turns, a few epochs each. Medians over turns in which the machine kept its speed, and
the test accuracies. Before that each way trains a few epochs without dropout, whose losses show that
all compute the same.`,
}

type bench struct {
	root, sets, models             string
	python, script, ways, profile  string
	threads, hidden, turns, epochs int
	share, dropout                 float64

	baseline *baselines.Process
	measured *measure.Turns
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var b bench
	root := graphs.Root(f)
	f.StringVar(&b.sets, "data", "amazon-computers,coauthor-cs", "data sets")
	f.StringVar(&b.models, "models", "gcn,sage,gat", "models")
	f.StringVar(&b.python, "python", "", "Python with torch_geometric; empty: no baseline")
	f.StringVar(&b.script, "script", "bench/baselines/epoch.py", "script of the baseline")
	f.StringVar(&b.ways, "ways", "sparse", "the baseline's ways: sparse, adj, edges, dgl, dgl-dense")
	f.IntVar(&b.threads, "threads", 1, "threads, ours and the baseline's")
	f.IntVar(&b.hidden, "hidden", 64, "width of the hidden rows, of all heads together")
	f.IntVar(&b.turns, "turns", 9, "turns of each")
	f.IntVar(&b.epochs, "epochs", 5, "epochs of a turn")
	f.Float64Var(&b.share, "share", 0, "share of labelled nodes that train; 0: the data set's split")
	f.Float64Var(&b.dropout, "dropout", 0.5, "dropout; of gat, also on attention")
	f.StringVar(&b.profile, "profile", "", "file for a CPU profile of ours")
	return func(ctx context.Context, p *page.Page) error {
		b.root = *root
		return b.run(ctx, p)
	}
}

func (b *bench) run(ctx context.Context, p *page.Page) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(b.threads)
	b.measured = measure.NewTurns(measure.Wall)
	if b.python != "" {
		var err error
		if b.baseline, err = baselines.Start(b.python, b.script, b.threads); err != nil {
			return err
		}
		defer b.baseline.Stop()
		p.Text("Baseline: %s.", b.baseline.About)
	}
	if b.profile != "" {
		f, err := os.Create(b.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	p.Text("%d threads, hidden width %d, dropout %g, %d turns of %d epochs; kernels %s.", b.threads, b.hidden,
		b.dropout, b.turns, b.epochs, kernels.Name())
	p.Table("data %s", "model %s", "way %s", "ms %.1f", "processor ms %.1f", "times slower %.2f",
		"by the processor %.2f", "test accuracy %.3f", "turns %d", "losses without dropout %s")
	for _, set := range strings.Split(b.sets, ",") {
		for _, model := range strings.Split(b.models, ",") {
			if err := b.compare(ctx, p, set, model); err != nil {
				return fmt.Errorf("%s, %s: %w", set, model, err)
			}
		}
	}
	return nil
}

const (
	warm  = 3 // epochs each way trains before its turns
	first = 3 // epochs whose losses are compared
)

// processor is the name under which a turn has the processor's time of a way.
func processor(way string) string { return way + ", processor" }

// way trains for a number of further epochs.
type way struct {
	name     string
	run      func(epochs int) (wall, busy float64, err error) // of an epoch, in seconds
	accuracy func() (float64, error)                          // ends it
	losses   string
}

// compare trains one model on one data set, by Heddle and in each of the baseline's ways.
func (b *bench) compare(ctx context.Context, p *page.Page, set, model string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	data := filepath.Join(b.root, set)
	g, err := dataset.Read(data, 0)
	if err != nil {
		return err
	}
	b.divide(g)
	own, err := b.own(ctx, g, b.plan(model))
	if err != nil {
		return err
	}
	ways := []*way{own}
	if b.baseline != nil {
		others, err := b.others(g, data, model)
		if err != nil {
			return err
		}
		ways = append(ways, others...)
	}
	if err := b.turn(measure.Turn{}, ways, warm); err != nil {
		return err
	}
	b.measured.Reset()
	for range b.turns {
		if err := b.turn(b.measured.Begin(), ways, b.epochs); err != nil {
			return err
		}
	}
	return b.print(p, set, model, ways)
}

// turn lets each way train for some epochs.
func (b *bench) turn(turn measure.Turn, ways []*way, epochs int) error {
	for _, w := range ways {
		b.measured.Settle(0)
		wall, busy, err := w.run(epochs)
		if err != nil {
			return err
		}
		turn[w.name], turn[processor(w.name)] = wall, busy
		b.measured.Settle(baselines.Rest)
	}
	return nil
}

func (b *bench) print(p *page.Page, set, model string, ways []*way) error {
	good := b.measured.Good(1)
	base := ways[0].name
	median := func(of func(t measure.Turn) float64) float64 { return measure.Median(good, of) }
	for _, w := range ways {
		accuracy, err := w.accuracy()
		if err != nil {
			return err
		}
		p.Row(set, model, w.name, 1e3*median(func(t measure.Turn) float64 { return t[w.name] }),
			1e3*median(func(t measure.Turn) float64 { return t[processor(w.name)] }),
			median(func(t measure.Turn) float64 { return t[w.name] / t[base] }),
			median(func(t measure.Turn) float64 { return t[processor(w.name)] / t[processor(base)] }), accuracy,
			len(good), w.losses)
	}
	return nil
}

// divide replaces g's split if a share is given: this share of the labelled nodes trains, evenly spread, and the others
// validate and test in turn.
func (b *bench) divide(g *graph.Graph) {
	if b.share == 0 {
		return
	}
	k, rest := 0, 0
	for i := range g.Split {
		if g.Split[i] == graph.None {
			continue
		}
		switch g.Split[i] = graph.Train; {
		case int(float64(k+1)*b.share) > int(float64(k)*b.share):
		case rest%2 == 0:
			g.Split[i] = graph.Val
			rest++
		default:
			g.Split[i] = graph.Test
			rest++
		}
		k++
	}
}

// plan is the plan of one worker's training, which validates only at the beginning and at the end.
func (b *bench) plan(model string) heddle.Plan {
	p := heddle.Defaults(plan.FullBatch, model)
	p.Gradient().Hidden, p.RowNorm, p.Gradient().LR, p.Gradient().Decay, p.Gradient().Dropout = b.hidden, "l1", 0.01,
		5e-4, float32(b.dropout)
	if model == "gat" {
		p.Gradient().AttentionDropout = p.Gradient().Dropout
	}
	p.Gradient().EvalEvery, p.Gradient().Rounds = 1<<30, warm+b.turns*b.epochs
	return p
}

// own is our own training by p.
func (b *bench) own(ctx context.Context, g *graph.Graph, p heddle.Plan) (*way, error) {
	w := &way{name: "heddle"}
	still := p
	still.Gradient().Rounds, still.Gradient().Dropout, still.Gradient().AttentionDropout = first, 0, 0
	whole := []*shard.Shard{shard.Whole(g)}
	_, err := heddle.Local{Plan: still, Shards: whole, OnEvent: func(e heddle.Event) {
		if e.Kind == train.RoundEnd {
			w.losses += fmt.Sprintf("%.5f ", e.Loss)
		}
	}}.Train(ctx)
	if err != nil {
		return nil, err
	}
	next, done := make(chan int), make(chan struct{})
	var result *heddle.Result
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		left := <-next
		result, failed = heddle.Local{Plan: p, Shards: whole, OnEvent: func(e heddle.Event) {
			if e.Kind != train.RoundEnd {
				return
			}
			if left--; left == 0 {
				done <- struct{}{}
				if e.Done < e.Total {
					left = <-next
				}
			}
		}}.Train(ctx)
	}()
	w.run = func(epochs int) (wall, busy float64, err error) {
		start := measure.Now()
		next <- epochs
		select {
		case <-done:
		case <-ended:
			return 0, 0, errors.Join(failed, errors.New("training ended early"))
		}
		cost := measure.Since(start)
		return cost.Wall.Seconds() / float64(epochs), cost.Processor.Seconds() / float64(epochs), nil
	}
	w.accuracy = func() (float64, error) {
		<-ended
		if failed != nil {
			return 0, failed
		}
		return result.Test, nil
	}
	return w, nil
}

// others are the ways of the baseline, which begin with our initial weights.
func (b *bench) others(g *graph.Graph, data, model string) (all []*way, err error) {
	whole := shard.Whole(g)
	method, err := b.plan(model).Configure(whole)
	if err != nil {
		return nil, err
	}
	c := method.(fullbatch.Config)
	m, err := c.NewModel()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "epoch")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	weights := filepath.Join(dir, "model.safetensors")
	if err := modelfile.Write(weights, m, modelfile.Card{}); err != nil {
		return nil, err
	}
	answer, err := b.baseline.Ask(fmt.Sprintf("setup %s %s %d %s %g %g %s", filepath.Join(data, "graph.npz"), model,
		b.hidden, b.ways, b.dropout, b.share, weights))
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(answer) {
		w := &way{name: name}
		if w.losses, err = b.baseline.Ask(fmt.Sprintf("losses %s %d", name, first)); err != nil {
			return nil, err
		}
		w.run = func(epochs int) (wall, busy float64, err error) {
			answer, err := b.baseline.Ask(fmt.Sprintf("run %s %d", name, epochs))
			if err != nil {
				return 0, 0, err
			}
			if _, err := fmt.Sscan(answer, &wall, &busy); err != nil || !(wall > 0 && busy > 0) {
				return 0, 0, fmt.Errorf("%s must answer with two times (got %q)", name, answer)
			}
			return wall, busy, nil
		}
		w.accuracy = func() (accuracy float64, err error) {
			answer, err := b.baseline.Ask("accuracy " + name)
			if err == nil {
				if _, err = fmt.Sscan(answer, &accuracy); err != nil {
					err = fmt.Errorf("accuracy of %s must be a number (got %q)", name, answer)
				}
			}
			return accuracy, err
		}
		all = append(all, w)
	}
	return all, nil
}
