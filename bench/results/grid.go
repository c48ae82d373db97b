package results

import (
	"context"
	"errors"
	"strings"
)

// A grid is fixed before any of it runs. Validation nodes choose the settings of each family, with one seed if it
// trains in rounds; these are run over fewSeeds.

// gridData are the data sets that have features, from the least to run to the most.
var gridData = []string{"cora", "citeseer", "chameleon-filtered", "squirrel-filtered", "actor", "dblp-citation",
	"amazon-photo", "amazon-computers", "imdb", "coauthor-cs", "tolokers", "facebook-pages", "github-web-ml",
	"twitch", "s-ffsd", "nell"}

// family is a row of the grid: settings to choose from, as heddle train takes them.
type family struct {
	name   string
	flags  []string
	rounds bool // trained in rounds: fewer seeds
}

// fewSeeds is how many seeds or splits the chosen one of a family that is trained in rounds is run over.
const fewSeeds = 3

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

// choice is what validation chose of a family.
type choice struct {
	summary
	of      int    // how many settings
	refused string // why none of them fits the data
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

func testOf(r record) float64 { return float64(r.Test) }
