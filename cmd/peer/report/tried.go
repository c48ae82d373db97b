package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/svg"
)

// TriedTable is what class-means has tried, in numbers; nil if there is nothing.
func TriedTable(metric string, all []heddle.Attempt) *Table {
	if len(all) == 0 {
		return nil
	}
	t := &Table{Head: []string{"plan", "validation " + metric, "sent by all", "seconds", "outcome"}}
	for _, a := range all {
		row := []string{a.Name, "–", "–", "–", a.Ended}
		if !math.IsNaN(a.Val) {
			row[1] = fmt.Sprintf("%.2f ± %.2f %%", 100*a.Val, 100*a.Error)
		}
		if a.Ended == "" || a.Sent > 0 {
			row[2], row[3] = Bytes(a.Sent), fmt.Sprintf("%.1f", a.Seconds)
		}
		if a.Chosen {
			row[4] = "chosen"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// named is a plan of a chart.
type named struct {
	svg.Point
	name   string
	chosen bool
}

// tradeOff draws validation over the bytes that all peers sent, with a point for each plan that was trained to its end, a
// line through those that no cheaper plan reaches, and the chosen one marked; empty if fewer than two plans sent anything.
func tradeOff(metric string, all []heddle.Attempt) Chart {
	var points []named
	var said []string
	p := withGrid(newPlot("MB sent by all sites", "validation "+metric+", %"))
	for _, a := range all {
		if a.Ended != "" || a.Sent == 0 || math.IsNaN(a.Val) {
			continue
		}
		at := named{svg.Point{X: float64(a.Sent) / 1e6, Y: 100 * a.Val}, short(a.Name), a.Chosen}
		points = append(points, at)
		p.Whisker(palette[0], svg.Point{X: at.X, Y: 100 * (a.Val - a.Error)}, svg.Point{X: at.X, Y: 100 * (a.Val + a.Error)})
		p.Mark(svg.Disc, palette[0], 3, at.Point)
		mark := ""
		if a.Chosen {
			p.Mark(svg.Ring, palette[1], 6, at.Point)
			mark = " (chosen)"
		}
		said = append(said, fmt.Sprintf("%s %.1f %% for %s%s", a.Name, at.Y, Bytes(a.Sent), mark))
	}
	if len(points) < 2 {
		return Chart{}
	}
	best := frontier(points)
	p.Line(palette[0], 1.5, "", best...)
	for _, at := range apart(points, best) {
		p.Text(at.Point, 5, -4, "start", at.name)
	}
	p.X.Log, p.X.Min, p.X.Max = true, p.X.Min/1.5, p.X.Max*4 // room for the names
	p.Bottom = true
	p.MarkKey("chosen", svg.Ring, palette[1], 6)
	p.LineKey("best for its bytes", palette[0], 1.5, "")
	return Chart{picture(p, "validation "+metric+" over bytes sent: "+strings.Join(said, "; ")),
		"Validation " + metric + " of each plan, with its standard error, over the bytes that all sites sent."}
}

// apart returns those plans whose names do not cover one another: the chosen one before the others on the line, and
// these before the rest.
func apart(all []named, best []svg.Point) (shown []named) {
	left, right, low, high := math.Inf(1), 0.0, math.Inf(1), math.Inf(-1)
	for _, at := range all {
		left, right, low, high = min(left, at.X), max(right, at.X), min(low, at.Y), max(high, at.Y)
	}
	across, up := math.Log(4*right/left), max(high-low, 1e-9)
	place := func(wanted func(at named) bool) {
		for _, at := range all {
			free := wanted(at)
			for _, q := range shown {
				first := at.name // the name that begins further left
				if q.X <= at.X {
					first = q.name
				}
				text := 0.03 * float64(len(first)) // of the width of the chart
				if math.Abs(math.Log(q.X/at.X))/across < text && math.Abs(q.Y-at.Y)/up < 0.09 {
					free = false
				}
			}
			if free {
				shown = append(shown, at)
			}
		}
	}
	place(func(at named) bool { return at.chosen })
	place(func(at named) bool { return slices.Contains(best, at.Point) })
	place(func(named) bool { return true })
	return shown
}

// frontier returns the places of those plans that no plan further left reaches, from left to right.
func frontier(all []named) (best []svg.Point) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b named) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(b.Y, a.Y)) })
	for _, at := range all {
		if len(best) == 0 || at.Y > best[len(best)-1].Y {
			best = append(best, at.Point)
		}
	}
	return best
}
