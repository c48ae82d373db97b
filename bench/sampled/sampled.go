// Package sampled measures training by sampled mini-batches: its accuracy compared with full-batch training, and the
// time of an epoch by the size of groups and the latency of the network.
package sampled

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/clock"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/kernels/measure"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "sampled",
	Title: "Mini-batch training",
	Text: `Test accuracy of sampled mini-batches beside full-batch training, in percent, and the time of an
epoch by group and latency. Both train the same layers from the same defaults; the epoch and, of
mini-batches, batch size, fan-outs and schedule are chosen by validation. A batch's size is in labels.`,
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	names := f.String("graph", "cora,amazon-photo,amazon-computers,coauthor-cs,facebook-pages", "graphs to measure")
	models := f.String("models", "gcn,sage", "convolutions")
	var o options
	f.StringVar(&o.sizes, "batch-sizes", "512,1024", "batch sizes to choose from")
	f.StringVar(&o.fanouts, "fanouts", "10,25", "fan-outs of all hops to choose from")
	f.StringVar(&o.samplers, "samplers", "neighbour", "samplers to measure")
	f.StringVar(&o.schedules, "schedules", "constant", "learning rate schedules of mini-batches to choose from")
	f.StringVar(&o.rates, "rates", "", "learning rates of both to choose from; default: their own")
	f.IntVar(&o.seeds, "seeds", 3, "seeds")
	f.IntVar(&o.rounds, "rounds", 200, "epochs of mini-batches; full batch has its default")
	f.IntVar(&o.every, "eval-every", 2, "epochs from one validation to the next, of both")
	f.Float64Var(&o.train, "train", 0, "fraction of nodes to train on; 0: the set's own split")
	link := f.String("latency", "", "latencies to time epochs at, as 1ms,10ms,50ms")
	peers := f.String("peers", "2,4", "numbers of peers, of -latency and -bytes")
	groups := f.String("groups", "1,2,4,8,16", "sizes of groups, of -latency and -bytes")
	count := f.Bool("bytes", false, "bytes of an epoch, beside those of DistDGL's messages")
	caches := f.String("caches", "0,64", "MiB of the caches of features, of -bytes")
	python := f.String("distdgl", "", "Python with DGL, to run DistDGL beside two peers")
	return func(ctx context.Context, p *page.Page) error {
		if *python != "" {
			return besideDistDGL(ctx, p, *root, *names, o.train, *python)
		}
		if *link != "" {
			return times(ctx, p, *root, *names, o.train, strings.Split(*link, ","), *peers, *groups)
		}
		if *count {
			return volume(ctx, p, *root, *names, o.train, *peers, *groups, *caches)
		}
		p.Table("graph %s", "model %s", "sampler %s", "seeds %d", "full batch %.2f", "deviation %.2f",
			"mini-batch %.2f", "deviation %.2f", "difference %+.2f", "chosen: batch, fan-out, schedule %s")
		for name := range strings.SplitSeq(*names, ",") {
			g, err := graphs.Open(*root, name)
			if err != nil {
				return err
			}
			for model := range strings.SplitSeq(*models, ",") {
				if err := accuracy(ctx, p, g, model, o); err != nil {
					return fmt.Errorf("%s, %s: %w", name, model, err)
				}
			}
		}
		return nil
	}
}

// options are the options of accuracy.
type options struct {
	samplers, sizes, fanouts, schedules, rates string

	seeds, rounds, every int
	train                float64
}

// split returns g with a share of its nodes in training, half of the others in validation and the rest in test.
func split(g *graph.Graph, share float64, seed uint64) *graph.Graph {
	if share == 0 {
		return g
	}
	one, key := *g, rng.New(seed).FoldString("bench/sampled")
	one.Split = make([]graph.Split, g.N())
	for i := range one.Split {
		switch u := key.Float64(uint64(i)); {
		case u < share:
			one.Split[i] = graph.Train
		case u < (1+share)/2:
			one.Split[i] = graph.Val
		default:
			one.Split[i] = graph.Test
		}
	}
	return &one
}

// numbers reads a list of numbers with commas between.
func numbers(text string) (all []int, err error) {
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil {
			return nil, fmt.Errorf("a list must be numbers with commas between (got %q)", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// moments are the mean and the standard deviation of some numbers.
func moments(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(max(1, len(x)-1))
	}
	return mean, math.Sqrt(deviation)
}

// accuracy prints both ways on one graph, and of mini-batches each sampler.
func accuracy(ctx context.Context, p *page.Page, whole *graph.Graph, model string, o options) error {
	var full []float64
	for seed := range uint64(o.seeds) {
		plan := heddle.Defaults(plan.FullBatch, model)
		plan.Seed, plan.Gradient().EvalEvery = seed+1, o.every
		best, err := o.bestRate(ctx, split(whole, o.train, seed+1), plan)
		if err != nil {
			return err
		}
		full = append(full, 100*best.Test)
	}
	a, da := moments(full)
	for sampler := range strings.SplitSeq(o.samplers, ",") {
		var sampled []float64
		var chosen []string
		for seed := range uint64(o.seeds) {
			best, what, err := chosenOf(ctx, split(whole, o.train, seed+1), model, sampler, seed+1, o)
			if err != nil {
				return err
			}
			sampled, chosen = append(sampled, 100*best.Test), append(chosen, what)
		}
		b, db := moments(sampled)
		p.Row(whole.Name, model, sampler, o.seeds, a, da, b, db, b-a, strings.Join(chosen, "; "))
	}
	return nil
}

// bestRate trains with each learning rate, or with the plan's own if there is none to choose, and returns the run that
// validates best.
func (o options) bestRate(ctx context.Context, g *graph.Graph, plan heddle.Plan) (best *heddle.Result, err error) {
	if o.rates == "" {
		return heddle.Train(ctx, g, plan)
	}
	for text := range strings.SplitSeq(o.rates, ",") {
		rate, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return nil, fmt.Errorf("rates must be numbers with commas between (got %q)", o.rates)
		}
		plan.Gradient().LR = float32(rate)
		r, err := heddle.Train(ctx, g, plan)
		if err != nil {
			return nil, err
		}
		if best == nil || r.Val > best.Val {
			best = r
		}
	}
	return best, nil
}

// chosenOf trains by mini-batches with each of the settings of a sampler, and returns the run that validates best.
func chosenOf(ctx context.Context, g *graph.Graph, model, sampler string, seed uint64,
	o options) (best *heddle.Result, what string, err error) {
	plan := heddle.Defaults(plan.MiniBatch, model)
	plan.Seed, plan.Peers, plan.Transport, plan.MiniBatch.Sampler, plan.Gradient().Rounds, plan.Gradient().EvalEvery =
		seed, 2, "memory", sampler, o.rounds, o.every
	sizes, err := numbers(o.sizes)
	if err != nil {
		return nil, "", err
	}
	fanouts, err := numbers(o.fanouts)
	if err != nil {
		return nil, "", err
	}
	for _, size := range sizes {
		for _, k := range fanouts {
			for schedule := range strings.SplitSeq(o.schedules, ",") {
				plan.MiniBatch.BatchSize, plan.Gradient().Schedule, plan.MiniBatch.Fanouts = size, schedule, []int{k}
				r, err := o.bestRate(ctx, g, plan)
				if err != nil {
					return nil, "", err
				}
				if best == nil || r.Val > best.Val {
					best, what = r, fmt.Sprintf("%d, %d, %s", size, k, schedule)
				}
			}
		}
	}
	return best, what, nil
}

// times prints the time of an epoch of each number of peers, latency and group.
func times(ctx context.Context, p *page.Page, root, names string, share float64, latencies []string,
	peers, groups string) error {
	p.Table("graph %s", "peers %d", "latency %s", "group %d", "relays an epoch %d", "of the relays, ms %.0f",
		"of the sums, ms %.0f", "ms an epoch %.0f", "MB of features and samples an epoch %.2f")
	counts, err := numbers(peers)
	if err != nil {
		return err
	}
	sizes, err := numbers(groups)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(names, ",") {
		g, err := graphs.Open(root, name)
		if err != nil {
			return err
		}
		g = split(g, share, 1)
		labels := len(g.InSplit(graph.Train))
		for _, k := range counts {
			for _, latency := range latencies {
				trip, err := time.ParseDuration(latency)
				if err != nil {
					return err
				}
				for _, b := range sizes {
					plan := heddle.Defaults(plan.MiniBatch, "sage")
					plan.Transport, plan.Link = "memory", "latency="+latency
					plan.Gradient().Rounds, plan.Gradient().EvalEvery, plan.MiniBatch.BatchSize = 4, 1<<30, 64
					plan.MiniBatch.Fanouts, plan.Gradient().Hidden, plan.Peers, plan.MiniBatch.Group = []int{5, 5}, 64,
						k, b
					took, sent, err := timed(ctx, g, plan)
					if err != nil {
						return err
					}
					steps := (labels + plan.MiniBatch.BatchSize - 1) / plan.MiniBatch.BatchSize
					relays := (steps + b - 1) / b * plan.Gradient().Layers
					ms := 2e3 * trip.Seconds() // a question and its answer, or the parts of a sum and the sum
					p.Row(name, plan.Peers, latency, plan.MiniBatch.Group, relays, ms*float64(relays),
						ms*float64(steps), 1e3*took, sent/1e6)
				}
			}
		}
	}
	return nil
}

// timed returns the seconds of the fastest epoch after the first, and the bytes of rows that the first peer sends in
// one.
func timed(ctx context.Context, g *graph.Graph, p heddle.Plan) (seconds, sent float64, err error) {
	shards, err := heddle.Split(g, p)
	if err != nil {
		return 0, 0, err
	}
	var before, after int64
	seconds = math.Inf(1)
	err = clock.Epochs(ctx, p, shards, func(e heddle.Event, took measure.Cost) {
		if after = e.Sent.Halo; e.Round == 0 {
			before = after
		} else {
			seconds = min(seconds, took.Wall.Seconds())
		}
	})
	return seconds, float64(after-before) / float64(p.Gradient().Rounds-1), err
}
