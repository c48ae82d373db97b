package results

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/plan"
)

// planned is an experiment with the plan of those flags, over four random peers or the data set's own sites.
func planned(name, data, flags string) (experiment, error) {
	given, err := parse(strings.Fields(flags))
	if err != nil {
		return experiment{}, fmt.Errorf("%s: %w", name, err)
	}
	e := experiment{Name: name, Plan: *given}
	if e.Policy = "random"; e.Peers == plan.AutoPeers && e.Federated() {
		e.Peers = 4
	}
	return e.onData(data), nil
}

// way is one way to train, a series of the plot.
type way struct {
	name string
	row  func(data, plan string) (row, error)
}

// ways are those to train on the same data. The last one sends nothing.
var ways = []way{
	{"class means", func(data, plan string) (row, error) {
		e, err := planned("class means", data, plan)
		return row{experiment: e}, err
	}},
	{"Retexo's own setting", func(data, _ string) (row, error) {
		i := slices.IndexFunc(ownChoices, func(c ownChoice) bool { return c.data == data })
		return row{experiment: ownChoices[i].experiment()}, nil
	}},
	{"GCN on one machine", func(data, _ string) (row, error) { return pooledGCN(data), nil }},
}

// pooledGCN is GCN on the data of all sites, all layers at once.
func pooledGCN(data string) row {
	e := base("standalone gcn", plan.FullBatch, "gcn")
	e.Gradient().EvalEvery = 4
	r := row{experiment: e, grid: cross(rowNorms(), decays(5e-4, 2e-3))}
	if data == "tolokers" {
		r.Gradient().Dropout, r.Gradient().Decay, r.Gradient().Rounds, r.grid = 0.2, 0, 800, rates(0.01, 0.03)
	}
	return r
}

// runs are the runs of the way on a data set.
func (w way) runs(ctx context.Context, b *book, data, plan string, seeds int) (summary, error) {
	r, err := w.row(data, plan)
	if err != nil {
		return summary{}, err
	}
	r.experiment = r.onData(data)
	r.Name = w.name
	n, err := b.runsOf(data, seeds)
	if err != nil {
		return summary{}, err
	}
	e, err := b.tuned(ctx, r)
	if err != nil {
		return summary{}, err
	}
	return b.run(ctx, e, n)
}

// wants reports whether the row of that name is to be run.
func (o options) wants(name string) bool {
	return slices.ContainsFunc(strings.Split(o.row, "/"), func(part string) bool {
		whole, exact := strings.CutPrefix(part, "=")
		return exact && name == whole || !exact && strings.Contains(name, part)
	})
}

// wantsData reports whether that data set is to be run.
func (o options) wantsData(name string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), name)
}

// printWays prints the plan next to the other ways to train.
func (o options) printWays(ctx context.Context, p *page.Page, b *book) error {
	p.Table("data set %s", "what %s", "test %s", "validation %.2f", "halo MB %.2f", "updates MB %.2f", "total MB %.2f",
		"seconds %.1f", "runs %d")
	var settings []string
	for _, own := range ownChoices {
		if !o.wantsData(own.data) {
			continue
		}
		for _, w := range ways {
			if !o.wants(w.name) {
				continue
			}
			s, err := w.runs(ctx, b, own.data, o.plan, o.seeds)
			if err != nil {
				return err
			}
			halo, reduce, _ := s.bytes()
			p.Row(own.data, w.name, s.test(), s.val(), halo, reduce, s.megabytes(), s.seconds(), len(s.runs))
			settings = append(settings, fmt.Sprintf("- %s, %s:\n  `%s`", own.data, w.name, s.setting()))
		}
	}
	details(p, settings)
	return nil
}
