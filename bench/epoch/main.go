// Epoch times whole epochs of end-to-end training, `peer train --mode standalone`, against PyTorch Geometric: the same
// layers, widths, dropout, Adam, on the same split of features whose rows add up to 1. Both train for real and take turns, a few epochs each; printed are
// medians over turns in which the machine kept its speed, by the wall and by the processor's time, and the test accuracies
// that both end with.
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
	"github.com/heddle-gnn/heddle/kernels/measure"
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
	best                           float64 // rate of multiply-adds seen
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
	fmt.Println("| data | model | way | ms | processor ms | times slower | by the processor | test accuracy | turns |")
	fmt.Println("|---|---|---|---:|---:|---:|---:|---:|---:|")
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

// cost is what an epoch takes, in seconds, and the machine's least rate of multiply-adds around the turn.
type cost struct{ wall, processor, speed float64 }

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
	var before float64
	var failed error
	trainer.Observer.EpochEnd = func(e fullbatch.EpochInfo) {
		done := e.Epoch + 1 - warm
		if done < 0 || done%b.epochs != 0 {
			return
		}
		if done > 0 {
			c := start.since(b.epochs)
			c.speed = min(before, b.settle(0))
			ours.turns = append(ours.turns, c)
			failed = errors.Join(failed, b.turn(ways[1:], b.epochs))
		}
		before = b.settle(0)
		start = now()
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
	calm := b.calm(ways)
	for _, w := range ways {
		wall, processor := func(c cost) float64 { return c.wall }, func(c cost) float64 { return c.processor }
		fmt.Printf("| %s | %s | %s | %.1f | %.1f | %.2f | %.2f | %.3f | %d |\n", filepath.Base(data), model, w.name,
			1e3*middle(calm, func(i int) float64 { return wall(w.turns[i]) }), 1e3*middle(calm, func(i int) float64 { return processor(w.turns[i]) }),
			middle(calm, func(i int) float64 { return wall(w.turns[i]) / wall(ours.turns[i]) }),
			middle(calm, func(i int) float64 { return processor(w.turns[i]) / processor(ours.turns[i]) }), w.accuracy, len(calm))
	}
	return nil
}

// turn lets each of the rival's ways train for some epochs.
func (b *bench) turn(ways []*way, epochs int) error {
	for _, w := range ways {
		before := b.settle(0)
		answer, err := b.rival.Ask(fmt.Sprintf("run %s %d", w.name, epochs))
		if err != nil {
			return err
		}
		var c cost
		if _, err := fmt.Sscan(answer, &c.wall, &c.processor); err != nil || !(c.wall > 0 && c.processor > 0) {
			return fmt.Errorf("%s answered %q", w.name, answer)
		}
		c.speed = min(before, b.settle(rivals.Rest))
		w.turns = append(w.turns, c)
	}
	return nil
}

// settle waits for the machine to be as fast as it was, and for all threads to be awake.
func (b *bench) settle(rest time.Duration) float64 {
	speed := measure.Settle(measure.Wall, rest, b.best)
	b.best = max(b.best, speed)
	return speed
}

// calm returns the turns in which the machine kept its speed while each of ways trained; all of them where there are none.
func (b *bench) calm(ways []*way) (turns []int) {
	for i := range ways[0].turns {
		if !slices.ContainsFunc(ways, func(w *way) bool { return w.turns[i].speed < measure.Steady*b.best }) {
			turns = append(turns, i)
		}
	}
	if turns == nil {
		for i := range ways[0].turns {
			turns = append(turns, i)
		}
	}
	return turns
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
	return cost{wall: (t.wall - s.wall).Seconds() / float64(epochs), processor: (t.processor - s.processor).Seconds() / float64(epochs)}
}

// middle is the median over turns.
func middle(turns []int, of func(turn int) float64) float64 {
	var all []float64
	for _, i := range turns {
		all = append(all, of(i))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
