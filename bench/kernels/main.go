// Kernels prints what this machine's kernels reach: rates, the fraction of a peak measured beside them, and, with
// -python, how many times faster they are than PyTorch, OpenBLAS (through NumPy) and DGL at the same work. Everything takes
// turns, and what is printed are medians of ratios between neighbours in time, of turns in which the machine kept its
// speed; the last columns are how many these are, and what multiply-adds on registers reached.
//
//	go run ./bench/kernels -threads 1 -python python3
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/bench/rivals"
	"github.com/heddle-gnn/heddle/kernels"
	"github.com/heddle-gnn/heddle/kernels/measure"
)

func main() {
	threads := flag.Int("threads", 1, "threads, of ours and of the rivals")
	python := flag.String("python", "", "interpreter that has torch and numpy; empty: no rivals")
	script := flag.String("script", "bench/rivals/kernels_torch.py", "the rivals")
	turns := flag.Int("turns", 7, "runs of each")
	only := flag.String("only", "", "cases to run, by a part of their names; empty: all")
	large := flag.Bool("large", false, "also the cases that take seconds or gigabytes")
	processor := flag.Bool("cpu", false, "count the processor's time, not what passes: for one thread on a machine that others use")
	root := flag.String("root", "../shared/data", "folder of the data sets; $HEDDLE_DATA goes before it")
	sets := flag.String("data", "", "data sets whose neighbour sums are measured too, with commas between")
	flag.Parse()
	if env := os.Getenv("HEDDLE_DATA"); env != "" {
		*root = env
	}
	cases, err := real(*root, *sets)
	if err == nil {
		cases = append(append(measure.Cases(*large), attention()...), cases...)
		err = run(cases, *threads, *turns, *python, *script, *only, *processor)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(cases []measure.Case, threads, turns int, python, script, only string, processor bool) error {
	if err := kernels.Choice(); err != nil {
		return err
	}
	clock := measure.Clock(measure.Wall)
	if processor {
		if clock = rivals.ProcessorTime; clock == nil || threads != 1 {
			return errors.New("-cpu is for one thread on a system that counts its time")
		}
	}
	runtime.GOMAXPROCS(threads)
	var rival *rivals.Process
	if python != "" {
		var env []string
		if processor {
			env = []string{"HEDDLE_CLOCK=processor"}
		}
		var err error
		if rival, err = rivals.Start(python, script, threads, env...); err != nil {
			return err
		}
		defer rival.Stop()
		fmt.Println(rival.About)
	}
	fmt.Printf("kernels %s, %d threads, medians of %d turns\n\n", kernels.Name(), threads, turns)
	fmt.Printf("%-34s %10s %-8s %9s %9s %9s %9s %6s %8s\n", "kernel", "rate", "", "of peak", "×torch", "×openblas", "×dgl", "turns", "GFLOP/s")
	for _, c := range cases {
		if !strings.Contains(c.Name, only) {
			continue
		}
		var engines []measure.Engine
		if rival != nil && c.Rival != "" {
			var err error
			if engines, err = setup(rival, c.Rival); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		r, err := c.Run(turns, clock, rivals.Rest, engines...)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		fmt.Printf("%-34s %10.1f %-8s %9s %9s %9s %9s %6d %8.0f\n", c.Name, r.Rate, c.Unit, show(r.OfPeak),
			show(r.Times["torch"]), show(r.Times["openblas"]), show(r.Times["dgl"]), r.Turns, r.Speed)
	}
	return nil
}

func show(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", x)
}

// setup prepares the work that line describes and returns each engine that can do it.
func setup(rival *rivals.Process, line string) (all []measure.Engine, err error) {
	answer, err := rival.Ask("setup " + line)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(answer) {
		all = append(all, measure.Engine{Name: name, Run: func() (float64, error) {
			answer, err := rival.Ask("run " + name)
			if err != nil {
				return 0, err
			}
			seconds, err := strconv.ParseFloat(answer, 64)
			if err != nil || !(seconds > 0) || math.IsInf(seconds, 0) {
				return 0, fmt.Errorf("%s answered %q", name, answer)
			}
			return seconds, nil
		}})
	}
	return all, nil
}
