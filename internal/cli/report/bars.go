package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/svg"
)

// mostBars is how many bars are drawn: of more, the table has the numbers.
const mostBars = 24

// Bar is a figure in [0, 1] with its interval; Low and High are NaN where there is none.
type Bar struct {
	Name             string
	Value, Low, High float64
}

// barsOf draws figures in percent from the first to the last, downwards, and a dashed line at level (NaN: none), which is
// named. It is empty for fewer than two figures.
func barsOf(title, axis string, bars []Bar, level float64, named string) Chart {
	var shown []Bar
	for _, b := range bars {
		if !math.IsNaN(b.Value) {
			shown = append(shown, b)
		}
	}
	if len(shown) < 2 || len(shown) > mostBars {
		return Chart{}
	}
	p := newPlot(axis+", %", "")
	p.Height = 45 + barRoom*float64(len(shown))
	names := make([]string, len(shown))
	var said []string
	intervals := false
	for k, b := range shown {
		at := len(shown) - 1 - k // the axis goes upwards
		y, edge := float64(at), b.Value
		names[at] = short(b.Name)
		p.Bar(palette[0], barHeight, y, 0, 100*b.Value)
		if !math.IsNaN(b.Low) && !math.IsNaN(b.High) {
			edge, intervals = max(edge, b.High), true
			p.Whisker(p.Ink, svg.Point{X: 100 * b.Low, Y: y}, svg.Point{X: 100 * b.High, Y: y})
		}
		p.Text(svg.Point{X: 100 * edge, Y: y}, 4, 3.5, "start", fmt.Sprintf("%.1f", 100*b.Value))
		said = append(said, fmt.Sprintf("%s %.1f %%", b.Name, 100*b.Value))
	}
	caption := title + "."
	if !math.IsNaN(level) {
		p.Line(palette[1], 1.5, "4 3", svg.Point{X: 100 * level, Y: -0.5}, svg.Point{X: 100 * level, Y: float64(len(shown)) - 0.5})
		caption += fmt.Sprintf(" Dashed: %s, %.1f %%.", named, 100*level)
		said = append(said, fmt.Sprintf("%s %.1f %%", named, 100*level))
	}
	if intervals {
		caption += " Lines are 95 % intervals."
	}
	p.Y.Ticks = svg.Names(names)
	p.X.Min, p.X.Max = 0, min(115, p.X.Max*1.15) // room for the numbers
	p.Y.Min, p.Y.Max = -0.6, float64(len(shown))-0.4
	return Chart{picture(p, title+": "+strings.Join(said, "; ")), caption}
}

// Points of a bar, and from one to the next.
const (
	barHeight = 11
	barRoom   = 21
)

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
func sentBars(peers []heddle.Traffic) Chart {
	most := int64(0)
	for _, q := range peers {
		most = max(most, q.Total())
	}
	if most == 0 || len(peers) > mostBars {
		return Chart{}
	}
	unit, name := 1e6, "MB sent"
	if most < 1e6 {
		unit, name = 1e3, "kB sent"
	}
	p := newPlot(name, "")
	names, said, sum := make([]string, len(peers)), make([]string, len(peers)), make([]int64, len(peers))
	for k, d := range doors {
		for i, q := range peers {
			at, below := len(peers)-1-i, sum[i]
			sum[i] += d.of(q)
			names[at], said[i] = short(q.Name), q.Name+" "+cli.Bytes(q.Total())
			p.Bar(palette[k], barHeight, float64(at), float64(below)/unit, float64(sum[i])/unit)
		}
		p.BarKey(d.name, palette[k])
	}
	p.Y.Ticks = svg.Names(names)
	const legend = 2.6 // bars
	p.Y.Min, p.Y.Max = -0.6, float64(len(peers))-0.4+legend
	p.Height = 45 + barRoom*(float64(len(peers))+legend)
	title := "Bytes sent by site and purpose"
	return Chart{picture(p, title+": "+strings.Join(said, "; ")), title + "."}
}
