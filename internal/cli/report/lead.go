package report

import (
	"fmt"
	"math"

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
		name = r.Plan.Model + " · " + name
	}
	return fmt.Sprintf("%s · seed %d · %s", name, r.Plan.Seed, r.Date.UTC().Format("2 January 2006, 15:04 UTC"))
}

func (r runPage) parts() int { return r.Shards[0].Parts }

// whole reports whether this process has the shards of all sites.
func (r runPage) whole() bool { return len(r.Shards) == r.parts() }

// lead says in sentences what was trained, how good it is and what it cost.
func (r runPage) lead() []string {
	return []string{r.what() + " " + r.how(), r.cost()}
}

func (r runPage) what() string {
	model, nodes := r.Result.Plan.Model, r.Shards[0].Nodes
	if r.parts() == 1 {
		return fmt.Sprintf("One model (%s) was trained on a graph of %d nodes in one place.", model, nodes)
	}
	named := ""
	if n := len(r.Names); n > 0 && n <= 6 {
		named = " (" + listed(r.Names) + ")"
	}
	if r.whole() {
		return fmt.Sprintf("%d sites%s, simulated on one machine, trained one model (%s) of a graph of %d nodes that is spread over them.", r.parts(), named, model, nodes)
	}
	return fmt.Sprintf("%d sites%s trained one model (%s) of a graph of %d nodes that is spread over them. This page was written by %s.",
		r.parts(), named, model, nodes, r.site(r.Shards[0].Rank))
}

// how says how good the model is, beside the baseline.
func (r runPage) how() string {
	o, f := r.Result, r.Result.Figures
	if math.IsNaN(o.Test) && f != nil && f.Test.Rows > 0 && o.Metric.Ranks() {
		return fmt.Sprintf("Its %s is undefined, since the %d test nodes have one class only.", metricName(o.Metric),
			f.Test.Rows)
	}
	if math.IsNaN(o.Test) {
		return "There are no test nodes, so nothing says how well it does on nodes that it has not seen."
	}
	if o.Plan.Task.Links() {
		return fmt.Sprintf("Links that training did not know rank with %s %.3f among drawn pairs.", metricName(o.Metric), o.Test)
	}
	over, within, baseline := "the test nodes of all sites", "", ""
	if f != nil {
		over = fmt.Sprintf("%d test nodes", f.Test.Rows)
		if f.Test.Low == f.Test.Low && f.Test.High == f.Test.High {
			within = fmt.Sprintf(" (95 %% interval %s)", interval(o.Metric, f.Test))
		}
		if f.Test.Baseline == f.Test.Baseline && f.Majority >= 0 && o.Metric.Ranks() {
			baseline = fmt.Sprintf(" A ranking by chance would give %.1f %%.", 100*f.Test.Baseline)
		} else if f.Test.Baseline == f.Test.Baseline && f.Majority >= 0 && !o.Metric.OfOrder() {
			baseline = fmt.Sprintf(" Naming class %s for every node would give %.1f %%.", f.Test.Classes[f.Majority].Name, 100*f.Test.Baseline)
		}
	}
	if o.Metric.OfNumbers() {
		if f != nil && f.Test.Baseline == f.Test.Baseline {
			baseline = fmt.Sprintf(" Predicting the mean of the training nodes would give %s.", cli.Measure(o.Metric, float64(f.Test.Baseline)))
		}
		return fmt.Sprintf("Its %s is %s%s on %s, which training did not use.%s", metricName(o.Metric), cli.Measure(o.Metric, o.Test), within, over, baseline)
	}
	said := fmt.Sprintf("Its %s is %.1f %%%s on", cli.OfClass(metricName(o.Metric), o.Metric, o.Card.Positive),
		100*o.Test, within)
	if o.Metric.OfOrder() || o.TestBound != 0 {
		said = fmt.Sprintf("Its %s is %s%s on", cli.OfClass(metricName(o.Metric), o.Metric, o.Card.Positive),
			cli.Within(o.Metric, o.Test, o.TestBound), within)
	}
	if o.Metric == "accuracy" {
		said = fmt.Sprintf("It names the right class of %.1f %%%s of", 100*o.Test, within)
	}
	return fmt.Sprintf("%s %s, which training did not use.%s", said, over, baseline)
}

func (r runPage) cost() string {
	o, sum := r.Result, r.Result.Total()
	switch {
	case r.parts() == 1:
		return fmt.Sprintf("Training took %s; nothing was sent.", duration(o.Seconds))
	case r.whole():
		return fmt.Sprintf("Training took %s, in which the sites sent %s to one another.", duration(o.Seconds), cli.Bytes(sum.Total()))
	}
	return fmt.Sprintf("Training took %s, in which this site sent %s to the others.", duration(o.Seconds), cli.Bytes(sum.Total()))
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
	o, sum := r.Result, r.Result.Total()
	all := []Fact{
		{"test " + metricName(o.Metric), cli.Measure(o.Metric, o.Test)},
		{"validation " + metricName(o.Metric), cli.Measure(o.Metric, o.Val)},
		{"seconds", fmt.Sprintf("%.1f", o.Seconds)},
		{"seconds waiting for sites", fmt.Sprintf("%.1f", o.Waited)},
		{"rounds", fmt.Sprint(o.Rounds)},
		{"bytes sent", cli.Bytes(sum.Total())},
		{"messages sent", fmt.Sprint(sum.Messages)},
		{"messages one after another", fmt.Sprint(o.Load.Trips)},
	}
	if r.parts() > 1 {
		all = append(all, Fact{"sums over the sites", o.Sums.Trust})
	}
	if f := o.Fetched; f.Rows > 0 {
		all = append(all, Fact{"batches whose features are fetched at once", fmt.Sprint(f.Group)},
			Fact{"features of other sites' nodes from the cache", fmt.Sprintf("%.1f %%", 100*float64(f.Cached)/float64(f.Rows))})
	}
	if o.Privacy != nil {
		all = append(all, Fact{"kept private", o.Privacy.String()})
	}
	return all
}
