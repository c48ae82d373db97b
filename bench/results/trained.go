package results

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
)

// AboutTrained is the introduction of the page of subcommand trained.
var AboutTrained = page.About{
	Name:  "trained",
	Title: "Trained layers in few bytes",
	Text: `Validation metric and bytes of layers that are trained in rounds, beside Retexo's own setting. Test
nodes are read only for Retexo's row and the last row. The metric is accuracy
in %, AUC for tolokers; MB are 10⁶ bytes that all peers send.`,
}

// CommandTrained registers the flags of the subcommand trained and returns it.
func CommandTrained(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	o.bind(f)
	return o.within(func(ctx context.Context, p *page.Page, b *book) error { return o.printTrained(ctx, p, b) })
}

// steps are plans of a data set; each keeps the changes of those before it.
type steps struct {
	data, from string // settings of the first
	names      []string
	changes    []string
}

// cheaper returns the steps of a data set; last alternates names and changes.
func cheaper(data, from string, last ...string) steps {
	s := steps{data: data, from: "--method=layer-wise " + from, names: []string{"float32, every step"},
		changes: []string{""}}
	for k := 0; k < len(last); k += 2 {
		s.names, s.changes = append(s.names, last[k]), append(s.changes, last[k+1])
	}
	return s
}

// oneByOne are names and changes of the steps that change one thing each.
var oneByOne = []string{
	"rows int8", "--rows=int8 --compress=zstd",
	"updates int16", "--sums=int16 --updates=int16",
	"updates int8", "--updates=int8",
	"updates int4", "--updates=int4",
	"2 local steps", "--local-steps=2 --rounds=75 --eval-every=2",
	"5 local steps", "--local-steps=5 --rounds=30 --eval-every=1",
	"up to 60 rounds, patience 5", "--rounds=60 --patience=5",
	"10 local steps", "--rounds=15 --patience=0 --local-steps=10",
}

// trainedSteps are the steps of each data set, the fastest data set first.
var trainedSteps = []steps{
	cheaper("amazon-photo", "--encoder=pca:64 --hidden=64 --lr=0.01 --decay=0.005 --rounds=150 --eval-every=4",
		append(oneByOne, "rows int4, sums int8", "--rows=int4 --sums=int8")...),
	cheaper("cora", "--encoder=pca:128 --layer-output=logits --row-norm=l1 --hidden=64 --lr=0.01 --decay=0.005 "+
		"--rounds=150 --eval-every=4", oneByOne...),
	cheaper("amazon-computers", "--encoder=pca:128 --hidden=256 --lr=0.01 --decay=0.0005 --rounds=150 --eval-every=4",
		"rows, updates int8, sums int16", "--rows=int8 --compress=zstd --sums=int16 --updates=int8",
		"5 local steps", "--local-steps=5 --rounds=30 --eval-every=1",
		"updates int4", "--updates=int4"),
}

// printTrained prints each step's validation, its difference to the reference's own setting over the same runs, and
// bytes.
func (o options) printTrained(ctx context.Context, p *page.Page, b *book) error {
	p.Table("data set %s", "plan %s", "test %s", "validation %.2f", "less the reference's %s", "halo MB %.2f",
		"sums MB %.2f", "control MB %.2f", "total MB %.2f", "times fewer %.0f", "seconds %.1f", "runs %d")
	var settings []string
	for _, one := range trainedSteps {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), one.data) {
			continue
		}
		k := slices.IndexFunc(ownChoices, func(c ownChoice) bool { return c.data == one.data })
		all := []experiment{ownChoices[k].experiment()}
		all[0].Federation().SecureSums = "off" // as it was measured first
		flags := one.from
		for k, name := range one.names {
			flags += " " + one.changes[k]
			e, err := planned(name, one.data, flags)
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		runs, err := b.runsOf(one.data, o.seeds)
		if err != nil {
			return err
		}
		var reference summary
		for k, e := range all {
			s, err := b.run(ctx, e, runs)
			if err != nil {
				return err
			}
			if k == 0 {
				reference = s
			}
			test := ""
			if k == 0 || k == len(all)-1 {
				test = s.test()
			}
			halo, reduce, control := s.bytes()
			p.Row(one.data, e.Name, test, s.val(), s.apart(reference), halo, reduce, control, s.megabytes(),
				reference.megabytes()/s.megabytes(), s.seconds(), len(s.runs))
			settings = append(settings, fmt.Sprintf("- %s, %s:\n  `%s`", one.data, e.Name, s.setting()))
		}
	}
	details(p, settings)
	return nil
}

// apart returns the mean difference of s to t in the metric of the validation nodes, run by run, and its standard
// error.
func (s summary) apart(t summary) string {
	var all []float64
	for i, r := range s.runs {
		all = append(all, 100*float64(r.Val-t.runs[i].Val))
	}
	mean, dev := spread(all)
	return fmt.Sprintf("%+.2f ± %.2f", mean, dev/math.Sqrt(float64(len(all))))
}
