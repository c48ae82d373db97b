// Package results runs the experiments on accuracy: means and deviations over seeds, and over a
// data set's splits, with all peers in this process. Every choice is made on validation nodes.
package results

import (
	"context"
	"errors"
	"flag"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
)

// About is what the page of this experiment begins with.
var About = page.About{
	Name:  "results",
	Title: "Accuracy and bytes",
	Text: `Test accuracy and bytes sent on public graphs: means and standard deviations over seeds and over
the splits of a data set. Validation nodes decide every choice.`,
}

// options are the flags of both subcommands.
type options struct {
	table, only, row     string
	root                 *string
	log, svg, from, plan string
	seeds, jobs          int
}

func (o *options) bind(f *flag.FlagSet) {
	o.root = graphs.Root(f)
	f.StringVar(&o.only, "only", "", "data sets to run, with commas between; empty: all")
	f.StringVar(&o.row, "row", "", "rows to run: parts of names with slashes between, or =NAME")
	f.IntVar(&o.seeds, "seeds", 10, "runs, each with its own seed and the next split")
	f.StringVar(&o.log, "log", "", "file of finished runs, which are not run again")
	f.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "runs at the same time")
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	e := experiment{}
	f.StringVar(&e.Data, "data", "cora", "data set")
	f.StringVar(&o.table, "table", "", "which table; an unknown name lists them")
	o.bind(f)
	given := bind(f)
	return o.within(func(ctx context.Context, p *page.Page, b *book) error {
		if o.table != "" {
			return o.printTable(ctx, p, b)
		}
		plan, err := heddle.ReadPlan(nil, given, nil)
		if err != nil {
			return err
		}
		e.Plan = *plan
		s, err := b.run(ctx, e, o.seeds)
		if err != nil {
			return err
		}
		p.Table("data set %s", "method %s", "model %s", "encoder %s", "test %s", "validation %.2f",
			"after each stage %s", "halo, MB %.2f",
			"updates, MB %.2f", "control, MB %.2f", "seconds %.1f", "runs %d")
		halo, reduce, control := s.bytes()
		p.Row(s.Data, s.Method, s.Gradient().Model, s.Encoder().String(), s.test(), s.val(), s.stages(), halo, reduce,
			control, s.seconds(), len(s.runs))
		p.Text("Settings: `%s`", s.setting())
		return nil
	})
}

// within opens the book for a table.
func (o *options) within(print func(context.Context, *page.Page, *book) error) func(context.Context, *page.Page) error {
	return func(ctx context.Context, p *page.Page) error {
		b, err := openBook(o.log, *o.root, o.jobs)
		if err != nil {
			return err
		}
		err = errors.Join(print(ctx, p, b), b.close())
		if err == nil {
			p.Text("Version of the runs: %s.", strings.Join(slices.Sorted(maps.Keys(b.used)), ", "))
		}
		return err
	}
}
