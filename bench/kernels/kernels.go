// Package kernels measures what this machine's kernels reach.
package kernels

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/bench/baselines"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "kernels",
	Title: "Performance of the kernels",
	Text: `Rates of the kernels, as fractions of a peak measured beside them, and how many times faster
they are than PyTorch, OpenBLAS (through NumPy) and DGL at the same work. Everything takes
turns: medians of ratios between neighbours in time, of turns in which the machine kept its
speed. The last columns are how many these are, and the rate of multiply-adds on registers.`,
}

type bench struct {
	root, sets, only, python, script string
	threads, turns                   int
	large, processor                 bool
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var b bench
	root := graphs.Root(f)
	f.IntVar(&b.threads, "threads", 1, "threads, ours and the baselines'")
	f.StringVar(&b.python, "python", "", "Python with torch and numpy; empty: no baselines")
	f.StringVar(&b.script, "script", "bench/baselines/kernels_torch.py", "script of the baselines")
	f.IntVar(&b.turns, "turns", 7, "runs of each")
	f.StringVar(&b.only, "only", "", "part of the names of the cases to run; empty: all")
	f.BoolVar(&b.large, "large", false, "also cases of seconds or gigabytes")
	f.BoolVar(&b.processor, "cpu", false, "processor time, for one thread on a shared machine")
	f.StringVar(&b.sets, "data", "", "data sets whose neighbour sums are measured too")
	return func(_ context.Context, p *page.Page) error {
		b.root = *root
		return b.run(p)
	}
}

func (b bench) run(p *page.Page) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	sets, err := dataSets(b.root, b.sets)
	if err != nil {
		return err
	}
	cases := slices.Concat(measure.Cases(b.large), attention(), layers(), sets)
	clock := measure.Clock(measure.Wall)
	if b.processor {
		if clock = measure.ProcessorTime; clock == nil || b.threads != 1 {
			return errors.New("-cpu needs -threads 1 and a system that counts processor time")
		}
	}
	runtime.GOMAXPROCS(b.threads)
	var baseline *baselines.Process
	if b.python != "" {
		var env []string
		if b.processor {
			env = []string{"HEDDLE_CLOCK=processor"}
		}
		if baseline, err = baselines.Start(b.python, b.script, b.threads, env...); err != nil {
			return err
		}
		defer baseline.Stop()
		p.Text("Baselines: %s.", baseline.About)
	}
	p.Text("%d threads, medians of %d turns.", b.threads, b.turns)
	p.Table("kernel %s", "10⁹ a call %.2f", "rate %.1f", "unit %s", "of peak %v", "× torch %v", "× OpenBLAS %v",
		"× DGL %v", "turns %d", "GFLOP/s %.0f")
	for _, c := range cases {
		if !strings.Contains(c.Name, b.only) {
			continue
		}
		var engines []measure.Engine
		if baseline != nil && c.Baseline != "" {
			if engines, err = setup(baseline, c.Baseline); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		r, err := c.Run(b.turns, clock, baselines.Rest, engines...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		p.Row(c.Name, c.Work/1e9, r.Rate, c.Unit, ratio(r.OfPeak), ratio(r.Times["torch"]), ratio(r.Times["openblas"]),
			ratio(r.Times["dgl"]), r.Turns, r.Speed)
	}
	return nil
}

// ratio is a cell: one that was not measured stays empty.
func ratio(x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x)
}

// setup prepares the work that line describes and returns each engine that can do it.
func setup(baseline *baselines.Process, line string) (all []measure.Engine, err error) {
	answer, err := baseline.Ask("setup " + line)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(answer) {
		all = append(all, measure.Engine{Name: name, Run: func() (float64, error) {
			answer, err := baseline.Ask("run " + name)
			if err != nil {
				return 0, err
			}
			seconds, err := strconv.ParseFloat(answer, 64)
			if err != nil || !(seconds > 0) || math.IsInf(seconds, 0) {
				return 0, fmt.Errorf("%s must answer with seconds (got %q)", name, answer)
			}
			return seconds, nil
		}})
	}
	return all, nil
}
