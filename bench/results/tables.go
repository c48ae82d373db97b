package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/plan"
)

// row is one line of a table: an experiment, and the choices among which validation decides.
type row struct {
	experiment
	grid []func(*experiment) // every variant is tried with some seeds (none = as it is)
	try  int                 // how many seeds (0 = tuneSeeds)
}

// tuneSeeds is how many seeds (and splits) a variant is tried with if a row does not set it; their mean validation
// metric decides.
const tuneSeeds = 2

type table struct {
	name string
	data []string
	rows func(data string) []row
}

func tables() []table {
	return []table{
		{"all", []string{"amazon-photo", "amazon-computers", "coauthor-cs", "dblp-citation", "facebook-pages",
			"github-web-ml", "twitch", "tolokers"}, everything},
	}
}

func tableNames() (names []string) {
	for _, t := range tables() {
		names = append(names, t.name)
	}
	return names
}

// runsOf is how many runs a row takes: one for each split of the large sets, which come with five.
func (b *book) runsOf(data string, seeds int) (int, error) {
	splits, err := b.read(data)
	if len(splits) == 5 {
		seeds = min(seeds, 5)
	}
	return seeds, err
}

func (o options) printTable(ctx context.Context, p *page.Page, b *book) error {
	all := tables()
	i := slices.IndexFunc(all, func(t table) bool { return t.name == o.table })
	if i < 0 {
		return fmt.Errorf("table must be one of %s (got %q)", strings.Join(tableNames(), ", "), o.table)
	}
	p.Table("data set %s", "what %s", "test %s", "validation %.2f", "after each stage %s", "halo MB %.2f",
		"updates MB %.2f", "runs %d")
	var settings []string
	for _, data := range all[i].data {
		if !o.wantsData(data) {
			continue
		}
		runs, err := b.runsOf(data, o.seeds)
		if err != nil {
			return err
		}
		for _, r := range all[i].rows(data) {
			if !o.wants(r.Name) {
				continue
			}
			r.Data = data
			e, err := b.tuned(ctx, r)
			if err != nil {
				return err
			}
			s, err := b.run(ctx, e, runs)
			if err != nil {
				return err
			}
			halo, reduce, _ := s.bytes()
			p.Row(s.Data, s.Name, s.test(), s.val(), s.stages(), halo, reduce, len(s.runs))
			settings = append(settings, fmt.Sprintf("- %s, %s:\n  `%s`", data, r.Name, s.setting()))
		}
	}
	details(p, settings)
	return nil
}

// details prints settings, which a reader opens.
func details(p *page.Page, settings []string) {
	p.Text("<details><summary>settings that validation chose</summary>\n\n%s\n\n</details>",
		strings.Join(settings, "\n"))
}

// tuned trains every variant of r and returns the one that validates best on average. Without validation nodes that is
// the first. It skips variants that cannot train on the data set.
func (b *book) tuned(ctx context.Context, r row) (best experiment, err error) {
	if len(r.grid) == 0 {
		return r.experiment, nil
	}
	top := math.Inf(-1)
	var refused refusal
	for _, change := range r.grid {
		e := r.experiment
		change(&e)
		s, err := b.run(ctx, e, cmp.Or(r.try, tuneSeeds))
		if errors.As(err, &refused) {
			fmt.Fprintf(os.Stderr, "  %s, %s: refused %s: %v\n", r.Data, r.Name, e.setting(), err)
			continue
		} else if err != nil {
			return best, err
		}
		val := s.val()
		fmt.Fprintf(os.Stderr, "  %s, %s: validation %.2f with %s\n", r.Data, r.Name, val, e.setting())
		if best.Name == "" || val > top {
			best, top = e, val
		}
	}
	if best.Name == "" {
		return best, refused
	}
	return best, nil
}

// setting is the flags of heddle train that differ from the defaults of the method and model.
func (e experiment) setting() string {
	flags := "--data " + e.Data
	usual := e.Usual()
	first := heddle.Defaults(e.Method, "")
	for _, s := range plan.Settings(e.Method) {
		value, base := e.Get(s), usual.Get(s)
		switch s.Name {
		case "method":
			base = plan.ClassMeans
		case "model", "task", "decoder":
			base = first.Get(s)
		}
		if value != base {
			flags += " --" + s.Flag + "=" + value
		}
	}
	return flags
}

// base returns an experiment of this method and model, with the same starting point for layer-wise and for full-batch,
// which is on one machine.
func base(name, method, model string) experiment {
	e := experiment{Name: name, Plan: heddle.Defaults(method, model)}
	e.Gradient().Layers, e.Rows, e.Metric = 2, "float32", "accuracy"
	e.Policy = "random"
	e.Gradient().Hidden, e.Gradient().Rounds, e.Gradient().LR, e.Gradient().Dropout = 64, 200, 0.01, 0.5
	if e.Peers = 1; method == plan.LayerWise {
		e.Peers, e.LayerWise.Encoder = 4, plan.Encoder{Kind: "raw"}
		e.LayerWise.Exchange = "halo" // whose bytes the formulas give
	}
	if c, _ := nn.ConvolutionNamed(model); c.Heads {
		e.Gradient().LR, e.Gradient().Dropout, e.Gradient().AttentionDropout = c.Recipe.LR, c.Recipe.Dropout,
			c.Recipe.AttentionDropout
	}
	return e
}

func each(change ...func(*experiment)) []func(*experiment) { return change }

// cross returns every pair of changes.
func cross(a, b []func(*experiment)) (all []func(*experiment)) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, func(e *experiment) { x(e); y(e) })
		}
	}
	return all
}

func decays(x ...float32) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Gradient().Decay = v })
	}
	return all
}

func rates(x ...float32) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Gradient().LR = v })
	}
	return all
}

func widths(x ...int) (all []func(*experiment)) {
	for _, v := range x {
		all = append(all, func(e *experiment) { e.Gradient().Hidden = v })
	}
	return all
}

func rowNorms() []func(*experiment) {
	return each(func(e *experiment) { e.RowNorm = "none" }, func(e *experiment) { e.RowNorm = "l1" })
}

// pca is an encoder of k principal components.
func pca(k int) plan.Encoder { return plan.Encoder{Kind: "pca", K: k} }

// reference is Retexo's own setting: raw features, two layers of 256, 200 rounds each, one local
// step.
func reference(model string) experiment {
	e := base("layer-wise, Retexo's setting, "+model, plan.LayerWise, model)
	e.Gradient().Hidden, e.Gradient().AttentionDropout = 256, 0
	return e
}

func everything(data string) (rows []row) {
	components := 128
	if data == "tolokers" {
		components = 10
	}
	fix := func(e experiment) experiment {
		if data == "twitch" && e.Method == plan.LayerWise {
			e.Peers, e.Policy = 7, "by-column"
		}
		if data == "tolokers" {
			e.Metric = "auc"
		}
		e.Gradient().EvalEvery = 4
		if e.Method == plan.LayerWise {
			e.Gradient().Rounds = 150
		}
		if data == "tolokers" { // ten dense columns: there is little to overfit, and much to descend
			e.Gradient().Dropout, e.Gradient().Decay, e.Gradient().Rounds = 0.2, 0, 4*e.Gradient().Rounds
		}
		return e
	}
	for _, m := range []string{"gcn", "sage"} {
		e := fix(base("standalone "+m, plan.FullBatch, m))
		grid := rowNorms()
		if data == "tolokers" {
			grid = cross(rates(0.01, 0.03), widths(64, 128))
		}
		rows = append(rows, row{experiment: e, grid: grid})
	}
	for _, m := range []string{"gcn", "sage"} {
		for _, encoder := range []plan.Encoder{{Kind: "raw"}, pca(components), {Kind: "mlp"}} {
			e := base("layer-wise, encoder "+encoder.Kind+", "+m, plan.LayerWise, m)
			e.LayerWise.Encoder, e.Gradient().Dropout = encoder, 0.3
			e = fix(e)
			grid := decays(5e-4, 5e-3)
			if data == "tolokers" {
				grid = rates(0.01, 0.03)
			}
			rows = append(rows, row{experiment: e, grid: grid})
		}
	}
	return rows
}
