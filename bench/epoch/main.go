// Epoch times whole epochs of end-to-end training, `peer train --mode standalone`, against PyTorch Geometric: the same
// layers, widths, dropout, Adam, on the same split of features whose rows add up to 1. Both train for real and take turns, a few epochs each; printed are
// medians over turns, by the wall and by the processor's time, and the test accuracies that both end with.
//
//	go run ./bench/epoch -python python3 -threads 1
//	python3 bench/rivals/generate.py drawn/large 100000 100 64 40 && go run ./bench/epoch -python python3 -root drawn -data large -models gcn,sage -ways adj
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/bench/rivals"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/sim"
	"github.com/heddle-gnn/heddle/fullbatch"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/nn"
)

func main() {
	var b bench
	root := flag.String("root", "../shared/data", "folder of the data sets; $HEDDLE_DATA goes before it")
	sets := flag.String("data", "amazon-computers,coauthor-cs", "data sets")
	models := flag.String("models", "gcn,sage,gat", "models")
	flag.StringVar(&b.python, "python", "", "interpreter that has torch and torch_geometric; empty: no rival")
	flag.StringVar(&b.script, "script", "bench/rivals/epoch_pyg.py", "the rival")
	flag.StringVar(&b.ways, "ways", "sparse", "the rival's ways (its script says which), with commas between; edges and adj take minutes and gigabytes on coauthor-cs")
	flag.IntVar(&b.threads, "threads", 1, "threads, of ours and of the rival")
	flag.IntVar(&b.hidden, "hidden", 64, "width of the hidden rows, of all heads together")
	flag.IntVar(&b.turns, "turns", 9, "turns of each")
	flag.IntVar(&b.epochs, "epochs", 5, "epochs of a turn")
	profile := flag.String("profile", "", "file for a CPU profile of ours")
	flag.Parse()
	if env := os.Getenv("HEDDLE_DATA"); env != "" {
		*root = env
	}
	if err := b.run(*root, strings.Split(*sets, ","), strings.Split(*models, ","), *profile); err != nil {
		fmt.Fprintln(os.Stderr, "epoch:", err)
		os.Exit(1)
	}
}

type bench struct {
	python, script, ways           string
	threads, hidden, turns, epochs int
	rival                          *rivals.Process
}

func (b *bench) run(root string, sets, models []string, profile string) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(b.threads)
	if b.python != "" {
		var err error
		if b.rival, err = rivals.Start(b.python, b.script, b.threads); err != nil {
			return err
		}
		defer b.rival.Stop()
		fmt.Println(b.rival.About)
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	fmt.Printf("kernels %s, %d threads, hidden %d, %d turns of %d epochs\n\n", kernels.Name(), b.threads, b.hidden, b.turns, b.epochs)
	fmt.Println("| data | model | way | ms | processor ms | times slower | by the processor | test accuracy |")
	fmt.Println("|---|---|---|---:|---:|---:|---:|---:|")
	for _, set := range sets {
		for _, model := range models {
			if err := b.compare(filepath.Join(root, set), model); err != nil {
				return fmt.Errorf("%s, %s: %w", set, model, err)
			}
		}
	}
	return nil
}

// warm is how many epochs each way trains before its turns.
const warm = 3

// cost is what an epoch takes, in seconds.
type cost struct{ wall, processor float64 }

// way is one way to train and what its turns cost.
type way struct {
	name     string
	turns    []cost
	accuracy float64
}

// compare trains one model on one data set, by Heddle and by each of the rival's ways.
func (b *bench) compare(data, model string) error {
	ours := &way{name: "heddle"}
	ways := []*way{ours}
	if b.rival != nil {
		answer, err := b.rival.Ask(fmt.Sprintf("setup %s %s %d %s", filepath.Join(data, "graph.npz"), model, b.hidden, b.ways))
		if err != nil {
			return err
		}
		for _, name := range strings.Fields(answer) {
			ways = append(ways, &way{name: name})
		}
	}
	trainer, err := b.trainer(data, model)
	if err != nil {
		return err
	}
	var start stamp
	var failed error
	trainer.Observer.EpochEnd = func(e fullbatch.EpochInfo) {
		if done := e.Epoch + 1 - warm; done > 0 && done%b.epochs == 0 {
			ours.turns = append(ours.turns, start.since(b.epochs))
			failed = errors.Join(failed, b.turn(ways[1:], b.epochs))
		}
		if done := e.Epoch + 1 - warm; done >= 0 && done%b.epochs == 0 {
			start = now()
		}
	}
	if err := b.turn(ways[1:], warm); err != nil {
		return err
	}
	for _, w := range ways {
		w.turns = nil
	}
	group := comm.NewGroup(sim.New(1, sim.Config{}).Transport(0), 0, 1)
	defer group.Close()
	if err := errors.Join(trainer.Run(context.Background(), group, group), failed); err != nil {
		return err
	}
	ours.accuracy = trainer.Result().Test
	for _, w := range ways[1:] {
		answer, err := b.rival.Ask("accuracy " + w.name)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(answer, &w.accuracy); err != nil {
			return fmt.Errorf("accuracy of %s: %q", w.name, answer)
		}
	}
	for _, w := range ways {
		wall, processor := func(c cost) float64 { return c.wall }, func(c cost) float64 { return c.processor }
		fmt.Printf("| %s | %s | %s | %.1f | %.1f | %.2f | %.2f | %.3f |\n", filepath.Base(data), model, w.name, 1e3*median(w.turns, wall), 1e3*median(w.turns, processor),
			ratio(w.turns, ours.turns, wall), ratio(w.turns, ours.turns, processor), w.accuracy)
	}
	return nil
}

// turn lets each of the rival's ways train for some epochs.
func (b *bench) turn(ways []*way, epochs int) error {
	for _, w := range ways {
		answer, err := b.rival.Ask(fmt.Sprintf("run %s %d", w.name, epochs))
		if err != nil {
			return err
		}
		var c cost
		if _, err := fmt.Sscan(answer, &c.wall, &c.processor); err != nil || !(c.wall > 0 && c.processor > 0) {
			return fmt.Errorf("%s answered %q", w.name, answer)
		}
		w.turns = append(w.turns, c)
		time.Sleep(10 * time.Millisecond) // its threads may go on spinning
	}
	return nil
}

// trainer returns one worker's trainer for the preset of model, which looks at validation nodes only at the begin and end.
func (b *bench) trainer(data, model string) (*fullbatch.Trainer, error) {
	g, err := dataset.Read(data, 0)
	if err != nil {
		return nil, err
	}
	spec, err := nn.Preset(model, "single", g.X.Cols(), g.Labels.Classes, b.hidden, 2)
	if err != nil {
		return nil, err
	}
	spec.Encoder.UnitSum = true
	c := fullbatch.Defaults(spec)
	c.EvalEvery, c.Epochs = 1<<30, warm+b.turns*b.epochs
	m, err := fullbatch.NewModel(c)
	if err != nil {
		return nil, err
	}
	return fullbatch.New(c, partition.Whole(g), m)
}

// stamp is a moment by both clocks.
type stamp struct{ wall, processor time.Duration }

var begin = time.Now()

func now() stamp {
	s := stamp{wall: time.Since(begin)}
	if rivals.ProcessorTime != nil {
		s.processor = rivals.ProcessorTime()
	}
	return s
}

// since returns what each of so many epochs took.
func (s stamp) since(epochs int) cost {
	t := now()
	return cost{(t.wall - s.wall).Seconds() / float64(epochs), (t.processor - s.processor).Seconds() / float64(epochs)}
}

func median(turns []cost, of func(cost) float64) float64 {
	return middle(len(turns), func(i int) float64 { return of(turns[i]) })
}

// ratio is the median over turns of x to y, neighbours in time.
func ratio(x, y []cost, of func(cost) float64) float64 {
	return middle(len(x), func(i int) float64 { return of(x[i]) / of(y[i]) })
}

func middle(n int, of func(int) float64) float64 {
	var all []float64
	for i := range n {
		all = append(all, of(i))
	}
	slices.Sort(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
