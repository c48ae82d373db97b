// Package report writes an HTML page of a run or of a partition, which needs no other file and no
// network.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/train"
)

// Page is what a report shows.
type Page struct {
	Title    string
	Summary  []Fact
	Compare  *Table           // ways of training side by side, or nil
	Links    *Table           // duration of the run over other connections, or nil
	Tried    []heddle.Attempt // plans that preset auto tried; nil: another preset
	Failures *Table           // peers that failed or were slow, and what was done, or nil
	Metric   string           // of Val and Test, as "accuracy"
	Stages   []train.StageResult
	Peers    []heddle.Traffic
	Setting  string // as a settings file
	Command  string // that repeats the run
}

// Fact is one figure with its name.
type Fact struct{ Name, Value string }

// Table is rows of text under a head; the first column is of names, the others of numbers.
type Table struct {
	Head []string
	Rows [][]string
}

//go:embed report.html
var page string

var layout = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent": Percent, "bytes": Bytes, "sum": func(p heddle.Traffic) int64 { return p.Total() },
}).Parse(page))

// Write writes p as HTML.
func Write(w io.Writer, p Page) error {
	loss, err := curves("training loss", p.Stages, func(q train.Point) float64 { return q.Loss })
	if err != nil {
		return fmt.Errorf("report: chart of the loss: %w", err)
	}
	val, err := curves("validation "+p.Metric, p.Stages, func(q train.Point) float64 { return q.Val })
	if err != nil {
		return fmt.Errorf("report: chart of %s: %w", p.Metric, err)
	}
	doors, err := bars(p.Peers)
	if err != nil {
		return fmt.Errorf("report: chart of bytes: %w", err)
	}
	curve, err := tradeOff(p.Metric, p.Tried)
	if err != nil {
		return fmt.Errorf("report: chart of what was tried: %w", err)
	}
	return layout.Execute(w, struct {
		Page
		TriedTable              *Table
		Loss, Val, Doors, Curve template.HTML // SVG that this package has drawn
	}{p, TriedTable(p.Metric, p.Tried), template.HTML(loss), template.HTML(val), template.HTML(doors), template.HTML(curve)})
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
