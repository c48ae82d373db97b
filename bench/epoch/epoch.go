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
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/train"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "epoch",
	Title: "Epochs of end-to-end training",
	Text: `One epoch of end-to-end training on one machine against PyTorch Geometric: the same layers,
widths, dropout, Adam and split, features whose rows add up to 1. Both train for real and take
turns, a few epochs each. Medians over turns in which the machine kept its speed, and the test
accuracies.`,
}

type bench struct {
	root, sets, models             string
	python, script, ways, profile  string
	threads, hidden, turns, epochs int

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
	f.StringVar(&b.script, "script", "bench/baselines/epoch_pyg.py", "script of the baseline")
	f.StringVar(&b.ways, "ways", "sparse", "ways of the baseline: sparse, adj, edges")
	f.IntVar(&b.threads, "threads", 1, "threads, ours and the baseline's")
	f.IntVar(&b.hidden, "hidden", 64, "width of the hidden rows, of all heads together")
	f.IntVar(&b.turns, "turns", 9, "turns of each")
	f.IntVar(&b.epochs, "epochs", 5, "epochs of a turn")
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
	p.Text("%d threads, hidden width %d, %d turns of %d epochs.", b.threads, b.hidden, b.turns, b.epochs)
	p.Table("data %s", "model %s", "way %s", "ms %.1f", "processor ms %.1f", "times slower %.2f",
		"by the processor %.2f", "test accuracy %.3f", "turns %d")
	for _, set := range strings.Split(b.sets, ",") {
		for _, model := range strings.Split(b.models, ",") {
			if err := b.compare(ctx, p, set, model); err != nil {
				return fmt.Errorf("%s, %s: %w", set, model, err)
			}
		}
	}
	return nil
}

// warm is how many epochs each way trains before its turns.
const warm = 3

// ours is the name of our own way.
const ours = "heddle"

// processor is the name under which a turn has the processor's time of a way.
func processor(way string) string { return way + ", processor" }

// compare trains one model on one data set, by Heddle and in each of the baseline's ways.
func (b *bench) compare(ctx context.Context, p *page.Page, set, model string) error {
	var ways []string
	data := filepath.Join(b.root, set)
	if b.baseline != nil {
		setup := fmt.Sprintf("setup %s %s %d %s", filepath.Join(data, "graph.npz"), model, b.hidden, b.ways)
		answer, err := b.baseline.Ask(setup)
		if err != nil {
			return err
		}
		ways = strings.Fields(answer)
	}
	run, err := b.training(data, model)
	if err != nil {
		return err
	}
	if err := b.turn(measure.Turn{}, ways, warm); err != nil {
		return err
	}
	b.measured.Reset()
	var turn measure.Turn
	var start measure.Cost
	var failed error
	run.OnEvent = func(e heddle.Event) {
		done := e.Done - warm
		if e.Kind != train.RoundEnd || done < 0 || done%b.epochs != 0 {
			return
		}
		if done > 0 {
			cost := measure.Since(start)
			turn[ours] = cost.Wall.Seconds() / float64(b.epochs)
			turn[processor(ours)] = cost.Processor.Seconds() / float64(b.epochs)
			b.measured.Settle(0)
			failed = errors.Join(failed, b.turn(turn, ways, b.epochs))
		}
		if done < b.turns*b.epochs {
			turn, start = b.measured.Begin(), measure.Now()
		}
	}
	r, err := run.Train(ctx)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return b.print(p, set, model, r.Test, ways)
}

func (b *bench) print(p *page.Page, set, model string, accuracy float64, ways []string) error {
	good := b.measured.Good(1)
	median := func(way string) float64 { return measure.Median(good, func(t measure.Turn) float64 { return t[way] }) }
	slower := func(way, base string) float64 {
		return measure.Median(good, func(t measure.Turn) float64 { return t[way] / t[base] })
	}
	for _, way := range append([]string{ours}, ways...) {
		if way != ours {
			answer, err := b.baseline.Ask("accuracy " + way)
			if err != nil {
				return err
			}
			if _, err := fmt.Sscan(answer, &accuracy); err != nil {
				return fmt.Errorf("accuracy of %s must be a number (got %q)", way, answer)
			}
		}
		p.Row(set, model, way, 1e3*median(way), 1e3*median(processor(way)), slower(way, ours),
			slower(processor(way), processor(ours)), accuracy, len(good))
	}
	return nil
}

// turn lets the baseline train for some epochs in each of its ways.
func (b *bench) turn(turn measure.Turn, ways []string, epochs int) error {
	for _, way := range ways {
		b.measured.Settle(0)
		answer, err := b.baseline.Ask(fmt.Sprintf("run %s %d", way, epochs))
		if err != nil {
			return err
		}
		var wall, busy float64
		if _, err := fmt.Sscan(answer, &wall, &busy); err != nil || !(wall > 0 && busy > 0) {
			return fmt.Errorf("%s must answer with two times (got %q)", way, answer)
		}
		turn[way], turn[processor(way)] = wall, busy
		b.measured.Settle(baselines.Rest)
	}
	return nil
}

// training returns one worker's training of the model, which validates only at the beginning and at
// the end.
func (b *bench) training(data, model string) (run heddle.Local, err error) {
	g, err := dataset.Read(data, 0)
	if err != nil {
		return run, err
	}
	p := heddle.Defaults(heddle.Plan{Mode: "standalone", Model: model})
	p.Hidden, p.RowNorm, p.LR = b.hidden, "l1", 0.01
	p.EvalEvery, p.Rounds = 1<<30, warm+b.turns*b.epochs
	return heddle.Local{Plan: p, Shards: []*shard.Shard{shard.Whole(g)}}, nil
}
