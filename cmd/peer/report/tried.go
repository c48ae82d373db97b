package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
	t := &Table{Head: []string{"plan", "validation " + metric, "sent by all", "seconds", ""}}
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
// line through those that no cheaper plan reaches, and the chosen one marked; "" if fewer than two plans sent anything.
func tradeOff(metric string, all []heddle.Attempt) (string, error) {
	var points measured
	var names plotter.XYLabels
	var chosen plotter.XYs
	for _, a := range all {
		if a.Ended != "" || a.Sent == 0 || math.IsNaN(a.Val) {
			continue
		}
		at := plotter.XY{X: float64(a.Sent) / 1e6, Y: 100 * a.Val}
		points.XYs = append(points.XYs, at)
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{100 * a.Error, 100 * a.Error})
		names.XYs, names.Labels = append(names.XYs, at), append(names.Labels, a.Name)
		if a.Chosen {
			chosen = append(chosen, at)
		}
	}
	if len(points.XYs) < 2 {
		return "", nil
	}
	p := newPlot("MB sent by all peers", "validation "+metric+", %")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	line, err := plotter.NewLine(frontier(points.XYs))
	if err != nil {
		return "", err
	}
	line.Color, line.Width = palette[0], vg.Points(1.5)
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return "", err
	}
	bars.Color = palette[0]
	dots, err := plotter.NewScatter(points)
	if err != nil {
		return "", err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: palette[0], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	mark, err := plotter.NewScatter(chosen)
	if err != nil {
		return "", err
	}
	mark.GlyphStyle = draw.GlyphStyle{Color: palette[1], Radius: vg.Points(6), Shape: draw.RingGlyph{}}
	labels, err := plotter.NewLabels(names)
	if err != nil {
		return "", err
	}
	labels.Offset = vg.Point{X: vg.Points(5), Y: vg.Points(4)}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font = p.X.Tick.Label.Font
	}
	p.Add(line, bars, dots, mark, labels)
	p.X.Min, p.X.Max = p.X.Min/1.5, p.X.Max*4 // room for the names
	p.Legend.Add("chosen", mark)
	p.Legend.Add("best for its bytes", line)
	p.Legend.Top = false
	return svg(p)
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
