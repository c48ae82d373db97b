// Package report writes an HTML page of a run or of a partition, which needs no other file, no script and no network.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// Run is what the page of a run shows.
type Run struct {
	Result   *heddle.Result
	Plan     heddle.Plan    // on which the sites agreed
	Shards   []*shard.Shard // of this process
	Names    []string       // of all sites by rank; nil: they have none
	Date     time.Time      // of its end
	Runs     *Table         // the runs of which this one validates best, or nil
	Links    *Table         // duration of the run over other connections, or nil
	Settings string         // by which the model was trained, as a settings file
	Command  string         // that repeats the run
	Data     []string       // warnings of the data
}

// Fact is one figure with its name.
type Fact struct{ Name, Value string }

// Table is rows of text under a head; the first column is of names.
type Table struct {
	Name string // for those who do not see it; of a Run's tables its place on the page gives it
	Head []string
	Rows [][]string
	Text bool // all columns are of text, not of numbers
}

// Print writes t as plain text, in columns.
func (t Table) Print(w io.Writer) error {
	lines := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		fmt.Fprintln(lines, strings.Join(row, "\t"))
	}
	return lines.Flush()
}

// Render writes a Table by the part "table" of all pages, or a Chart by "chart".
func Render(w io.Writer, part string, shown any) error { return layout.ExecuteTemplate(w, part, shown) }

// named returns the table under that name; nil stays nil.
func (t *Table) named(name string) *Table {
	if t == nil {
		return nil
	}
	return &Table{name, t.Head, t.Rows, t.Text}
}

// section is a part of the page.
type section struct {
	Title     string
	Notes     []string
	Confusion *confusion
	Chart     []Chart
	Tables    []Table
}

// contents is what report.html shows.
type contents struct {
	Title, Kicker     string
	Style             template.CSS
	Lead, Warnings    []string
	Facts             []Fact
	Quality           []section
	Layers            Table
	Curves            []Chart
	Links             *Table
	Runs              *Table
	Sent              Table
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

// Write writes the page of r as HTML.
func Write(w io.Writer, r Run) error {
	o := r.Result
	c := contents{Style: template.CSS(Style), Title: r.title(), Kicker: r.kicker(), Lead: r.lead(),
		Warnings: slices.Concat(r.Data, o.Warnings()), Facts: r.facts(),
		Layers: r.learned(), Runs: r.Runs, Links: r.Links.named("Over other connections"),
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

// OfClass adds to the name of a ranking metric the positive class of two (empty = there are not two).
func OfClass(name string, m eval.Metric, class string) string {
	if class == "" || !m.Ranks() {
		return name
	}
	return name + " of class " + class
}

// learned is what each stage ended with, or each round of class means brought.
func (r Run) learned() Table {
	o := r.Result
	if o.Model != nil && o.Model.Closed != nil {
		return r.rounds()
	}
	t := Table{Name: "Layers", Head: []string{"layer", "rounds", "chosen round", "validation " + metricName(o.Metric), "test " + metricName(o.Metric), "remark"}}
	for _, s := range o.Stages {
		row := []string{s.Name, fmt.Sprint(len(s.Curve)), fmt.Sprint(s.BestRound), Measure(o.Metric, s.Val), Measure(o.Metric, s.Test), ""}
		if s.Stage == o.Ends && len(o.Stages) > 1 {
			row[5] = "the model ends here"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rounds is what each round of class means sent and brought.
func (r Run) rounds() Table {
	o := r.Result
	t := Table{Name: "Rounds", Head: []string{"round", "rows sent",
		"mean validation " + metricName(o.Metric) + " of its regressions", "gain", "remark"}}
	last := o.Final()
	for k, p := range last.Curve {
		row := []string{fmt.Sprint(k + 1), r.rowsSent(k), Measure(o.Metric, p.Val), "", ""}
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
func (r Run) rowsSent(k int) string {
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
func (r Run) peers() []heddle.Traffic {
	all := make([]heddle.Traffic, len(r.Result.Peers))
	for k, p := range r.Result.Peers {
		if all[k] = p; k < len(r.Shards) {
			all[k].Name = r.site(r.Shards[k].Rank)
		}
	}
	return all
}

// site is the name of that rank's site.
func (r Run) site(rank int) string {
	if rank < len(r.Names) {
		return r.Names[rank]
	}
	return fmt.Sprintf("part %d", rank)
}

// Sent is what each of peers sent, in numbers and as bars.
func Sent(peers []heddle.Traffic) (Table, Chart) {
	t := Table{Name: "Bytes and messages sent", Head: []string{"site", "rows (halo)", "updates (reduce)", "control", "together", "on the wire", "messages"}}
	for _, p := range peers {
		wire := "–"
		if p.Wire > 0 {
			wire = Bytes(p.Wire)
		}
		t.Rows = append(t.Rows, []string{p.Name, Bytes(p.Halo), Bytes(p.Reduce), Bytes(p.Control), Bytes(p.Total()), wire, fmt.Sprint(p.Messages)})
	}
	return t, sentBars(peers)
}

// Measure writes a metric: of classes in percent, of numbers as it is. NaN is "none", of a ranking
// "undefined".
func Measure(m eval.Metric, x float64) string {
	if m.Plain() && !math.IsNaN(x) || m.Ranks() {
		return m.Text(x)
	}
	return Percent(x)
}

// Within is Measure of what is known to within bound: an AUC or AP has only the digits that the bound supports.
func Within(m eval.Metric, x, bound float64) string {
	if m.Ranks() {
		return m.Within(x, bound)
	}
	return Measure(m, x)
}

// Percent writes a fraction in percent; NaN is "none".
func Percent(x float64) string {
	if math.IsNaN(x) {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*x)
}

// Bytes writes a number of bytes with a decimal unit: 1 kB is 1000 bytes.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), 0
	for x >= 999.5 && unit < 4 {
		x /= 1000
		unit++
	}
	digits := 0
	if x < 9.995 {
		digits = 2
	} else if x < 99.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, x, []string{"B", "kB", "MB", "GB", "TB"}[unit])
}

// listed joins names as a sentence does.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
