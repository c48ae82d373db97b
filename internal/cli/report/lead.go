package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/plan"
)

func (r runPage) title() string {
	name := r.Shards[0].Name
	if r.parts() > 1 {
		return fmt.Sprintf("%s: one model of %d sites", name, r.parts())
	}
	return name + ": one model"
}

func (r runPage) kicker() string {
	name := r.Plan.Method
	if r.Plan.Method != plan.ClassMeans {
		name = r.Plan.Gradient().Model + " · " + name
	}
	return fmt.Sprintf("%s · seed %d · %s", name, r.Plan.Seed, r.Date.UTC().Format("2 January 2006, 15:04 UTC"))
}

func (r runPage) parts() int { return r.Shards[0].Parts }

// lead describes in sentences what was trained, how good it is and what it cost.
func (r runPage) lead() []string {
	model, nodes, named := cmp.Or(r.Result.Plan.Gradient().Model, r.Result.Plan.Method), r.Shards[0].Nodes, ""
	if n := len(r.Names); n > 0 && n <= 6 {
		named = " (" + strings.Join(r.Names[:n-1], ", ") + " and " + r.Names[n-1] + ")"
	}
	total := r.Result.Total()
	took, sent := duration(r.Result.Seconds), cli.Bytes(total.Total())
	what := fmt.Sprintf("%d sites%s trained one model (%s) of a graph of %d nodes that is spread over them. This page "+
		"was written by %s.", r.parts(), named, model, nodes, r.site(r.Shards[0].Rank))
	cost := fmt.Sprintf("Training took %s, in which this site sent %s to the others.", took, sent)
	switch {
	case r.parts() == 1:
		what = fmt.Sprintf("One model (%s) was trained on a graph of %d nodes in one place.", model, nodes)
		cost = fmt.Sprintf("Training took %s; nothing was sent.", took)
	case len(r.Shards) == r.parts():
		what = fmt.Sprintf("%d sites%s, simulated on one machine, trained one model (%s) of a graph of %d nodes that "+
			"is spread over them.", r.parts(), named, model, nodes)
		cost = fmt.Sprintf("Training took %s, in which the sites sent %s to one another.", took, sent)
	}
	return []string{what + " " + r.how(), cost}
}

// how describes how good the model is, compared with the baseline.
func (r runPage) how() string {
	o, f := r.Result, r.Result.Figures
	metric := metricName(o.Metric)
	switch {
	case math.IsNaN(o.Test) && f != nil && f.Test.Rows > 0 && o.Metric.Ranks():
		return fmt.Sprintf("Its %s is undefined, since the %d test nodes have one class only.", metric, f.Test.Rows)
	case math.IsNaN(o.Test):
		return "There are no test nodes, so nothing shows how well it does on new nodes."
	case o.Plan.Task.Links():
		return fmt.Sprintf("Links that training did not know rank with %s %.3f among random pairs.", metric, o.Test)
	}
	over, within, baseline := "the test nodes of all sites", "", ""
	if f != nil {
		over = fmt.Sprintf("%d test nodes", f.Test.Rows)
		if f.Test.Low == f.Test.Low && f.Test.High == f.Test.High {
			within = fmt.Sprintf(" (95 %% interval %s)", interval(o.Metric, f.Test))
		}
	}
	if f != nil && f.Test.Baseline == f.Test.Baseline {
		switch {
		case o.Metric.OfNumbers():
			baseline = fmt.Sprintf(" Predicting the mean of the training nodes would give %s.",
				cli.Measure(o.Metric, float64(f.Test.Baseline)))
		case f.Majority >= 0 && o.Metric.Ranks():
			baseline = fmt.Sprintf(" A ranking by chance would give %.1f %%.", 100*f.Test.Baseline)
		case f.Majority >= 0 && !o.Metric.OfOrder():
			baseline = fmt.Sprintf(" Naming class %s for every node would give %.1f %%.",
				f.Test.Classes[f.Majority].Name,
				100*f.Test.Baseline)
		}
	}
	figure := fmt.Sprintf("%.1f %%", 100*o.Test)
	if o.Metric.OfNumbers() || o.Metric.OfOrder() || o.TestBound != 0 {
		figure = cli.Within(o.Metric, o.Test, o.TestBound)
	}
	said := fmt.Sprintf("Its %s is %s%s on", cli.OfClass(metric, o.Metric, o.Card.Positive), figure, within)
	if o.Metric == "accuracy" {
		said = fmt.Sprintf("It names the right class of %s%s of", figure, within)
	}
	return fmt.Sprintf("%s %s, which training did not use.%s", said, over, baseline)
}

// duration writes seconds as a person would.
func duration(seconds float64) string {
	switch {
	case seconds < 90:
		return fmt.Sprintf("%.1f seconds", seconds)
	case seconds < 5400:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	}
	return fmt.Sprintf("%.1f hours", seconds/3600)
}

func (r runPage) facts() []Fact {
	o, sent := r.Result, r.Result.Total()
	all := []Fact{
		{"test " + r.metric(), cli.Measure(o.Metric, o.Test)},
		{"validation " + r.metric(), cli.Measure(o.Metric, o.Val)},
		{"seconds", fmt.Sprintf("%.1f", o.Seconds)},
		{"seconds waiting for sites", fmt.Sprintf("%.1f", o.Waited)},
		{"rounds", fmt.Sprint(o.Rounds)},
		{"bytes sent", cli.Bytes(sent.Total())},
		{"messages sent", fmt.Sprint(sent.Messages)},
		{"messages one after another", fmt.Sprint(o.Load.Trips)},
	}
	if r.parts() > 1 {
		all = append(all, Fact{"sums over the sites", o.Sums.Trust})
	}
	if f := o.Fetched; f.Rows > 0 {
		cached := fmt.Sprintf("%.1f %%", 100*float64(f.Cached)/float64(f.Rows))
		all = append(all, Fact{"batches whose features are fetched at once", fmt.Sprint(f.Group)},
			Fact{"features of other sites' nodes from the cache", cached})
	}
	if o.Privacy != nil {
		all = append(all, Fact{"kept private", o.Privacy.String()})
	}
	return all
}
