package results

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/plan"
)

// AboutCandidates is what the page of the subcommand candidates begins with.
var AboutCandidates = page.About{
	Name:  "candidates",
	Title: "The plans that class-means tries",
	Text: `Validation metric and bytes of the candidates of class-means, and of plans that are not among them.
Test nodes are not read. The metric is accuracy in %, AUC for tolokers and s-ffsd; MB are 10⁶ bytes
that all peers send.`,
}

// passedOver are plans that could be candidates, and are not.
var passedOver = []string{
	"--single --class-rounds=1",
	"--single --hops=4",
	"--single --hops=4 --hops-kept=last --random-features=256",
	"--single --hops=3 --hops-kept=last --random-features=256",
	"--single --hops=4 --hops-kept=last --random-features=128",
	"--single --hops=3 --hops-kept=last --random-features=128",
	"--single --class-target=labels --hops=3 --hops-kept=last --random-features=128",
	"--single --class-target=labels --hops=3 --hops-kept=last --random-features=256",
	"--single --class-target=labels --hops=4 --hops-kept=last --random-features=256",
	"--single --class-target=labels --hops=1",
	"--single --class-target=labels --hops=6",
	"--single --class-target=labels",
	"--single --class-target=labels --hops=4 --hops-kept=all --random-features=128",
	"--single --class-target=residual --random-features=512",
	"--single --class-target=residual --hops=4",
	"--method=layer-wise --model=gcn --encoder=pca:64 --hidden=256 --patience=50 --rows=int8 --sums=auto --updates=int16",
	"--method=layer-wise --model=sage --encoder=pca:64 --hidden=64 --patience=50 --rows=int8 --sums=auto --updates=int16",
}

// CommandCandidates registers the flags of the subcommand candidates and returns it.
func CommandCandidates(f *flag.FlagSet) func(context.Context, *page.Page) error {
	var o options
	o.bind(f)
	return o.within(func(ctx context.Context, p *page.Page, b *book) error { return o.printCandidates(ctx, p, b) })
}

// candidate is a row of the table.
type candidate struct {
	experiment
	closed bool
	usual  bool               // of class-means
	tried  bool               // by class-means, whatever the others give
	of     map[string]summary // by data set; none where the plan does not fit it
}

// candidatesOf are the rows of the table: those of class-means, then those passed over.
func candidatesOf() (all []*candidate, err error) {
	for _, c := range heddle.Defaults(heddle.Plan{Method: plan.ClassMeans}).Candidates() {
		e := experiment{Name: c.Name, Plan: c.Plan}
		e.Peers, e.Policy = 4, "random"
		all = append(all, &candidate{e, true, c.Usual, !c.Many, map[string]summary{}})
	}
	for _, flags := range passedOver {
		e, err := planned("`"+flags+"`", "cora", flags)
		if err != nil {
			return nil, err
		}
		all = append(all, &candidate{e, e.InClosedForm(), false, false, map[string]summary{}})
	}
	return all, nil
}

// printCandidates prints each row's validation and bytes, and how much training in rounds and a second layer
// put right.
func (o options) printCandidates(ctx context.Context, p *page.Page, b *book) error {
	rows, err := candidatesOf()
	if err != nil {
		return err
	}
	var sets []string
	columns := []string{"plan %s"}
	for _, data := range gridData {
		if data == "nell" || !o.wantsData(data) { // nell has no node that validates
			continue
		}
		sets, columns = append(sets, data), append(columns, data+" %s")
		runs, err := b.runsOf(data, o.seeds)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if !o.wants(row.Name) {
				continue
			}
			s, err := b.run(ctx, row.onData(data), runs)
			if _, refused := errors.AsType[refusal](err); err != nil && !refused {
				return err
			} else if err == nil {
				row.of[data] = s
			}
		}
	}
	p.Table(columns...)
	for _, row := range rows {
		if !o.wants(row.Name) {
			continue
		}
		cells := []any{row.Name}
		for _, data := range sets {
			cell := "–"
			if s, ok := row.of[data]; ok {
				cell = fmt.Sprintf("%.2f (%.2f)", s.val(), s.megabytes())
			}
			cells = append(cells, cell)
		}
		p.Row(cells...)
	}
	p.Text("A cell is the mean validation metric, and the MB in brackets; –: the plan does not fit the data.")
	if err := printRules(p, b, rows, sets); err != nil {
		return err
	}
	if !slices.ContainsFunc(rows, func(c *candidate) bool { return !c.closed && len(c.of) > 0 }) {
		return nil
	}
	p.Table("data set %s", "best closed form %s", "validation %.2f", "best in rounds %s", "validation %.2f", "errors that rounds put right, in % %.1f",
		"errors that a second layer put right at most, %% %.1f")
	for _, data := range sets {
		closed, trained := best(rows, data, true), best(rows, data, false)
		if closed == nil || trained == nil {
			continue
		}
		c, t := closed.of[data].val(), trained.of[data].val()
		p.Row(data, closed.Name, c, trained.Name, t, 100*(t-c)/(100-c), secondLayer(rows, data))
	}
	return nil
}

// best returns the row of one kind that validates best on a data set; nil: none fits it.
func best(rows []*candidate, data string, closed bool) (of *candidate) {
	for _, row := range rows {
		s, ok := row.of[data]
		if ok && row.closed == closed && (of == nil || s.val() > of.of[data].val()) {
			of = row
		}
	}
	return of
}

// secondLayer returns how many of the wrong answers of a first layer its second one put right, in per cent: the most of
// the rows that are trained in rounds.
func secondLayer(rows []*candidate, data string) float64 {
	most := math.Inf(-1)
	for _, row := range rows {
		s, ok := row.of[data]
		if !ok || row.closed || len(s.runs[0].StageVals) < 2 {
			continue
		}
		before := s.mean(func(r record) float64 { return 1 - float64(r.StageVals[0]) })
		after := s.mean(func(r record) float64 { return 1 - float64(r.StageVals[1]) })
		most = max(most, 100*(before-after)/before)
	}
	return most
}
