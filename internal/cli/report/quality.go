package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/train/figures"
)

// confusion is how often nodes of each class were given each class.
type confusion struct {
	Name, Caption string
	Head          []string
	Rows          []confusionRow
	Many          bool // classes
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

// quality is how good the model is, in detail: over the test nodes or, where there are none, the validation nodes.
func (r runPage) quality() []section {
	f := r.Result.Figures
	if l := r.Result.Links; l != nil {
		return []section{r.ranks(l)}
	}
	if f == nil {
		return nil
	}
	over, nodes := f.Test, "test nodes"
	if over.Rows == 0 {
		over, nodes = f.Val, "validation nodes"
	}
	if over.Rows == 0 {
		return nil
	}
	if over.Targets != nil {
		return []section{targets(f, nodes), r.bySite(f)}
	}
	notes, more := mistakes(over)
	return []section{{Title: "Right and wrong, class by class", Notes: notes, Confusion: confusionOf(over, nodes), Tables: append(more, classes(over))},
		r.bySite(f), measures(f)}
}

// mostClasses is how many classes a matrix has on the page, upright how many with names that are written across.
const mostClasses, upright = 20, 8

// confusionOf is the matrix of a set of nodes; nil: there is none, or it is too large to read.
func confusionOf(s figures.Set, nodes string) *confusion {
	if s.Confusion == nil || len(s.Confusion) > mostClasses {
		return nil
	}
	c := &confusion{Name: "Confusion matrix", Caption: "Rows are the true classes, columns those that the model names. Numbers of " + nodes + "; the diagonal is right.",
		Head: []string{"true class"}, Many: len(s.Confusion) > upright}
	for k, row := range s.Confusion {
		total := int64(0)
		for _, n := range row {
			total += n
		}
		one := confusionRow{Name: s.Classes[k].Name}
		for q, n := range row {
			one.Cells = append(one.Cells, confusionCell{n, fmt.Sprintf("%.2f", 0.5*float64(n)/float64(max(1, total))), k == q})
		}
		c.Head, c.Rows = append(c.Head, "as "+short(s.Classes[k].Name)), append(c.Rows, one)
	}
	return c
}

// mistakes names the most frequent one, and where the matrix is too large lists more of them.
func mistakes(s figures.Set) (notes []string, more []cli.Table) {
	type mistake struct {
		from, to int
		n        int64
	}
	var all []mistake
	wrong := int64(0)
	for k, row := range s.Confusion {
		for q, n := range row {
			if k != q && n > 0 {
				all, wrong = append(all, mistake{k, q, n}), wrong+n
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b mistake) int { return cmp.Compare(b.n, a.n) })
	name := func(k int) string { return s.Classes[k].Name }
	notes = []string{fmt.Sprintf("The most frequent mistake: %d nodes of class %s are called %s, of %d mistakes.", all[0].n, name(all[0].from), name(all[0].to), wrong)}
	if len(s.Confusion) > mostClasses {
		t := cli.Table{Name: "Most frequent mistakes", Head: []string{"true class", "called", "nodes"}}
		for _, m := range all[:min(len(all), mostClasses)] {
			t.Rows = append(t.Rows, []string{name(m.from), name(m.to), fmt.Sprint(m.n)})
		}
		more = []cli.Table{t}
	}
	return notes, more
}

func classes(s figures.Set) cli.Table {
	t := cli.Table{Name: "Classes", Head: []string{"class", "nodes", "named", "precision", "recall", "F1"}}
	for _, c := range s.Classes {
		t.Rows = append(t.Rows, []string{c.Name, fmt.Sprint(c.Labelled), fmt.Sprint(c.Predicted), cli.Percent(float64(c.Precision)), cli.Percent(float64(c.Recall)), cli.Percent(float64(c.F1))})
	}
	return t
}

// targets is how far predictions of numbers are off, beside those of the mean.
func targets(f *figures.Figures, nodes string) section {
	over := f.Test
	if over.Rows == 0 {
		over = f.Val
	}
	t := cli.Table{Name: "Targets", Head: []string{"target", "R²", "MAE", "MAE of the mean", "RMSE", "RMSE of the mean", "mean", "deviation"}}
	text := func(v figures.Value) string { return cli.Measure("mae", float64(v)) }
	for k, one := range over.Targets {
		t.Rows = append(t.Rows, []string{one.Name, cli.Measure("r2", float64(one.R2)), text(one.MAE), text(one.BaselineMAE), text(one.RMSE), text(one.BaselineRMSE),
			text(figures.Value(f.Units[k].Mean)), text(figures.Value(f.Units[k].Deviation))})
	}
	return section{Title: "How far predictions are off", Tables: []cli.Table{t}, Notes: []string{"Errors of " + nodes + ", in the units of the target. " +
		"Mean and deviation are those of the training nodes of all sites; whoever knows nothing else predicts the mean."}}
}

// bySite is the metric of the test nodes of each site that this process knows, beside that of all.
func (r runPage) bySite(f *figures.Figures) section {
	metric := metricName(r.Result.Metric)
	t := cli.Table{Name: "Sites", Head: []string{"site", "test nodes", "test " + metric, "95 % interval", "baseline", "validation " + metric}}
	text := func(s figures.Set) string {
		return cli.Within(r.Result.Metric, float64(s.Metric), float64(s.MetricBound))
	}
	row := func(name string, test, val figures.Set) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(test.Rows), text(test), interval(r.Result.Metric, test),
			cli.Measure(r.Result.Metric, float64(test.Baseline)), text(val)})
	}
	var bars []Bar
	for k, s := range f.Sites {
		name := s.Name
		if k < len(r.Shards) && len(f.Sites) == len(r.Shards) {
			name = r.site(r.Shards[k].Rank)
		}
		if r.parts() > 1 {
			row(name, s.Test, s.Val)
			bars = append(bars, Bar{name, float64(s.Test.Metric), float64(s.Test.Low), float64(s.Test.High)})
		}
	}
	for _, told := range f.Published {
		t.Rows = append(t.Rows, []string{told.Name, fmt.Sprintf("%d or more", told.Rows), fmt.Sprintf("about %.0f %%", 100*told.Metric), "–", "–", "–"})
		bars = append(bars, Bar{told.Name, told.Metric, math.NaN(), math.NaN()})
	}
	row("all together", f.Test, f.Val)
	baseline := "The baseline names the class that most training nodes have, for every node."
	if r.Result.Metric.OfOrder() {
		bars, baseline = nil, "The baseline names the median class of the training nodes, for every node."
	}
	if r.Result.Metric.OfNumbers() {
		bars, baseline = nil, "The baseline predicts the mean of the training nodes, for every node."
	}
	chart := barsOf("Test "+metric+" of each site", metric, bars, float64(f.Test.Metric), "all sites")
	s := section{Title: "Site by site", Chart: charts(chart), Tables: []cli.Table{t},
		Notes: []string{baseline}}
	if n := len(f.Published); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d other sites publish their figures, rounded.", n, r.parts()-len(f.Sites)))
	}
	if r.parts() == 1 {
		s.Title = "Beside the baseline"
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

// measures are other measures than the run's metric, and what probabilities are worth.
func measures(f *figures.Figures) section {
	t := cli.Table{Name: "Other measures", Head: []string{"measure", "test", "validation"}}
	for _, m := range []struct {
		name  string
		of    func(figures.Set) figures.Value
		bound func(figures.Set) figures.Value // of a ranking
	}{
		{"accuracy", func(s figures.Set) figures.Value { return s.Accuracy }, nil},
		{"F1, all nodes alike (micro)", func(s figures.Set) figures.Value { return s.MicroF1 }, nil},
		{"F1, all classes alike (macro)", func(s figures.Set) figures.Value { return s.MacroF1 }, nil},
		{cli.OfClass("area under the ROC curve", "auc", f.PositiveName()),
			func(s figures.Set) figures.Value { return s.AUC },
			func(s figures.Set) figures.Value { return s.AUCBound }},
		{cli.OfClass("average precision", "ap", f.PositiveName()), func(s figures.Set) figures.Value { return s.AP },
			func(s figures.Set) figures.Value { return s.APBound }},
		{"calibration error before", func(s figures.Set) figures.Value { return s.ECE }, nil},
		{"calibration error after", func(s figures.Set) figures.Value { return s.Calibrated }, nil},
	} {
		test, val := float64(m.of(f.Test)), float64(m.of(f.Val))
		if !math.IsNaN(test) || !math.IsNaN(val) {
			row := []string{m.name, cli.Percent(test), cli.Percent(val)}
			if m.bound != nil {
				row[1], row[2] = cli.Within("auc", test, float64(m.bound(f.Test))),
					cli.Within("auc", val, float64(m.bound(f.Val)))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	s := section{Title: "Other measures", Tables: []cli.Table{t}}
	if by := divisors(f.Calibration()); by != "" {
		text := fmt.Sprintf("The calibration error is how far a probability is from how often it proves right, on average. "+
			"For the probabilities in predictions.csv the model's scores are divided by %s fitted on validation nodes.", by)
		if f.Test.Calibrated > f.Test.ECE {
			text += " On the test nodes that did not help."
		}
		s.Notes = append(s.Notes, text)
	}
	if h := f.Threshold; h != nil {
		text := fmt.Sprintf("Class %s is named from a probability of %.1f %% on: chosen on validation nodes for %s.",
			h.Class, 100*h.Probability, h.Goal)
		if !h.Reached {
			text += " They do not reach that goal; this is as near as they come."
		}
		s.Notes = append(s.Notes, text)
	}
	if len(f.Thresholds) > 0 {
		s.Tables = append(s.Tables, thresholds(f))
		s.Notes = append(s.Notes, fmt.Sprintf("Each class is named from a probability of its own on: chosen on validation nodes for %s.", f.Thresholds[0].Goal))
	}
	return s
}

// divisors says what scores are divided by; empty: they are as they were.
func divisors(temperatures eval.Temperatures) string {
	switch {
	case temperatures.Classes != nil:
		return fmt.Sprintf("a number for each class, %.3g to %.3g, which were", slices.Min(temperatures.Classes), slices.Max(temperatures.Classes))
	case temperatures.Of(0) != 1:
		return fmt.Sprintf("%.3g, which was", temperatures.Of(0))
	}
	return ""
}

// thresholds says from which probability on each of several classes is named.
func thresholds(f *figures.Figures) cli.Table {
	t := cli.Table{Name: "Thresholds", Head: []string{"class", "from probability", "validation nodes reach the goal"}}
	for k, one := range f.Thresholds {
		t.Rows = append(t.Rows, []string{f.Test.Classes[k].Name, cli.Percent(one.Probability), map[bool]string{true: "yes", false: "no"}[one.Reached]})
	}
	return t
}

// charts are those that show something.
func charts(all ...Chart) (list []Chart) {
	for _, c := range all {
		if c.SVG != "" {
			list = append(list, c)
		}
	}
	return list
}
