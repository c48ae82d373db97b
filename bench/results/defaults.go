package results

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/plan"
)

// AboutDefaults is the introduction of the page of subcommand defaults.
var AboutDefaults = page.About{
	Name:  "defaults",
	Title: "The defaults of each model",
	Text: `What a model reaches by its defaults, as "heddle train --data X --model M", beside the best of a grid of 24
settings, which was fixed before it ran, and with method layer-wise beside the best of its 16 settings whose rows are of
components, as by default. Validation nodes choose with one seed; the chosen one is run over three seeds or splits, and
so are the defaults. The metric is accuracy in %, AUC for tolokers.`,
}

// defaultsData are the data sets, from the least to run to the most.
var defaultsData = []string{"cora", "citeseer", "chameleon-filtered", "squirrel-filtered", "actor", "amazon-photo",
	"imdb", "dblp-citation", "lastfm-asia", "tolokers", "amazon-computers", "coauthor-cs", "facebook-pages",
	"github-web-ml"}

// defaultsModels are the models of each method; full-batch runs on one machine.
var defaultsModels = map[string][]string{
	plan.LayerWise: {"gcn", "gin", "sage", "gat", "gatv2", "sage-pool"},
	plan.FullBatch: {"gcn", "gin", "sage", "gat", "gatv2", "sage-pool", "appnp", "sign", "mlp"},
}

// withinOfGrid is how many points the defaults may stay below the best of the grid.
const withinOfGrid = 1.0

// byDefault returns the settings that ask for the defaults of a model.
func byDefault(method, model string) string {
	if method == plan.FullBatch {
		method += " --peers=1"
	}
	return "--method=" + method + " --model=" + model
}

// modelGrid returns the settings that the defaults of a model are compared with.
func modelGrid(method, model string, columns int) []string {
	last := []string{"--norm=none", "--norm=layer", "--norm=batch"}
	if method == plan.LayerWise {
		last = []string{"--encoder=raw --dropout=0.3", "--encoder=pca:64 --dropout=0.3",
			"--encoder=pca:128 --dropout=0.3"}
		if columns < 128 {
			last = []string{"--encoder=raw --dropout=0", "--encoder=raw --dropout=0.3", "--encoder=raw --dropout=0.6"}
		}
	}
	return combine([]string{byDefault(method, model)}, []string{"--lr=0.003", "--lr=0.01"},
		[]string{"--hidden=64", "--hidden=256"}, []string{"--decay=0.0005", "--decay=0.005"}, last)
}

// CommandDefaults registers the flags of the subcommand defaults and returns it.
func CommandDefaults(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	var method string
	var alone bool
	f.StringVar(&method, "method", plan.LayerWise, "layer-wise, or full-batch on one machine")
	f.BoolVar(&alone, "alone", false, "the defaults alone, without their grids")
	o.bind(f)
	return o.within(func(ctx context.Context, p *page.Page, b *book) error {
		if alone {
			return o.printDefaultsAlone(ctx, p, b, method)
		}
		return o.printDefaults(ctx, p, b, method)
	})
}

// typedModels read the types of edges: their defaults are run only on typedData.
var typedModels, typedData = []string{"rgcn", "rsage"}, []string{"imdb", graphs.Typed}

// printDefaultsAlone prints what the defaults of each model reach. A generated graph is a new sample for each seed.
func (o options) printDefaultsAlone(ctx context.Context, p *page.Page, b *book, method string) error {
	p.Table("model %s", "data set %s", "test %s", "validation %.2f", "total MB %.1f", "runs %d")
	models := defaultsModels[method]
	if method == plan.FullBatch {
		models = slices.Concat(models, typedModels)
	}
	for _, model := range models {
		for _, data := range append(slices.Clip(defaultsData), graphs.Typed) {
			if !o.wants(model) || !o.wantsData(data) ||
				slices.Contains(typedModels, model) && !slices.Contains(typedData, data) {
				continue
			}
			chosen, err := o.chosen(ctx, b, data,
				[]family{{"defaults", []string{byDefault(method, model)}, data != graphs.Typed}})
			if err != nil {
				return err
			}
			if s := chosen[0]; s.refused == "" {
				p.Row(model, data, s.test(), s.val(), s.megabytes(), len(s.runs))
			}
		}
	}
	return nil
}

// printDefaults prints each model's defaults next to the best of its grid.
func (o options) printDefaults(ctx context.Context, p *page.Page, b *book, method string) error {
	p.Table("model %s", "data set %s", "test %s", "validation %.2f", "test of the best %s", "its validation %.2f",
		"difference %+.2f", "best of components: test %s", "its validation %.2f", "difference %+.2f",
		"settings of the best %s")
	var verdicts []string
	for _, model := range defaultsModels[method] {
		if !o.wants(model) {
			continue
		}
		near, alike, sets := 0, 0, 0
		for _, data := range defaultsData {
			if !o.wantsData(data) {
				continue
			}
			splits, err := b.read(data)
			if err != nil {
				return err
			}
			grid := modelGrid(method, model, splits[0].X.Cols())
			components := slices.DeleteFunc(slices.Clone(grid), func(flags string) bool {
				return method == plan.LayerWise && splits[0].X.Cols() >= 128 && strings.Contains(flags, "--encoder=raw")
			})
			chosen, err := o.chosen(ctx, b, data, []family{
				{"defaults", []string{byDefault(method, model)}, true},
				{"grid", grid, true}, {"components", components, true}})
			if err != nil {
				return err
			}
			ours, best, usual := chosen[0], chosen[1], chosen[2]
			if ours.refused != "" || best.refused != "" || usual.refused != "" {
				continue
			}
			apart, _ := difference(ours.summary, best.summary, testOf)
			less, _ := difference(ours.summary, usual.summary, testOf)
			p.Row(model, data, ours.test(), ours.val(), best.test(), best.val(), apart, usual.test(), usual.val(), less,
				"`"+best.setting()+"`")
			if sets++; apart >= -withinOfGrid {
				near++
			}
			if less >= -withinOfGrid {
				alike++
			}
		}
		verdicts = append(verdicts, fmt.Sprintf("- %s: %d of %d, and %d of the best of components", model, near, sets,
			alike))
	}
	p.Text("The defaults are at most %.0f point below the best of the grid on so many data sets:\n\n%s", withinOfGrid,
		strings.Join(verdicts, "\n"))
	return nil
}
