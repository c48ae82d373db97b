package results

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
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

// summary is an experiment's runs.
type summary struct {
	experiment
	runs []*heddle.Result
}

// final returns mean and deviation of the last stage's metric, in per cent, and the mean of its
// validation.
func (s summary) final() (test string, val float64) {
	var tests []float64
	for _, r := range s.runs {
		tests = append(tests, r.Test)
		val += r.Val
	}
	mean, dev := spread(tests)
	return fmt.Sprintf("%.2f ± %.2f", 100*mean, 100*dev), 100 * val / float64(len(s.runs))
}

// stages returns the mean metric of each stage, in per cent.
func (s summary) stages() string {
	var means []string
	for k := range s.runs[0].Stages {
		mean := 0.0
		for _, r := range s.runs {
			mean += 100 * r.Stages[k].Test / float64(len(s.runs))
		}
		means = append(means, fmt.Sprintf("%.1f", mean))
	}
	return strings.Join(means, " / ")
}

// bytes returns the mean megabytes of the runs, by door.
func (s summary) bytes() (halo, reduce, control float64) {
	n := 1e6 * float64(len(s.runs))
	for _, r := range s.runs {
		sent := r.Total()
		halo += float64(sent.Halo) / n
		reduce += float64(sent.Reduce) / n
		control += float64(sent.Control) / n
	}
	return halo, reduce, control
}

func (s summary) seconds() (mean float64) {
	for _, r := range s.runs {
		mean += r.Seconds / float64(len(s.runs))
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

// run trains n times, with all peers in this process: run k has seed k and, of the splits, the k-th.
func (e experiment) run(ctx context.Context, splits []*graph.Graph, n int) (summary, error) {
	s := summary{experiment: e, runs: make([]*heddle.Result, n)}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		all.Go(func() (err error) {
			p := e.Plan
			p.Seed, p.Transport = uint64(i+1), "memory"
			s.runs[i], err = heddle.Train(ctx, splits[i%len(splits)], p)
			return err
		})
	}
	return s, all.Wait()
}

// readSplits returns the splits of the data set in dir, at most 10.
func readSplits(dir string) (all []*graph.Graph, err error) {
	for k := range 10 {
		g, err := dataset.Read(dir, k)
		if err != nil && k == 0 {
			return nil, err
		} else if err != nil {
			break
		}
		all = append(all, g)
	}
	return all, nil
}
