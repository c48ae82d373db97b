// Package latency measures how long a run takes over slow connections.
package latency

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/plan"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "latency",
	Title: "Time over slow connections",
	Text: `Whole runs of peers in one process, each behind a simulated connection (` + "`--link`" + `) whose rate all
that it sends shares. Seconds are from the first message to the last parameter, medians over seeds;
connections exist already: a handshake takes some messages more. *One after another* counts the
messages on the longest path. Each of them takes the latency, all together *latency s*; the rest of
the seconds goes to bytes and computation. MB are 10⁶ bytes of all peers. Accuracy is in %.`,
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	data := f.String("data", "cora", "data sets, separated by commas")
	links := f.String("links", "latency=50ms,rate=5Mbit latency=200ms,rate=1Mbit", "connections, separated by spaces")
	peers := f.Int("peers", 4, "number of peers")
	seeds := f.Int("seeds", 3, "number of seeds, from 1")
	return func(ctx context.Context, p *page.Page) error {
		if *seeds < 1 {
			return fmt.Errorf("seeds must be at least 1 (got %d)", *seeds)
		}
		p.Table("data set %s", "connection %s", "test %.1f", "MB %.2f", "messages %d",
			"one after another %d", "latency s %.1f", "seconds %.1f", "predicted s %.1f")
		for _, name := range strings.Split(*data, ",") {
			g, err := graphs.Open(*root, name)
			if err != nil {
				return err
			}
			for _, link := range strings.Fields(*links) {
				one := heddle.Defaults(plan.ClassMeans, "")
				one.Peers, one.Link = *peers, link
				if err := measure(ctx, p, g, one, *seeds); err != nil {
					return fmt.Errorf("%s, %s: %w", name, link, err)
				}
			}
		}
		return nil
	}
}

// measure adds the row of a plan: the median over its seeds, and the mean accuracy.
func measure(ctx context.Context, p *page.Page, g *graph.Graph, plan heddle.Plan, seeds int) error {
	link, err := netsim.ParseTable(plan.Link)
	if err != nil {
		return err
	}
	var runs []*heddle.Result
	test := 0.0
	for seed := range seeds {
		plan.Seed = uint64(seed + 1)
		r, err := heddle.Train(ctx, g, plan)
		if err != nil {
			return err
		}
		runs, test = append(runs, r), test+r.Test/float64(seeds)
	}
	median := func(figure func(*heddle.Result) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, figure(r))
		}
		slices.Sort(all)
		return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	}
	worst := link.Worst()
	trips := median(func(r *heddle.Result) float64 { return float64(r.Load.Trips) })
	p.Row(g.Name, plan.Link, 100*test,
		median(func(r *heddle.Result) float64 { return float64(r.Total().Total()) / 1e6 }),
		int(median(func(r *heddle.Result) float64 { return float64(r.Total().Messages) })), int(trips),
		trips*worst.Latency.Seconds(), median(func(r *heddle.Result) float64 { return r.Seconds }),
		median(func(r *heddle.Result) float64 { return worst.Predict(r.Load).Seconds() }))
	return nil
}
