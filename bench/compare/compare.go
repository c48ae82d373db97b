// Package compare makes Retexo's own comparison anew (Kolluri, Choudhary, Hooi and Saxena, arXiv
// 2302.13053).
package compare

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/plan"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "compare",
	Title: "Accuracy against bytes sent",
	Text: `Retexo's own comparison (Kolluri, Choudhary, Hooi and Saxena, arXiv 2302.13053): test accuracy
against bytes sent, of full-batch and of layer-wise training. Means over seeds, with standard
deviations.`,
}

// way is one way to train.
type way struct {
	name string
	plan func(settings) heddle.Plan
}

var ways = []way{
	{"full batch", endToEnd},
	{"layer-wise, reference", reference},
	{"class means", func(settings) heddle.Plan { return heddle.Defaults(plan.ClassMeans, "") }},
}

// End to end and layer by layer, the same two layers of GCN, width and number of steps: those of the
// reference.

func endToEnd(s settings) heddle.Plan {
	p := heddle.Defaults(plan.FullBatch, "")
	p.FullBatch.Hidden, p.FullBatch.EvalEvery, p.FullBatch.Exchange = 256, 10, "halo"
	p.Gradient().Decay, p.RowNorm = s.endDecay, s.endNorm
	return p
}

func reference(s settings) heddle.Plan {
	p := heddle.Defaults(plan.LayerWise, "")
	p.LayerWise.Encoder, p.Gradient().LR, p.Federation().Exchange, p.LayerWise.KeepLast = plan.Encoder{Kind: "raw"},
		0.01, "halo", true
	p.Gradient().EvalEvery, p.Gradient().Decay, p.RowNorm = 10, s.layerDecay, s.layerNorm
	return p
}

// settings are what differs between graphs: decay and scaling, which validation nodes chose for
// the reference's own setting, and how many splits there are; run k takes the k-th.
type settings struct {
	endDecay   float32
	endNorm    string
	layerDecay float32
	layerNorm  string
	splits     int
}

var tuned = map[string]settings{
	"cora":             {0.002, "l1", 0.005, "l1", 1},
	"amazon-computers": {0.0005, "none", 0.0005, "none", 10},
	"coauthor-cs":      {0.0005, "l1", 0.0005, "none", 10},
	"facebook-pages":   {0, "none", 0.005, "none", 5},
}

// mean is over the seeds of one way on one graph.
type mean struct {
	test, off, halo, reduce, all float64 // accuracy and its standard deviation in per cent; megabytes
	runs                         int
}

// options are the flags.
type options struct {
	root, graphs string
	peers, seeds int
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	root := graphs.Root(f)
	f.StringVar(&o.graphs, "graphs", "cora,amazon-computers,coauthor-cs,facebook-pages", "data sets")
	f.IntVar(&o.peers, "peers", 4, "peers, by a random partition")
	f.IntVar(&o.seeds, "seeds", 3, "runs of each, seeds from 1")
	return func(ctx context.Context, p *page.Page) error {
		o.root = *root
		return o.compare(ctx, p)
	}
}

func (o options) compare(ctx context.Context, p *page.Page) error {
	names := strings.Split(o.graphs, ",")
	for _, graph := range names {
		if _, ok := tuned[graph]; !ok {
			return fmt.Errorf("graph must be one of %s (got %q)",
				strings.Join(slices.Sorted(maps.Keys(tuned)), ", "), graph)
		}
	}
	p.Table("graph %s", "training %s", "test accuracy, % %s", "halo, MB %.2f", "updates, MB %.1f", "all, MB %.1f",
		"of full batch %.4f", "runs %d")
	for _, graph := range names {
		if err := o.measure(ctx, p, graph); err != nil {
			return err
		}
	}
	return nil
}

// measure trains on one graph in each of the ways, with each seed over one partition.
func (o options) measure(ctx context.Context, p *page.Page, graph string) error {
	runs := make([][]heddle.Outcome, len(ways))
	for seed := range o.seeds {
		g, err := dataset.Read(filepath.Join(o.root, graph), seed%tuned[graph].splits)
		if err != nil {
			return err
		}
		var trials []heddle.Trial
		for _, w := range ways {
			plan := w.plan(tuned[graph])
			plan.Peers, plan.Policy, plan.Transport, plan.Seed = o.peers, "random", "memory", uint64(seed+1)
			trials = append(trials, heddle.Trial{Name: w.name, Plan: plan})
		}
		shards, err := heddle.Split(g, trials[0].Plan)
		if err != nil {
			return err
		}
		outcomes, err := heddle.Compare(ctx, g, shards, trials...)
		if err != nil {
			return fmt.Errorf("%s, seed %d: %w", graph, seed+1, err)
		}
		for k, one := range outcomes {
			runs[k] = append(runs[k], one)
		}
	}
	whole := average(runs[0]).all
	for k, w := range ways {
		m := average(runs[k])
		test := fmt.Sprintf("%.2f", m.test)
		if m.runs > 1 {
			test += fmt.Sprintf(" ± %.2f", m.off)
		}
		p.Row(graph, w.name, test, m.halo, m.reduce, m.all, m.all/whole, m.runs)
	}
	return nil
}

func average(runs []heddle.Outcome) (m mean) {
	n := float64(len(runs))
	for _, f := range runs {
		m.test += 100 * f.Test / n
		m.halo += float64(f.Sent.Halo) / 1e6 / n
		m.reduce += float64(f.Sent.Reduce) / 1e6 / n
		m.all += float64(f.Sent.Total()) / 1e6 / n
	}
	for _, f := range runs {
		m.off += (100*f.Test - m.test) * (100*f.Test - m.test) / max(n-1, 1)
	}
	m.off, m.runs = math.Sqrt(m.off), len(runs)
	return m
}
