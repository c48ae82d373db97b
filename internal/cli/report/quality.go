package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/figures"
)

// confusion is how often nodes of each class were given each class.
type confusion struct {
	Caption string
	Head    []string
	Rows    []confusionRow
	Many    bool // classes
}

type confusionRow struct {
	Name  string
	Cells []confusionCell
}

type confusionCell struct {
	Count int64
	Shade string // 0 to 0.5: of the row's nodes
	Right bool
}

// quality is how good the model is, in detail: over the test nodes or, without any, the validation nodes.
func (r runPage) quality() []Section {
	f := r.Result.Figures
	if l := r.Result.Links; l != nil {
		return []Section{r.ranks(l)}
	}
	if f == nil {
		return nil
	}
	over, nodes := f.Measured(), "test nodes"
	if f.Test.Rows == 0 {
		nodes = "validation nodes"
	}
	switch {
	case over.Rows == 0:
		return nil
	case over.Targets != nil:
		return []Section{r.inUse(f, over, nodes), targetErrors(f, over, nodes), r.bySite(f)}
	}
	return []Section{r.inUse(f, over, nodes), classByClass(over, nodes), r.bySite(f), measures(f)}
}

// mostClasses is how many classes a matrix on the page has at most, upright how many with horizontal names.
const mostClasses, upright = 20, 8

// classByClass is what nodes of each class are called: as a matrix, or the most frequent mistakes if that is too large
// to read.
func classByClass(s figures.Set, nodes string) Section {
	of := Section{Title: "Right and wrong, class by class"}
	type mistake struct {
		from, to int
		n        int64
	}
	var all []mistake
	wrong := int64(0)
	c := &confusion{Head: []string{"true class"}, Many: len(s.Confusion) > upright,
		Caption: "Rows are the true classes, columns " +
			"those that the model names. Numbers of " + nodes + "; the diagonal is right."}
	for k, row := range s.Confusion {
		total := int64(0)
		for _, n := range row {
			total += n
		}
		one := confusionRow{Name: s.Classes[k].Name}
		for q, n := range row {
			shade := fmt.Sprintf("%.2f", 0.5*float64(n)/float64(max(1, total)))
			if one.Cells = append(one.Cells, confusionCell{n, shade, k == q}); k != q && n > 0 {
				all, wrong = append(all, mistake{k, q, n}), wrong+n
			}
		}
		c.Head, c.Rows = append(c.Head, "as "+cutName(one.Name, longest)), append(c.Rows, one)
	}
	if s.Confusion != nil && len(s.Confusion) <= mostClasses {
		of.Confusion = c
	}
	slices.SortStableFunc(all, func(a, b mistake) int { return cmp.Compare(b.n, a.n) })
	name := func(k int) string { return s.Classes[k].Name }
	if len(all) > 0 {
		of.Notes = []string{fmt.Sprintf("The most frequent mistake: %d nodes of class %s are called %s, of %d "+
			"mistakes.", all[0].n,
			name(all[0].from), name(all[0].to), wrong)}
	}
	if len(all) > 0 && len(s.Confusion) > mostClasses {
		t := cli.Table{Name: "Most frequent mistakes", Head: []string{"true class", "called", "nodes"}}
		for _, m := range all[:min(len(all), mostClasses)] {
			t.Add(name(m.from), name(m.to), m.n)
		}
		of.Tables = append(of.Tables, t)
	}
	t := cli.Table{Name: "Classes", Head: []string{"class", "nodes", "named", "precision", "recall", "F1"}}
	for _, c := range s.Classes {
		t.Add(c.Name, c.Labelled, c.Predicted, cli.Percent(float64(c.Precision)), cli.Percent(float64(c.Recall)),
			cli.Percent(float64(c.F1)))
	}
	of.Tables = append(of.Tables, t)
	return of
}

// targetErrors is how far predictions of numbers are off, next to the errors of predicting the mean.
func targetErrors(f *figures.Figures, over figures.Set, nodes string) Section {
	t := cli.Table{Name: "Targets",
		Head: []string{"target", "R²", "MAE", "MAE of the mean", "RMSE", "RMSE of the mean", "mean", "deviation"}}
	text := func(v figures.Value) string { return cli.Measure("mae", float64(v)) }
	for k, one := range over.Targets {
		t.Add(one.Name, cli.Measure("r2", float64(one.R2)), text(one.MAE), text(one.BaselineMAE), text(one.RMSE),
			text(one.BaselineRMSE), text(figures.Value(f.Units[k].Mean)), text(figures.Value(f.Units[k].Deviation)))
	}
	return Section{Title: "How far predictions are off", Tables: []cli.Table{t},
		Notes: []string{"Errors of " + nodes + ", in the units of the target. Mean and deviation are over the " +
			"training nodes of " +
			"all sites; without other knowledge, the mean is what to predict."}}
}

// bySite is the metric of the test nodes of each site that this process knows, next to the metric of all.
func (r runPage) bySite(f *figures.Figures) Section {
	m := r.Result.Metric
	metric := r.metric()
	t := cli.Table{Name: "Sites",
		Head: []string{"site", "test nodes", "test " + metric, "95 % interval", "baseline", "validation " + metric}}
	text := func(s figures.Set) string { return cli.Within(m, float64(s.Metric), float64(s.MetricBound)) }
	row := func(name string, test, val figures.Set) {
		t.Add(name, test.Rows, text(test), interval(m, test), cli.Measure(m, float64(test.Baseline)), text(val))
	}
	s, sites := Section{Title: "Site by site"}, f.Sites
	if r.parts() == 1 {
		s.Title, sites = "Compared with the baseline", nil
	}
	var bars []Bar
	for k, one := range sites {
		name := one.Name
		if k < len(r.Shards) && len(f.Sites) == len(r.Shards) {
			name = r.site(r.Shards[k].Rank)
		}
		row(name, one.Test, one.Val)
		bars = append(bars, Bar{name, float64(one.Test.Metric), float64(one.Test.Low), float64(one.Test.High)})
	}
	for _, told := range f.Published {
		t.Add(told.Name, fmt.Sprintf("%d or more", told.Rows), fmt.Sprintf("about %.0f %%", 100*told.Metric), "–", "–",
			"–")
		bars = append(bars, BarOf(told.Name, told.Metric))
	}
	row("all together", f.Test, f.Val)
	s.Notes = []string{"The baseline names the class that most training nodes have, for every node."}
	if m.OfOrder() {
		bars, s.Notes[0] = nil, "The baseline names the median class of the training nodes, for every node."
	}
	if m.OfNumbers() {
		bars, s.Notes[0] = nil, "The baseline predicts the mean of the training nodes, for every node."
	}
	s.Tables = []cli.Table{t}
	s.Charts = Bars("Test "+metric+" of each site", metric, bars, BarOf("all sites", float64(f.Test.Metric)))
	if n := len(f.Published); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d other sites publish their figures, rounded.", n,
			r.parts()-len(f.Sites)))
	}
	return s
}

func interval(m eval.Metric, s figures.Set) string {
	if s.Low != s.Low || s.High != s.High {
		return "–"
	}
	if m.Plain() {
		return m.Text(float64(s.Low)) + " to " + m.Text(float64(s.High))
	}
	return fmt.Sprintf("%.1f to %.1f %%", 100*s.Low, 100*s.High)
}

// measures are other measures than the run's metric, and how good probabilities are.
func measures(f *figures.Figures) Section {
	t := cli.Table{Name: "Other measures", Head: []string{"measure", "test", "validation"}}
	add := func(name string, ranks bool, of func(figures.Set) (x, bound figures.Value)) {
		cell := func(s figures.Set) string {
			x, bound := of(s)
			if ranks {
				return cli.Within("auc", float64(x), float64(bound))
			}
			return cli.Percent(float64(x))
		}
		test, _ := of(f.Test)
		if val, _ := of(f.Val); test == test || val == val {
			t.Add(name, cell(f.Test), cell(f.Val))
		}
	}
	add("accuracy", false, func(s figures.Set) (x, bound figures.Value) { return s.Accuracy, 0 })
	add("F1, all nodes alike (micro)", false, func(s figures.Set) (x, bound figures.Value) { return s.MicroF1, 0 })
	add("F1, all classes alike (macro)", false, func(s figures.Set) (x, bound figures.Value) { return s.MacroF1, 0 })
	add(cli.OfClass("area under the ROC curve", "auc", f.PositiveName()), true,
		func(s figures.Set) (x, bound figures.Value) { return s.AUC, s.AUCBound })
	add(cli.OfClass("average precision", "ap", f.PositiveName()), true,
		func(s figures.Set) (x, bound figures.Value) { return s.AP, s.APBound })
	add("calibration error before", false, func(s figures.Set) (x, bound figures.Value) { return s.ECE, 0 })
	add("calibration error after", false, func(s figures.Set) (x, bound figures.Value) { return s.Calibrated, 0 })
	s := Section{Title: t.Name, Tables: []cli.Table{t}}
	if by := divisors(f.Calibration()); by != "" {
		text := fmt.Sprintf("The calibration error is how far a probability is from how often it proves right, on "+
			"average. "+
			"For the probabilities in predictions.csv the model's scores are divided by %s fitted on validation nodes.",
			by)
		if f.Test.Calibrated > f.Test.ECE {
			text += " On the test nodes that did not help."
		}
		s.Notes = append(s.Notes, text)
	}
	if len(f.Thresholds) > 0 {
		t := cli.Table{Name: "Thresholds", Head: []string{"class", "from probability",
			"validation nodes reach the goal"}}
		for k, one := range f.Thresholds {
			reached := "no"
			if one.Reached {
				reached = "yes"
			}
			t.Add(f.Test.Classes[k].Name, cli.Percent(one.Probability), reached)
		}
		s.Tables = append(s.Tables, t)
		s.Notes = append(s.Notes, fmt.Sprintf("Each class is named from its own probability on: chosen on "+
			"validation nodes for %s.",
			f.Thresholds[0].Goal))
	}
	return s
}

// divisors names what scores are divided by; empty if they are unchanged.
func divisors(temperatures eval.Temperatures) string {
	switch {
	case temperatures.Classes != nil:
		return fmt.Sprintf("a number for each class, %.3g to %.3g, which were", slices.Min(temperatures.Classes),
			slices.Max(temperatures.Classes))
	case temperatures.Of(0) != 1:
		return fmt.Sprintf("%.3g, which was", temperatures.Of(0))
	}
	return ""
}
