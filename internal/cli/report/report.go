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

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Pages writes and serves what the program heddle adds to a run: federation.Pages.
type Pages struct{}

// Fact is one figure with its name.
type Fact struct{ Name, Value string }

// Render writes a cli.Table by the part "table" of all pages, or a Chart by "chart".
func Render(w io.Writer, part string, shown any) error { return layout.ExecuteTemplate(w, part, shown) }

// named returns the table under that name; nil stays nil.
func named(t *cli.Table, name string) *cli.Table {
	if t == nil {
		return nil
	}
	return &cli.Table{Name: name, Head: t.Head, Rows: t.Rows, Text: t.Text}
}

// section is a part of the page.
type section struct {
	Title     string
	Notes     []string
	Confusion *confusion
	Chart     []Chart
	Tables    []cli.Table
}

// contents is what report.html shows.
type contents struct {
	Title, Kicker     string
	Style             template.CSS
	Lead, Warnings    []string
	Facts             []Fact
	Quality           []section
	Layers            cli.Table
	Curves            []Chart
	Links             *cli.Table
	Runs              *cli.Table
	Sent              cli.Table
	Doors             Chart
	Leaves            *section
	Settings, Command string
}

// Style is the style sheet of all pages: light and dark, from 320 pixels on, and printed.
//
//go:embed style.css
var Style string

//go:embed report.html
var page string

// partsPage has what pages share: tables and charts.
//
//go:embed parts.html
var partsPage string

var layout = template.Must(template.Must(template.New("report").Parse(partsPage)).Parse(page))

// runPage is the page of a run.
type runPage struct{ cli.RunPage }

// WriteRun writes the page of a run as HTML.
func (Pages) WriteRun(w io.Writer, of cli.RunPage) error {
	r := runPage{of}
	o := r.Result
	c := contents{Style: template.CSS(Style), Title: r.title(), Kicker: r.kicker(), Lead: r.lead(),
		Warnings: slices.Concat(r.Data, o.Warnings()), Facts: r.facts(),
		Layers: r.learned(), Runs: r.Runs, Links: named(r.Links, "Over other connections"),
		Settings: r.Settings, Command: r.Command}
	if c.Quality = r.quality(); o.Model == nil || o.Model.Closed == nil { // the table of rounds has all figures
		c.Curves = Curves(o.Result, metricName(o.Metric))
	}
	c.Sent, c.Doors = Sent(r.peers())
	var err error
	if c.Leaves, err = r.leaves(); err != nil {
		return fmt.Errorf("report: what left each site: %w", err)
	}
	return layout.Execute(w, c)
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

// learned is what each stage ended with, or each round of class means brought.
func (r runPage) learned() cli.Table {
	o := r.Result
	if o.Model != nil && o.Model.Closed != nil {
		return r.rounds()
	}
	t := cli.Table{Name: "Layers", Head: []string{"layer", "rounds", "chosen round", "validation " + metricName(o.Metric), "test " + metricName(o.Metric), "remark"}}
	for _, s := range o.Stages {
		row := []string{s.Name, fmt.Sprint(len(s.Curve)), fmt.Sprint(s.BestRound), cli.Measure(o.Metric, s.Val), cli.Measure(o.Metric, s.Test), ""}
		if s.Stage == o.Ends && len(o.Stages) > 1 {
			row[5] = "the model ends here"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rounds is what each round of class means sent and brought.
func (r runPage) rounds() cli.Table {
	o := r.Result
	t := cli.Table{Name: "Rounds", Head: []string{"round", "rows sent",
		"mean validation " + metricName(o.Metric) + " of its regressions", "gain", "remark"}}
	last := o.Final()
	for k, p := range last.Curve {
		row := []string{fmt.Sprint(k + 1), r.rowsSent(k), cli.Measure(o.Metric, p.Val), "", ""}
		if k > 0 {
			gain := o.Metric.Gain(p.Val, last.Curve[k-1].Val)
			if row[3] = fmt.Sprintf("%+.2f points", 100*gain); o.Metric.Plain() {
				row[3] = fmt.Sprintf("%+.4f", gain)
			} else if math.IsNaN(gain) { // nothing validates
				row[3] = ""
			}
		}
		if p.Round == last.BestRound {
			row[4] = "this is the model"
		}
		t.Rows = append(t.Rows, row)
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
	all := make([]heddle.Traffic, len(r.Result.Peers))
	for k, p := range r.Result.Peers {
		if all[k] = p; k < len(r.Shards) {
			all[k].Name = r.site(r.Shards[k].Rank)
		}
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

// Sent is what each of peers sent, in numbers and as bars.
func Sent(peers []heddle.Traffic) (cli.Table, Chart) {
	t := cli.Table{Name: "Bytes and messages sent", Head: []string{"site", "rows (halo)", "updates (reduce)", "control", "together", "on the wire", "messages"}}
	for _, p := range peers {
		wire := "–"
		if p.Wire > 0 {
			wire = cli.Bytes(p.Wire)
		}
		t.Rows = append(t.Rows, []string{p.Name, cli.Bytes(p.Halo), cli.Bytes(p.Reduce), cli.Bytes(p.Control), cli.Bytes(p.Total()), wire, fmt.Sprint(p.Messages)})
	}
	return t, sentBars(peers)
}

// listed joins names as a sentence does.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
