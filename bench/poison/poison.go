// Package poison measures what members that send false values can do to a model.
package poison

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/plan"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "poisoning",
	Title: "Poisoning",
	Text: `What members that send false values can do to a model
([explanation](../explanation/robustness.md)).

Test accuracy in %, mean and standard deviation over the runs; run k has seed k. *As it is*: with the
checks of every run, sums in the clear. *ends*: at least one site refuses what was sent, and the run
ends; *named*: the error names the site that sent it. False labels are used in training and
validation; the accuracy is over test nodes with their true labels. What other sums of the parts gave is in
[ADR 46](../adr/tried-and-left.md).

With skewed labels the sites that lie may have few labels or none; then the lie changes nothing.`,
}

// federation is the number of peers and how many of them lie.
type federation struct {
	peers, liars int
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	data := f.String("data", "cora,citeseer,facebook-pages", "data sets, separated by commas")
	name := f.String("method", plan.ClassMeans, "class-means or layer-wise")
	runs := f.Int("runs", 3, "runs of each cell")
	skew := f.Float64("skew", 0, "Dirichlet parameter of the sites' labels; 0: even")
	only := f.String("lie", "", "the one lie to try; empty: all")
	federations := f.String("sites", "4/1,8/2", "sites and liars among them")
	return func(ctx context.Context, p *page.Page) error {
		m := measurement{root: *root, runs: *runs, skew: *skew, only: *only}
		switch *name {
		case plan.ClassMeans:
			m.plan = heddle.Defaults(plan.ClassMeans, "")
		case plan.LayerWise:
			m.plan = trained()
		default:
			return fmt.Errorf("method must be class-means or layer-wise (got %q)", *name)
		}
		m.plan.Federation().SecureSums, m.plan.Policy = "off", "random"
		p.Table("data set %s", "liars %s", "lie %s", "as it is %s")
		for _, name := range strings.Split(*data, ",") {
			for _, text := range strings.Split(*federations, ",") {
				var at federation
				if _, err := fmt.Sscanf(text, "%d/%d", &at.peers, &at.liars); err != nil {
					return fmt.Errorf("sites must be like 4/1 (got %q)", text)
				}
				if err := m.measure(ctx, p, name, at); err != nil {
					return fmt.Errorf("%s, %s: %w", name, text, err)
				}
			}
		}
		return nil
	}
}

// trained is a plan of layers that are trained in rounds.
func trained() heddle.Plan {
	p := heddle.Defaults(plan.LayerWise, "")
	p.LayerWise.Encoder, p.Gradient().Hidden, p.Gradient().LR, p.Gradient().Decay = plan.Encoder{Kind: "pca", K: 64},
		64, 0.01, 5e-4
	p.LayerWise.LocalSteps, p.Gradient().Rounds, p.Gradient().Patience, p.Rows, p.Federation().Sums = 5, 40, 8, "int8",
		plan.Auto
	return p
}

// measurement measures one plan.
type measurement struct {
	root string
	plan heddle.Plan
	runs int
	skew float64
	only string
}

// measure prints the rows of one data set and federation.
func (m measurement) measure(ctx context.Context, p *page.Page, name string, at federation) error {
	plan := m.plan
	plan.Peers = at.peers
	g, err := graphs.Open(m.root, name)
	if err != nil {
		return err
	}
	row := func(lie recorded.Lie, liars int) error {
		cell, err := m.cell(ctx, g, plan, at.liars, lie)
		if err != nil {
			return fmt.Errorf("%s: %w", lie.Name, err)
		}
		p.Row(name, fmt.Sprintf("%d of %d", liars, at.peers), lie.Name, cell)
		return nil
	}
	if err := row(recorded.Lie{Name: "none"}, 0); err != nil {
		return err
	}
	for _, lie := range recorded.Lies(plan) {
		if m.only != "" && lie.Name != m.only {
			continue
		}
		if err := row(lie, at.liars); err != nil {
			return err
		}
	}
	return nil
}

// cell returns the test accuracy of several runs, or why they ended.
func (m measurement) cell(ctx context.Context, g *graph.Graph, plan heddle.Plan, liars int,
	lie recorded.Lie) (string, error) {
	var tests []float64
	refused, named := 0, 0
	for seed := range m.runs {
		plan.Seed = uint64(seed + 1)
		at := g
		if m.skew > 0 {
			at, plan.Policy = graphs.Skewed(g, plan.Peers, m.skew, plan.Seed), "by-column"
		}
		shards, err := heddle.Split(at, plan)
		if err != nil {
			return "", err
		}
		r, err := recorded.Poison(ctx, plan, shards, liars, lie)
		if errors.Is(err, comm.ErrRefused) {
			refused++
			if by, ok := errors.AsType[*comm.PeerError](err); ok && by.Rank >= plan.Peers-liars {
				named++
			}
			continue
		} else if err != nil {
			return "", err
		}
		tests = append(tests, 100*r.Final().Test)
	}
	ends := map[bool]string{true: "ends, named", false: "ends"}[named == refused]
	switch {
	case refused == m.runs:
		return ends, nil
	case refused > 0:
		return fmt.Sprintf("%s; %s in %d of %d", spread(tests), ends, refused, m.runs), nil
	}
	return spread(tests), nil
}

// spread returns mean and standard deviation as text.
func spread(x []float64) string {
	mean, dev := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		dev += (v - mean) * (v - mean)
	}
	if len(x) < 2 {
		return fmt.Sprintf("%.1f", mean)
	}
	return fmt.Sprintf("%.1f ± %.1f", mean, math.Sqrt(dev/float64(len(x)-1)))
}
