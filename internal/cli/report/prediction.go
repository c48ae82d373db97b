package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/train/figures"
)

// Prediction is what the page of a model's predictions shows.
type Prediction struct {
	Data, File  string // names of the data and of the model file
	Model       string // kind of its layers
	Card        modelfile.Card
	Predictions heddle.Predictions
	Labels      graph.Labels
	Known       []int32 // nodes with a label that training did not use
	KnownAs     string  // their name, such as test nodes
	Score       float64 // the model's metric over them (NaN = there are none)
	Notes       []string
	Date        time.Time

	Together *Together // (nil = one process predicted by itself)
}

// Together is what is known of predictions that the members of a plan computed together.
type Together struct {
	Site              string // that wrote the page
	Neighbours, Edges int    // at other sites, and from them
	*heddle.Inference
	Left *disclosure.Disclosure // what this site sent
}

// WritePrediction writes the page of p as HTML.
func WritePrediction(w io.Writer, p Prediction) error {
	named, warning := p.named()
	c := Page{Title: p.Data + ": predictions", Warnings: p.Notes, Facts: p.facts(), Lead: p.lead(),
		Sections: []Section{named},
		Kicker:   fmt.Sprintf("%s · %s · %s", p.Model, p.File, p.Date.UTC().Format("2 January 2006, 15:04 UTC"))}
	if warning != "" {
		c.Warnings = append([]string{warning}, c.Warnings...)
	}
	if !p.Labels.Multi() {
		c.Sections = append(c.Sections, p.sure())
	}
	proved, err := p.proved()
	if err != nil {
		return err
	}
	c.Sections = append(c.Sections, proved...)
	if t := p.Together; t != nil {
		sent := t.Sent
		sent.Name = t.Site
		c.Sections = append(c.Sections, sentSection([]heddle.Traffic{sent}),
			leavesOf([]string{t.Site}, []*disclosure.Disclosure{t.Left}, []int{p.Predictions.Logits.Rows}))
	}
	return c.Write(w)
}

func (p Prediction) lead() []string {
	n, by := p.Predictions.Logits.Rows, fmt.Sprintf("model (%s) that was trained on %s", p.Model, cmp.Or(p.Card.Dataset,
		"other data"))
	said := fmt.Sprintf("A %s named a class for each of %d nodes.", by, n)
	if t := p.Together; t != nil {
		said = fmt.Sprintf("%s named a class for each of its %d nodes by a %s, with the rows of %d neighbours at "+
			"other sites.",
			t.Site, n, by, t.Neighbours)
	}
	trained := ""
	if p.Card.Test != 0 {
		trained = fmt.Sprintf(" When it was trained, the test %s was %s.", metricName(p.metric()),
			cli.Percent(p.Card.Test))
	}
	right := fmt.Sprintf("Of %d %s, whose labels are known, the %s is %s.", len(p.Known), p.KnownAs,
		cli.OfClass(metricName(p.metric()), p.metric(), p.Card.Positive), cli.Percent(p.Score))
	switch {
	case math.IsNaN(p.Score):
		right = "None of these nodes has a label, so their quality is unknown."
	case p.metric() == "accuracy":
		right = fmt.Sprintf("It names the right class of %.1f %% of %d %s.", 100*p.Score, len(p.Known), p.KnownAs)
	}
	return []string{said, right + trained}
}

func (p Prediction) metric() eval.Metric { return eval.Metric(p.Card.Metric) }

func (p Prediction) facts() []Fact {
	all := []Fact{{"nodes", fmt.Sprint(p.Predictions.Logits.Rows)}, {"classes", fmt.Sprint(p.Predictions.Logits.Cols)}}
	if !math.IsNaN(p.Score) {
		all = append(all, Fact{metricName(p.metric()) + " of " + p.KnownAs, cli.Percent(p.Score)})
	}
	if t := p.Together; t != nil {
		if t.Tested > 0 {
			all = append(all, Fact{fmt.Sprintf("test %s of all sites (%d nodes)", metricName(t.Metric), t.Tested),
				cli.Within(t.Metric, t.Test, t.Bound)})
		}
		all = append(all, Fact{"neighbours at other sites", fmt.Sprint(t.Neighbours)},
			Fact{"edges from them", fmt.Sprint(t.Edges)}, Fact{"bytes sent", cli.Bytes(t.Sent.Total())})
	}
	return all
}

// named counts the nodes that were given each class. warning is not empty if all were given the same.
func (p Prediction) named() (s Section, warning string) {
	n, classes := p.Predictions.Logits.Rows, p.Predictions.Logits.Cols
	given, sums := make([]int, classes), make([]float64, classes)
	for i := range n {
		for _, k := range p.Predictions.Classes(i) {
			given[k]++
		}
		for k, x := range p.Predictions.Probabilities(i) {
			sums[k] += x
		}
	}
	t := cli.Table{Name: "Predicted classes", Head: []string{"class", "nodes", "of all", "mean probability"}}
	var bars []Bar
	for k := range classes {
		share := float64(given[k]) / float64(max(1, n))
		t.Add(p.class(k), given[k], cli.Percent(share), cli.Percent(sums[k]/float64(max(1, n))))
		bars = append(bars, BarOf(p.class(k), share))
		if given[k] == n && n > 1 && !p.Labels.Multi() {
			warning = fmt.Sprintf("the model names one class only, %s, for all %d nodes", p.class(k), n)
		}
	}
	s = Section{Title: "What was predicted", Charts: Bars("Nodes that were given each class", "of all nodes", bars),
		Tables: []cli.Table{t}}
	if h := p.Card.Threshold; h != nil && classes == 2 {
		class, cut := 1, *h
		if p.Card.First() {
			class, cut = 0, eval.Mirrored(cut)
		}
		s.Notes = append(s.Notes, fmt.Sprintf("Class %s is named from a probability of %.1f %% on, which was chosen "+
			"on validation nodes for %s.", p.class(class), 100/(1+math.Exp(-cut)), p.Card.Goal))
	}
	if len(p.Card.Thresholds) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("Each class is named from its own probability on, which was chosen on "+
			"validation nodes for %s.", p.Card.Goal))
	}
	return s, warning
}

func (p Prediction) class(k int) string { return cli.ClassName(p.Card.Classes, k) }

// sure counts nodes by the probability of the class that they were given and, of those with a label, how often that is
// right.
func (p Prediction) sure() Section {
	const bins = 10 // ranges of probabilities
	var nodes, known, right [bins]int
	bin := func(i int) (int, int) {
		k := p.Predictions.Classes(i)[0]
		return k, min(int(p.Predictions.Probabilities(i)[k]*bins), bins-1)
	}
	for i := range p.Predictions.Logits.Rows {
		_, b := bin(i)
		nodes[b]++
	}
	for _, i := range p.Known {
		k, b := bin(int(i))
		if known[b]++; int(p.Labels.Class[i]) == k {
			right[b]++
		}
	}
	t := cli.Table{Name: "Probabilities", Head: []string{"probability of the class", "nodes"}}
	if len(p.Known) > 0 {
		t.Head = append(t.Head, "with a label", "right")
	}
	var bars []Bar
	for b, n := range nodes {
		if n == 0 {
			continue
		}
		row := []any{fmt.Sprintf("%d to %d %%", 10*b, 10*b+10), n, known[b], "–"}
		if known[b] > 0 {
			row[3] = cli.Percent(float64(right[b]) / float64(known[b]))
		}
		t.Add(row[:len(t.Head)]...)
		bars = append(bars, BarOf(row[0].(string), float64(n)/float64(p.Predictions.Logits.Rows)))
	}
	return Section{Title: "How sure the model is", Tables: []cli.Table{t},
		Charts: Bars("Nodes by the probability of the class that they were given", "of all nodes", bars)}
}

// proved is how good the predictions are for nodes whose labels are known.
func (p Prediction) proved() ([]Section, error) {
	if len(p.Known) == 0 || math.IsNaN(p.Score) {
		return nil, nil
	}
	known := p.Labels.Select(p.Known)
	known.Ordered, known.First = p.Card.Ordered, p.Card.First()
	set, err := figures.Of(p.metric(), known, p.Predictions.Logits.Select(p.Known), p.Card.Calibration(), p.Card.Cuts())
	if err != nil {
		return nil, err
	}
	for k := range set.Classes {
		set.Classes[k].Name = p.class(k)
	}
	t := cli.Table{Name: "Measures", Head: []string{"measure", "value"}}
	t.Add(metricName(p.metric()), cli.Measure(p.metric(), p.Score))
	t.Add("95 % interval", interval(p.metric(), set))
	for k, name := range []string{"F1, all classes alike (macro)", "calibration error of the model's scores",
		"calibration error of the probabilities"} {
		if x := [...]figures.Value{set.MacroF1, set.ECE, set.Calibrated}[k]; x == x {
			t.Add(name, cli.Percent(float64(x)))
		}
	}
	return []Section{classByClass(set, p.KnownAs), {Title: "Measures", Tables: []cli.Table{t},
		Notes: []string{"The calibration error is how far a probability is from how often it proves right, on " +
			"average. What scores " +
			"are divided by for it comes from the validation nodes of the training."}}}, nil
}
