// Package report writes HTML pages, which need no other file, no script and no network, and Parquet.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Pages writes and serves what the program heddle adds to a run: federation.Pages.
type Pages struct{}

// Page is what a page shows.
type Page struct {
	Title, Kicker     string // the kicker is the line below the title
	Lead, Warnings    []string
	Try, Facts        []Fact // settings that may help, with why; figures
	Sections          []Section
	Settings, Command string // that trained models, and what repeats that

	Live        bool // a script replaces the main part
	Done, Total int  // rounds of a run that goes on
}

// Fact is one figure with its name.
type Fact struct{ Name, Value string }

// Section is a part of a page. Without a title it goes on with what is before it.
type Section struct {
	Title     string
	Notes     []string
	Confusion *confusion
	Charts    []Chart
	Tables    []cli.Table
	Foot      string // text below the tables
}

// style is the style sheet of all pages: light and dark, from 320 pixels on, and printed.
//
//go:embed style.css
var style template.CSS

//go:embed page.html
var pageText string

var layout = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// Style is for the layout.
func (Page) Style() template.CSS { return style }

// Write writes the page as HTML.
func (p Page) Write(w io.Writer) error { return layout().Execute(w, p) }

// runPage is the page of a run.
type runPage struct{ cli.RunPage }

// WriteRun writes the page of a run as HTML.
func (Pages) WriteRun(w io.Writer, of cli.RunPage) error {
	r := runPage{of}
	o := r.Result
	learned := Section{Title: "How it was learned", Tables: []cli.Table{r.layers()}}
	if o.Model != nil && o.Model.Closed != nil { // the table of rounds has all figures
		learned.Tables[0] = r.rounds()
	} else {
		learned.Charts = curves(o.Result, r.metric())
	}
	sections := r.quality()
	if r.Runs != nil {
		sections = append(sections, Section{Title: "Runs", Tables: []cli.Table{*r.Runs},
			Foot: "Runs differ in their seed, and in the split of the nodes if the data have several. The model and " +
				"the rest of " +
				"this page are of the run that validates best; the mean is what to expect of another run."})
	}
	sections = append(sections, learned, sentSection(r.peers()))
	if r.Links != nil {
		sections = append(sections, Section{Title: "Over other connections", Tables: []cli.Table{*r.Links},
			Foot: "Predicted from this run: the time of its computation here, plus the latency of every message " +
				"that follows " +
				"another, plus the bytes of the site that sends most."})
	}
	if r.parts() > 1 {
		leaves, err := r.leaves()
		if err != nil {
			return fmt.Errorf("what left each site: %w", err)
		}
		sections = append(sections, leaves)
	}
	return Page{Title: r.title(), Kicker: r.kicker(), Lead: r.lead(), Warnings: slices.Concat(r.Data, o.Warnings()),
		Try: r.tries(), Facts: r.facts(), Sections: sections, Settings: r.Settings, Command: r.Command}.Write(w)
}

// metric is the run's metric as people write it, with the class of two that it is of.
func (r runPage) metric() string {
	return cli.OfClass(metricName(r.Result.Metric), r.Result.Metric, r.Result.Card.Positive)
}

// metricName is a metric as people write it.
func metricName(m eval.Metric) string {
	switch m {
	case "auc":
		return "AUC"
	case "ap":
		return "average precision"
	case "micro-f1":
		return "micro F1"
	case "macro-f1":
		return "macro F1"
	case "r2":
		return "R²"
	case "mae", "rmse", "mrr":
		return strings.ToUpper(string(m))
	}
	return string(m)
}

// layers is what each stage ended with.
func (r runPage) layers() cli.Table {
	o := r.Result
	metric := r.metric()
	t := cli.Table{Name: "Layers",
		Head: []string{"layer", "rounds", "chosen round", "validation " + metric, "test " + metric, "remark"}}
	for _, s := range o.Stages {
		remark := ""
		if s.Stage == o.Ends && len(o.Stages) > 1 {
			remark = "the model ends here"
		}
		t.Add(s.Name, len(s.Curve), s.BestRound, cli.Measure(o.Metric, s.Val), cli.Measure(o.Metric, s.Test), remark)
	}
	return t
}

// rounds is what each round of class means sent and brought.
func (r runPage) rounds() cli.Table {
	o := r.Result
	t := cli.Table{Name: "Rounds", Head: []string{"round", "rows sent",
		"mean validation " + r.metric() + " of its regressions", "gain", "remark"}}
	last := o.Final()
	for k, p := range last.Curve {
		gained, remark := "", ""
		if k > 0 {
			gain := o.Metric.Gain(p.Val, last.Curve[k-1].Val)
			if o.Metric.Plain() {
				gained = fmt.Sprintf("%+.4f", gain)
			} else if !math.IsNaN(gain) { // else nothing validates
				gained = fmt.Sprintf("%+.2f points", 100*gain)
			}
		}
		if p.Round == last.BestRound {
			remark = "this is the model"
		}
		t.Add(k+1, r.rowsSent(k), cli.Measure(o.Metric, p.Val), gained, remark)
	}
	return t
}

// rowsSent is what this process's sites sent of single nodes in round k, from 0.
func (r runPage) rowsSent(k int) string {
	form, classes := r.Result.Model.Spec.Closed, r.Result.Model.Spec.Classes
	if form.Unconnected || !slices.ContainsFunc(r.Shards, (*shard.Shard).Connected) {
		return "none: no edge leads to another site"
	}
	count := func(n int, noun string) string {
		if n > 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	var sent []string
	add := func(width, hops int) {
		if hops > 0 {
			sent = append(sent, count(width, "number")+" over "+count(hops, "hop"))
		}
	}
	add(form.MapWidth(k, classes), form.HopsOf(k))
	add(form.Width(classes), form.LogitHopsOf(k))
	if form.Sums(k) {
		add(classes, 1)
	}
	if len(sent) == 0 {
		return "none"
	}
	return "of each boundary node " + strings.Join(sent, " and ")
}

// peers is what each site of this process sent, by name.
func (r runPage) peers() []heddle.Traffic {
	all := slices.Clone(r.Result.Peers)
	for k := range min(len(all), len(r.Shards)) {
		all[k].Name = r.site(r.Shards[k].Rank)
	}
	return all
}

// site is the name of that rank's site.
func (r runPage) site(rank int) string {
	if rank < len(r.Names) {
		return r.Names[rank]
	}
	return fmt.Sprintf("part %d", rank)
}

// sentSection is what each of peers sent, in numbers and as bars.
func sentSection(peers []heddle.Traffic) Section {
	t := cli.Table{Name: "Bytes and messages sent",
		Head: []string{"site", "rows (halo)", "updates (reduce)", "control", "together", "on the wire", "messages"}}
	for _, p := range peers {
		wire := "–"
		if p.Wire > 0 {
			wire = cli.Bytes(p.Wire)
		}
		t.Add(p.Name, cli.Bytes(p.Halo), cli.Bytes(p.Reduce), cli.Bytes(p.Control), cli.Bytes(p.Total()), wire,
			p.Messages)
	}
	return Section{Title: t.Name, Charts: sentBars(peers), Tables: []cli.Table{t},
		Foot: "Rows of nodes are halo, model updates reduce; control is frame headers, fingerprints and barriers. " +
			"On the wire " +
			"is what the connections of libp2p carried, including encryption. A message goes to one other site."}
}
