package results

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/plan"
)

// The grid is fixed before any of it runs: what the default of heddle train is compared with. Of each
// family, validation nodes choose the settings; these are run over all seeds or splits. Closed forms
// are chosen by their mean over tuneSeeds seeds. Models trained in rounds take a hundred times longer:
// these have one encoder and one learning rate, are chosen by one seed, and are run over fewSeeds.

// gridData are the data sets that have features, from the least to run to the most.
var gridData = []string{"cora", "citeseer", "chameleon-filtered", "squirrel-filtered", "actor", "dblp-citation",
	"amazon-photo", "amazon-computers", "imdb", "coauthor-cs", "tolokers", "facebook-pages", "github-web-ml",
	"twitch", "s-ffsd", "nell"}

// published are test figures of one machine from the literature, as the data sets' page has them.
var published = map[string]string{
	"cora": "GCN 81.5, GAT 83.0", "citeseer": "GCN 70.3, GAT 72.5", "coauthor-cs": "GCN 91.1, SAGE 91.3",
	"amazon-photo": "GCN 91.2, SAGE 91.4", "amazon-computers": "GCN 82.6, SAGE 82.4", "nell": "GCN 66.0",
	"tolokers": "GCN 83.6, SAGE 82.4", "actor": "GCN 30.3, SAGE 34.2", "squirrel-filtered": "GCN 39.5, SAGE 36.1",
	"chameleon-filtered": "GCN 40.9, SAGE 37.8",
}

// family is a row of the grid: settings to choose from, as heddle train takes them.
type family struct {
	name   string
	flags  []string
	rounds bool // trained in rounds: fewer seeds
}

// fewSeeds is how many seeds or splits the chosen one of a family that is trained in rounds is run over.
const fewSeeds = 3

// paper is the family of the Retexo paper's settings.
const paper = "the settings of the Retexo paper"

// closedForm are the variants of class-means.
var closedForm = combine([]string{"--class-target=auto", "--class-target=labels"},
	[]string{"--hops=1", "--hops=2", "--hops=3", "--hops=4"}, []string{"--random-features=0", "--random-features=256"})

// gridOf returns the families of a data set of so many columns.
func gridOf(columns int) []family {
	encoder := "--encoder=pca:128"
	if columns < 128 {
		encoder = "--encoder=raw"
	}
	families := []family{
		{plan.ClassMeans, []string{"--method=class-means"}, false},
		{"closed form, classes", closedForm, false},
		{paper, combine([]string{"--method=layer-wise --encoder=raw --row-norm=l1 --exchange=halo --keep-last"}, []string{"--decay=0.005", "--decay=0.0005"}), true},
	}
	for _, model := range []string{"gcn", "sage", "gat"} {
		families = append(families, family{"layer-wise " + model, combine(
			[]string{"--method=layer-wise --solver=adam --layers=2 --lr=0.01 --model=" + model},
			[]string{"--rounds=200 --eval-every=2 --patience=50 " + encoder}, []string{"--hidden=64", "--hidden=256"}), true})
	}
	return families
}

// combine returns every choice of one option of each list.
func combine(lists ...[]string) []string {
	all := []string{""}
	for _, options := range lists {
		var longer []string
		for _, begun := range all {
			for _, option := range options {
				longer = append(longer, strings.TrimSpace(begun+" "+option))
			}
		}
		all = longer
	}
	return all
}

// row returns the family as a row, whose variants are its settings.
func (f family) row(data string) (r row, err error) {
	r.Name, r.Data = f.name, data
	if f.rounds {
		r.try = 1
	}
	for _, flags := range f.flags {
		e, err := planned(f.name, data, flags)
		if err != nil {
			return r, err
		}
		r.experiment = e // if it is the only one
		r.grid = append(r.grid, func(to *experiment) { *to = e })
	}
	if len(r.grid) == 1 {
		r.grid = nil
	}
	return r, nil
}

// withinPoints is how many points class-means may stay below the best of the grid.
const withinPoints = 0.5

// printGrid prints what validation chose of each family, and whether class-means comes near the
// best of them.
func (o options) printGrid(ctx context.Context, p *page.Page, b *book) error {
	p.Table("data set %s", "what %s", "settings %d", "test %s", "validation %.2f", "total MB %.2f",
		"seconds %.1f", "runs %d", "published %s")
	var settings, verdicts []string
	near, sets := 0, 0
	for _, data := range gridData {
		if !o.wantsData(data) {
			continue
		}
		chosen, err := o.chosenOf(ctx, b, data)
		if err != nil {
			return err
		}
		for _, s := range chosen {
			if s.refused != "" {
				settings = append(settings, fmt.Sprintf("- %s, %s: refused: %s", data, s.Name, s.refused))
				continue
			}
			p.Row(data, s.Name, s.of, s.test(), s.val(), s.megabytes(), s.seconds(), len(s.runs), published[data])
			settings = append(settings, fmt.Sprintf("- %s, %s:\n  `%s`", data, s.Name, s.setting()))
		}
		verdict, ok := compared(chosen)
		if verdict != "" {
			verdicts = append(verdicts, fmt.Sprintf("- %s: %s", data, verdict))
			sets++
		}
		if ok {
			near++
		}
	}
	if sets > 0 {
		p.Text("class-means is within %.1f point of the best mean test figure of the grid on %d of %d data sets:\n\n%s",
			withinPoints, near, sets, strings.Join(verdicts, "\n"))
	}
	p.Text("Published figures are of one machine and partly of other splits, some quoted from memory of the papers: see " +
		"the data sets' own page.")
	details(p, settings)
	return nil
}

// choice is what validation chose of a family.
type choice struct {
	summary
	of      int    // how many settings
	refused string // why none of them fits the data
}

// chosenOf runs the families of a data set.
func (o options) chosenOf(ctx context.Context, b *book, data string) (all []choice, err error) {
	splits, err := b.read(data)
	if err != nil {
		return nil, err
	}
	var families []family
	for _, f := range gridOf(splits[0].X.Cols()) {
		if o.wants(f.name) {
			families = append(families, f)
		}
	}
	return o.chosen(ctx, b, data, families)
}

// chosen runs families over a data set.
func (o options) chosen(ctx context.Context, b *book, data string, families []family) (all []choice, err error) {
	for _, f := range families {
		c := choice{of: len(f.flags)}
		r, err := f.row(data)
		if err != nil {
			return nil, err
		}
		runs, err := b.runsOf(data, o.seeds)
		if err != nil {
			return nil, err
		}
		if f.rounds {
			runs = min(runs, fewSeeds)
		}
		e, err := b.tuned(ctx, r)
		if err == nil {
			c.summary, err = b.run(ctx, e, runs)
		}
		var why refusal
		if errors.As(err, &why) {
			c.Name, c.refused = f.name, string(why)
		} else if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// compared tells class-means from the best of the grid by mean test figure, and by validation, over the
// runs that both have made. It is empty where one of the two is missing.
func compared(chosen []choice) (verdict string, near bool) {
	i := slices.IndexFunc(chosen, func(c choice) bool { return c.Name == plan.ClassMeans && c.refused == "" })
	if i < 0 {
		return "", false
	}
	ours := chosen[i].summary
	var best, likely *choice
	ahead := func(c *choice, of func(record) float64) float64 {
		n := min(len(ours.runs), len(c.runs))
		mean, _ := difference(summary{ours.experiment, ours.runs[:n]}, summary{c.experiment, c.runs[:n]}, of)
		return mean
	}
	for k := range chosen {
		c := &chosen[k]
		if k == i || c.refused != "" {
			continue
		}
		if best == nil || ahead(c, testOf) < ahead(best, testOf) {
			best = c
		}
		if likely == nil || ahead(c, valOf) < ahead(likely, valOf) {
			likely = c
		}
	}
	if best == nil {
		return "", false
	}
	gap := ahead(best, testOf)
	verdict = fmt.Sprintf("%+.2f points to %s, %+.2f to what validation prefers (%s); bytes of the best: %.1f times",
		gap, best.Name, ahead(likely, testOf), likely.Name, best.megabytes()/ours.megabytes())
	return verdict, gap >= -withinPoints
}

func testOf(r record) float64 { return float64(r.Test) }

func valOf(r record) float64 { return float64(r.Val) }
