package results

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
)

// experiment is one row of a table: how to train on which data.
type experiment struct {
	Name   string
	Data   string
	Skew   float64 // parameter of Dirichlet's distribution of the sites' labels (0 = as the plan sets it)
	Labels int     // training nodes of a class that each site keeps (0 = all)
	Alone  bool    // each site trains a separate model
	Pooled bool    // one peer trains on the data of all sites
	heddle.Plan
}

// bind registers a flag for each setting of a plan, and returns those that are given.
func bind(f *flag.FlagSet) (given map[string]string) {
	given = map[string]string{}
	for _, s := range plan.Settings("") {
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

// parse reads a plan from flags.
func parse(flags []string) (*heddle.Plan, error) {
	f := flag.NewFlagSet("plan", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	given := bind(f)
	if err := f.Parse(flags); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("settings must be flags (got %q)", f.Arg(0))
	}
	return heddle.ReadPlan(nil, given, nil)
}

// summary is an experiment's runs.
type summary struct {
	experiment
	runs []record
}

// mean is the mean of a figure of the runs.
func (s summary) mean(figure func(record) float64) (mean float64) {
	for _, r := range s.runs {
		mean += figure(r) / float64(len(s.runs))
	}
	return mean
}

// accuracy returns mean and deviation of the last stage's metric, in per cent.
func (s summary) accuracy() (mean, dev float64) {
	var tests []float64
	for _, r := range s.runs {
		tests = append(tests, 100*float64(r.Test))
	}
	return spread(tests)
}

func (s summary) test() string {
	mean, dev := s.accuracy()
	return fmt.Sprintf("%.2f ± %.2f", mean, dev)
}

// val is the mean metric of the validation nodes, in per cent.
func (s summary) val() float64 {
	return s.mean(func(r record) float64 { return 100 * float64(r.Val) })
}

// stages returns the mean metric of each stage, in per cent.
func (s summary) stages() string {
	var means []string
	for k := range s.runs[0].Stages {
		means = append(means, fmt.Sprintf("%.1f", s.mean(func(r record) float64 { return 100 * float64(r.Stages[k]) })))
	}
	return strings.Join(means, " / ")
}

// bytes returns the mean megabytes of the runs, by traffic class.
func (s summary) bytes() (halo, reduce, control float64) {
	return s.mean(func(r record) float64 { return float64(r.Halo) / 1e6 }),
		s.mean(func(r record) float64 { return float64(r.Reduce) / 1e6 }),
		s.mean(func(r record) float64 { return float64(r.Control) / 1e6 })
}

func (s summary) megabytes() float64 { return s.mean(record.megabytes) }

func (s summary) seconds() float64 { return s.mean(func(r record) float64 { return r.Seconds }) }

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

// run returns n runs of e, with all peers in this process: run k has seed k and, of the splits, the
// k-th. Those that are not in the book are trained.
func (b *book) run(ctx context.Context, e experiment, n int) (summary, error) {
	s := summary{experiment: e, runs: make([]record, n)}
	splits, err := b.read(e.Data)
	if err != nil {
		return s, err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(b.jobs)
	for i := range n {
		ask := e.asked(uint64(i + 1))
		ask.Version = b.version
		if r, ok := b.find(ask); ok {
			s.runs[i] = r
			continue
		}
		all.Go(func() error {
			r, err := e.measured(ctx, splits[i%len(splits)], ask)
			if err == nil {
				s.runs[i], err = r, b.add(r)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return s, fmt.Errorf("%s, %s: %w", e.Data, e.Name, err)
	}
	for _, r := range s.runs {
		if r.Refused != "" {
			return s, fmt.Errorf("%s, %w", e.Data, refusal(r.Refused))
		}
	}
	return s, nil
}

// refusal is why a plan does not fit a data set, or failed.
type refusal string

func (r refusal) Error() string { return string(r) }

// measured makes the run that was asked for.
func (e experiment) measured(ctx context.Context, g *graph.Graph, ask record) (record, error) {
	p := e.Plan
	p.Seed, p.Transport = ask.Seed, "memory"
	if e.Skew > 0 {
		g, p.Policy = graphs.Skewed(g, p.Peers, e.Skew, p.Seed), "by-column"
	}
	sites := p
	if p.Peers == 1 { // on the data of the same sites
		sites.Peers = plan.AutoPeers
	}
	shards, err := heddle.Split(g, sites)
	if err == nil && e.Labels > 0 {
		g = fewLabels(g, shards, e.Labels, p.Seed)
		shards, err = heddle.Split(g, sites)
	}
	if e.Pooled {
		shards = []*shard.Shard{shard.Whole(g)}
	}
	var outcomes []heddle.Outcome
	if err == nil {
		outcomes, err = heddle.Compare(ctx, g, shards, heddle.Trial{Name: e.Name, Plan: p, Alone: e.Alone})
	}
	r := ask
	if err != nil && ctx.Err() != nil {
		return r, err
	} else if err != nil { // the other settings of a grid are tried
		r.Refused = err.Error()
		return r, nil
	}
	o := outcomes[0]
	r.Test, r.Seconds = measure(o.Test), o.Seconds
	r.Halo, r.Reduce, r.Control = o.Sent.Halo, o.Sent.Reduce, o.Sent.Control
	if len(o.Runs) > 1 { // of sites that train by themselves
		r.Val = measure(math.NaN())
		return r, nil
	}
	one := o.Runs[0]
	r.Val, r.Trips = measure(one.Validated()), one.Load.Trips
	for _, s := range one.Stages {
		r.Stages = append(r.Stages, measure(s.Test))
	}
	return r, nil
}

// read returns the splits of a data set, at most 10; of a drawn graph, 10 of them.
func (b *book) read(data string) ([]*graph.Graph, error) {
	if b.data == data {
		return b.splits, nil
	}
	var all []*graph.Graph
	for k := range 10 {
		var g *graph.Graph
		var err error
		switch {
		case data == graphs.Typed:
			g, err = graphs.DrawTyped(uint64(k + 1))
		case slices.Contains(graphs.Unlike, data):
			g, err = graphs.DrawUnlike(data, uint64(k+1))
		default:
			g, err = dataset.Read(filepath.Join(b.root, data), k)
		}
		if err != nil && k == 0 {
			return nil, err
		} else if err != nil {
			break
		}
		all = append(all, g)
	}
	b.data, b.splits = data, all
	return all, nil
}
