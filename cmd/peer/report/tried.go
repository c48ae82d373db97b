package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/heddle-gnn/heddle"
)

// TriedTable is what preset auto has tried, in numbers; nil if there is nothing.
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

// measured is the plans of a chart, with a standard error each.
type measured struct {
	plotter.XYs
	plotter.YErrors
}

// tradeOff draws validation over the bytes that all peers sent, with a point for each plan that was trained to its end, a
// line through those that no cheaper plan reaches, and the chosen one marked; empty if fewer than two plans sent anything.
func tradeOff(metric string, all []heddle.Attempt) (Chart, error) {
	var points measured
	var names plotter.XYLabels
	var chosen plotter.XYs
	var said []string
	for _, a := range all {
		if a.Ended != "" || a.Sent == 0 || math.IsNaN(a.Val) {
			continue
		}
		at := plotter.XY{X: float64(a.Sent) / 1e6, Y: 100 * a.Val}
		points.XYs = append(points.XYs, at)
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{100 * a.Error, 100 * a.Error})
		names.XYs, names.Labels = append(names.XYs, at), append(names.Labels, short(a.Name))
		mark := ""
		if a.Chosen {
			chosen, mark = append(chosen, at), " (chosen)"
		}
		said = append(said, fmt.Sprintf("%s %.1f %% for %s%s", a.Name, at.Y, Bytes(a.Sent), mark))
	}
	if len(points.XYs) < 2 {
		return Chart{}, nil
	}
	p := withGrid(newPlot("MB sent by all sites", "validation "+metric+", %"))
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(powers)
	line := &plotter.Line{XYs: frontier(points.XYs)}
	line.Color, line.Width = palette[0], vg.Points(1.5)
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return Chart{}, err
	}
	bars.Color = palette[0]
	dots := &plotter.Scatter{XYs: points.XYs, GlyphStyle: draw.GlyphStyle{Color: palette[0], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}}
	mark := &plotter.Scatter{XYs: chosen, GlyphStyle: draw.GlyphStyle{Color: palette[1], Radius: vg.Points(6), Shape: draw.RingGlyph{}}}
	labels, err := plotter.NewLabels(apart(names, chosen, line.XYs))
	if err != nil {
		return Chart{}, err
	}
	labels.Offset = vg.Point{X: vg.Points(5), Y: vg.Points(4)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font, labels.TextStyle[i].Color = p.X.Tick.Label.Font, ink
	}
	p.Add(line, bars, dots, mark, labels)
	p.X.Min, p.X.Max = p.X.Min/1.5, p.X.Max*4 // room for the names
	p.Legend.Add("chosen", mark)
	p.Legend.Add("best for its bytes", line)
	p.Legend.Top = false
	picture, err := svg(p, width, height, "validation "+metric+" over bytes sent: "+strings.Join(said, "; "))
	return Chart{picture, "Validation " + metric + " of each plan, with its standard error, over the bytes that all sites sent."}, err
}

// apart returns those names that do not cover one another: the chosen plan's before those of the others on the line, and
// these before the rest.
func apart(all plotter.XYLabels, chosen, best plotter.XYs) (shown plotter.XYLabels) {
	left, right, low, high := plotter.XYRange(all)
	across, up := math.Log(4*right/left), max(high-low, 1e-9)
	place := func(wanted func(at plotter.XY) bool) {
		for k, at := range all.XYs {
			free := wanted(at)
			for i, q := range shown.XYs {
				first := all.Labels[k] // the name that begins further left
				if q.X <= at.X {
					first = shown.Labels[i]
				}
				text := 0.03 * float64(len(first)) // of the width of the chart
				if math.Abs(math.Log(q.X/at.X))/across < text && math.Abs(q.Y-at.Y)/up < 0.09 {
					free = false
				}
			}
			if free {
				shown.XYs, shown.Labels = append(shown.XYs, at), append(shown.Labels, all.Labels[k])
			}
		}
	}
	place(func(at plotter.XY) bool { return slices.Contains(chosen, at) })
	place(func(at plotter.XY) bool { return slices.Contains(best, at) })
	place(func(plotter.XY) bool { return true })
	return shown
}

// frontier returns those points that no point further left reaches, from left to right.
func frontier(all plotter.XYs) (best plotter.XYs) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b plotter.XY) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(b.Y, a.Y)) })
	for _, at := range all {
		if len(best) == 0 || at.Y > best[len(best)-1].Y {
			best = append(best, at)
		}
	}
	return best
}
