// Package results runs the experiments on accuracy: means and deviations over seeds, and over a
// data set's splits, with all peers in this process. Every choice is made on validation nodes.
package results

import (
	"context"
	"flag"
	"path/filepath"
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

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	e := experiment{}
	f.StringVar(&e.Data, "data", "cora", "data set")
	table := f.String("table", "", "one of "+strings.Join(tableNames(), ", "))
	root := graphs.Root(f)
	only := f.String("only", "", "with -table: the one data set to run")
	part := f.String("row", "", "with -table: part of the names of the rows to run")
	seeds := f.Int("seeds", 10, "runs, each with its own seed and the next split")
	given := bind(f)
	return func(ctx context.Context, p *page.Page) error {
		if *table != "" {
			return printTable(ctx, p, *table, *only, *part, *root, *seeds)
		}
		plan, _, err := heddle.ReadPlan(nil, given, nil)
		if err != nil {
			return err
		}
		e.Plan = *plan
		splits, err := readSplits(filepath.Join(*root, e.Data))
		if err != nil {
			return err
		}
		s, err := e.run(ctx, splits, *seeds)
		if err != nil {
			return err
		}
		p.Table("data set %s", "mode %s", "model %s", "encoder %s", "test %s", "validation %.2f",
			"after each stage %s", "halo, MB %.2f",
			"updates, MB %.2f", "control, MB %.2f", "seconds %.1f", "runs %d")
		halo, reduce, control := s.bytes()
		test, val := s.final()
		p.Row(s.Data, s.Mode, s.Model, s.Encoder.String(), test, val, s.stages(), halo, reduce, control, s.seconds(),
			len(s.runs))
		p.Text("Settings: `%s`", s.setting())
		return nil
	}
}
