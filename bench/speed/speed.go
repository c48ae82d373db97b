// Package speed times layer-wise training of four peers against the same work in PyTorch.
package speed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "speed",
	Title: "Layer-wise training against PyTorch",
	Text: `Layer-wise training of four peers on Cora (two graph convolutions, raw features) against the
same work in PyTorch. Each way is a process, and they take turns. Seconds are those of training
alone: reading, partitioning and connecting are left out, as are PyTorch's imports and a first
short training that warms it up. Processor seconds count all threads, and for Heddle reading
too. Medians over turns in which the machine kept its speed.`,
}

// way is one way to train, run as a process that prints its figures.
type way struct {
	name     string
	command  []string
	accuracy float64
}

// figures are what one run prints.
type figures struct {
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds,omitempty"` // of all threads (0 = take the whole process's)
	TestAccuracy float64 `json:"test_accuracy"`
	Torch        string  `json:"torch,omitempty"`
}

// options are the flags.
type options struct {
	root, python, script, only, one, profile string
	repeat, rounds                           int
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	root := graphs.Root(f)
	f.StringVar(&o.python, "python", "python3", "Python with torch and numpy; empty: no baselines")
	f.StringVar(&o.script, "script", "bench/baselines/retexo_torch.py", "script of the baseline")
	f.IntVar(&o.repeat, "repeat", 7, "runs of each way")
	f.IntVar(&o.rounds, "rounds", 200, "rounds of a layer")
	f.StringVar(&o.only, "only", "", "parts of the names of ways to run, with semicolons")
	f.StringVar(&o.one, "one", "", "internal: train once over this carrier, maybe secured")
	f.StringVar(&o.profile, "profile", "", "with -one: file for a CPU profile")
	return func(ctx context.Context, p *page.Page) error {
		o.root = *root
		if o.one == "" {
			return o.compare(ctx, p)
		}
		m, err := o.train(ctx, filepath.Join(o.root, "cora"))
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	}
}

func (o options) compare(ctx context.Context, p *page.Page) error {
	ways, err := o.ways()
	if err != nil {
		return err
	}
	turns, torch := measure.NewTurns(measure.Wall), ""
	for i := range o.repeat {
		turn := turns.Begin()
		for _, w := range ways {
			f, err := w.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", w.name, i+1, err)
			}
			turns.Settle(0)
			turn[w.name], turn[processor(w.name)] = f.Seconds, f.CPUSeconds
			w.accuracy = f.TestAccuracy
			if f.Torch != "" {
				torch = f.Torch
			}
			fmt.Fprintf(os.Stderr, "%d/%d %s: %.3f s, %.3f processor s\n", i+1, o.repeat, w.name, f.Seconds,
				f.CPUSeconds)
		}
	}
	if torch != "" {
		p.Text("torch %s.", torch)
	}
	table(p, ways, turns.Good(1))
	return nil
}

// ways are those to compare.
func (o options) ways() (ways []*way, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := strconv.Itoa(o.rounds)
	add := func(name string, command ...string) {
		named := func(part string) bool { return strings.Contains(name, part) }
		if o.only == "" || slices.ContainsFunc(strings.Split(o.only, ";"), named) {
			ways = append(ways, &way{name: name, command: command})
		}
	}
	for _, transport := range []string{"memory", "memory" + secured, "quic", "tcp", "tcp" + secured} {
		add("heddle, 4 peers, "+transport, self, About.Name, "-one", transport, "-root", o.root, "-rounds", n)
	}
	if o.python == "" {
		return ways, nil
	}
	baseline := func(name string, args ...string) {
		add(name, append([]string{o.python, o.script, filepath.Join(o.root, "cora", "graph.npz"), "--rounds", n},
			args...)...)
	}
	for _, first := range []string{"own", "bag", "coo"} {
		baseline("torch, pooled, "+first+", 2 threads", "--first", first)
		baseline("torch, pooled, "+first+", 1 thread", "--first", first, "--threads", "1")
	}
	baseline("torch, 4 replicas, own, 2 threads", "--peers", "4")
	baseline("torch, 4 replicas, own, 1 thread", "--peers", "4", "--threads", "1")
	return ways, nil
}

func (w *way) run(ctx context.Context) (f figures, err error) {
	cmd := exec.CommandContext(ctx, w.command[0], w.command[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return f, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, err
	}
	if f.CPUSeconds == 0 {
		f.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	return f, nil
}

// processor is the name under which a turn has the processor's time of a way.
func processor(way string) string { return way + ", processor" }

// table prints medians, and how they compare with the fastest baseline that trains one pooled
// model.
func table(p *page.Page, ways []*way, turns []measure.Turn) {
	median := func(name string) float64 {
		return measure.Median(turns, func(t measure.Turn) float64 { return t[name] })
	}
	fastest := 0.0
	for _, w := range ways {
		if v := median(w.name); strings.HasPrefix(w.name, "torch, pooled") && (fastest == 0 || v < fastest) {
			fastest = v
		}
	}
	p.Table("way %s", "runs %d", "median s %.3f", "least s %.3f", "most s %.3f", "processor s %.3f",
		"test accuracy %.3f",
		"fastest pooled torch ÷ this %.2f")
	for _, w := range ways {
		least, most := turns[0][w.name], turns[0][w.name]
		for _, t := range turns {
			least, most = min(least, t[w.name]), max(most, t[w.name])
		}
		p.Row(w.name, len(turns), median(w.name), least, most, median(processor(w.name)), w.accuracy,
			fastest/median(w.name))
	}
}
