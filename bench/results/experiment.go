package results

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/train"
)

// experiment is one row of a table.
type experiment struct {
	Name string
	Data string
	heddle.Plan
}

// bind registers a flag for each setting of a plan, and returns those that are given.
func bind(f *flag.FlagSet) (given map[string]string) {
	given = map[string]string{}
	for _, s := range heddle.Settings() {
		if s.Only == "join" {
			continue
		}
		set := func(text string) error {
			given[s.Name] = text
			return nil
		}
		if s.Type == "true or false" {
			f.BoolFunc(s.Flag, s.Help, set)
		} else {
			f.Func(s.Flag, s.Help, set)
		}
	}
	return given
}

// outcome is one run.
type outcome struct {
	stages  []train.StageResult
	bytes   heddle.Traffic
	seconds float64
}

// summary is an experiment's runs.
type summary struct {
	experiment
	runs []outcome
}

// final returns mean and deviation of the last stage's metric, in per cent, and the mean of its
// validation.
func (s summary) final() (test string, val float64) {
	var tests []float64
	for _, r := range s.runs {
		last := r.stages[len(r.stages)-1]
		tests = append(tests, last.Test)
		val += last.Val
	}
	mean, dev := spread(tests)
	return fmt.Sprintf("%.2f ± %.2f", 100*mean, 100*dev), 100 * val / float64(len(s.runs))
}

// stages returns the mean metric of each stage, in per cent.
func (s summary) stages() string {
	var means []string
	for k := range s.runs[0].stages {
		mean := 0.0
		for _, r := range s.runs {
			mean += 100 * r.stages[k].Test / float64(len(s.runs))
		}
		means = append(means, fmt.Sprintf("%.1f", mean))
	}
	return strings.Join(means, " / ")
}

// bytes returns the mean megabytes of the runs, by door.
func (s summary) bytes() (halo, reduce, control float64) {
	n := 1e6 * float64(len(s.runs))
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
	}
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			start := time.Now()
			s.runs[i], errs[i] = e.one(ctx, graphs[i%len(graphs)], uint64(i+1))
			s.runs[i].seconds = time.Since(start).Seconds()
		})
	}
	wg.Wait()
	return s, errors.Join(errs...)
}

// one trains once, with all peers in this process.
func (e experiment) one(ctx context.Context, g *graph.Graph, seed uint64) (outcome, error) {
	p := e.Plan
	p.Seed, p.Transport = seed, "memory"
	r, err := heddle.Train(ctx, g, p)
	if err != nil {
		return outcome{}, err
	}
	return outcome{stages: r.Stages, bytes: r.Total()}, nil
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
