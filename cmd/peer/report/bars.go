package report

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/heddle-gnn/heddle"
)

// mostBars is how many bars are drawn: of more, the table has the numbers.
const mostBars = 24

// Bar is a figure in [0, 1] with its interval; Low and High are NaN where there is none.
type Bar struct {
	Name             string
	Value, Low, High float64
}

// intervals are bars, with what their intervals reach to either side.
type intervals struct {
	plotter.XYs
	plotter.XErrors
}

// barsOf draws figures in percent from the first to the last, downwards, and a dashed line at level (NaN: none), which is
// named. It is empty for fewer than two figures.
func barsOf(title, axis string, bars []Bar, level float64, named string) (Chart, error) {
	var shown []Bar
	for _, b := range bars {
		if !math.IsNaN(b.Value) {
			shown = append(shown, b)
		}
	}
	if len(shown) < 2 || len(shown) > mostBars {
		return Chart{}, nil
	}
	p := newPlot(axis+", %", "")
	names, values := make([]string, len(shown)), make(plotter.Values, len(shown))
	var ends intervals
	var labels plotter.XYLabels
	var said []string
	for k, b := range shown {
		at := len(shown) - 1 - k // the axis goes upwards
		names[at], values[at] = short(b.Name), 100*b.Value
		edge := b.Value
		if !math.IsNaN(b.Low) && !math.IsNaN(b.High) {
			edge = max(edge, b.High)
			ends.XYs = append(ends.XYs, plotter.XY{X: 100 * b.Value, Y: float64(at)})
			ends.XErrors = append(ends.XErrors, struct{ Low, High float64 }{100 * (b.Value - b.Low), 100 * (b.High - b.Value)})
		}
		labels.XYs = append(labels.XYs, plotter.XY{X: 100 * edge, Y: float64(at)})
		labels.Labels = append(labels.Labels, fmt.Sprintf("%.1f", 100*b.Value))
		said = append(said, fmt.Sprintf("%s %.1f %%", b.Name, 100*b.Value))
	}
	chart, err := plotter.NewBarChart(values, vg.Points(11))
	if err != nil {
		return Chart{}, err
	}
	chart.Horizontal, chart.Color, chart.LineStyle = true, palette[0], draw.LineStyle{}
	p.Add(chart)
	if len(ends.XYs) > 0 {
		whiskers, err := plotter.NewXErrorBars(ends)
		if err != nil {
			return Chart{}, err
		}
		whiskers.Color = ink
		p.Add(whiskers)
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return Chart{}, err
	}
	text.Offset = vg.Point{X: vg.Points(4), Y: -vg.Points(4)}
	for i := range text.TextStyle {
		text.TextStyle[i].Font, text.TextStyle[i].Color = p.X.Tick.Label.Font, ink
	}
	p.Add(text)
	caption := title + "."
	if !math.IsNaN(level) {
		mark := &plotter.Line{XYs: plotter.XYs{{X: 100 * level, Y: -0.5}, {X: 100 * level, Y: float64(len(shown)) - 0.5}}}
		mark.Color, mark.Width, mark.Dashes = palette[1], vg.Points(1.5), []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(mark)
		caption += fmt.Sprintf(" Dashed: %s, %.1f %%.", named, 100*level)
		said = append(said, fmt.Sprintf("%s %.1f %%", named, 100*level))
	}
	if len(ends.XYs) > 0 {
		caption += " Lines are 95 % intervals."
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max = 0, min(115, p.X.Max*1.15) // room for the numbers
	p.Y.Min, p.Y.Max = -0.6, float64(len(shown))-0.4
	picture, err := svg(p, width, vg.Points(45)+vg.Points(21)*vg.Length(len(shown)), title+": "+strings.Join(said, "; "))
	return Chart{picture, caption}, err
}

// doors are the purposes of bytes.
var doors = []struct {
	name string
	of   func(heddle.Traffic) int64
}{
	{"rows of nodes (halo)", func(q heddle.Traffic) int64 { return q.Halo }},
	{"model updates (reduce)", func(q heddle.Traffic) int64 { return q.Reduce }},
	{"control", func(q heddle.Traffic) int64 { return q.Control }},
}

// sentBars draws the bytes that each site sent, with a bar of parts for each; empty if nothing was sent.
func sentBars(peers []heddle.Traffic) (Chart, error) {
	most := int64(0)
	for _, q := range peers {
		most = max(most, q.Total())
	}
	if most == 0 || len(peers) > mostBars {
		return Chart{}, nil
	}
	unit, name := 1e6, "MB sent"
	if most < 1e6 {
		unit, name = 1e3, "kB sent"
	}
	p := newPlot(name, "")
	var below *plotter.BarChart
	names, said := make([]string, len(peers)), make([]string, len(peers))
	for k, d := range doors {
		v := make(plotter.Values, len(peers))
		for i, q := range peers {
			at := len(peers) - 1 - i
			v[at], names[at] = float64(d.of(q))/unit, short(q.Name)
			said[i] = q.Name + " " + Bytes(q.Total())
		}
		b, err := plotter.NewBarChart(v, vg.Points(11))
		if err != nil {
			return Chart{}, err
		}
		b.Horizontal, b.Color, b.LineStyle = true, palette[k], draw.LineStyle{}
		if below != nil {
			b.StackOn(below)
		}
		below = b
		p.Add(b)
		p.Legend.Add(d.name, b)
	}
	p.NominalY(names...)
	legend := 2.6
	p.Y.Min, p.Y.Max = -0.6, float64(len(peers))-0.4+legend
	title := "Bytes sent by site and purpose"
	picture, err := svg(p, width, vg.Points(45)+vg.Points(21)*vg.Length(float64(len(peers))+legend), title+": "+strings.Join(said, "; "))
	return Chart{picture, title + "."}, err
}
