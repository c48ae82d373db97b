// Package chart draws measurements as SVG: panels of points over a logarithmic axis.
package chart

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/internal/svg"
)

// Point is a figure Y with its standard deviation at X, above 0. Series gives it colour and shape.
type Point struct {
	Series    int
	X, Y, Off float64
}

// Panel is one plot: points over powers of ten.
type Panel struct {
	Title, X, Y string
	Points      []Point
	Level       float64 // a dashed line at that figure (0 = none)
}

// Width of a file, and of the margin between panels, in points.
const (
	width  = 740
	margin = 8
)

// Write draws panels, `columns` in a row, as an SVG file. names are the names of the series and, last, of the level, if
// panels have one. The legend is in the place after the last panel or, if the last row is full, in the first panel.
func Write(path string, columns int, names []string, panels ...Panel) error {
	rows := (len(panels) + columns - 1) / columns
	wide, high := float64(width)/float64(columns), max(510/float64(columns), 170)
	low, most := decadesOf(panels)
	var plots []*svg.Plot
	for _, panel := range panels {
		p := panel.plot(wide-margin, high-margin)
		p.X.Min, p.X.Max = low, most
		if columns > 2 {
			p.X.Ticks = decades(low, most)
		}
		plots = append(plots, p)
	}
	level := len(panels) > 0 && panels[0].Level > 0
	if len(plots) < rows*columns {
		alone := svg.New(svg.File, wide-margin, high-margin, "", "")
		alone.Bare = true
		plots = append(plots, alone)
		explain(alone, names, level)
	} else {
		explain(plots[0], names, level)
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]dpt" height="%[2]gpt" viewBox="0 0 %[1]d %[2]g" font-family="Liberation Sans, Arial, Helvetica, sans-serif">`+
			`<rect width="100%%" height="100%%" fill="#ffffff"/>`, width, float64(rows)*high)
	for i, p := range plots {
		b.WriteString(p.At(wide*float64(i%columns)+margin/2, high*float64(i/columns)+margin/2) + "\n")
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

const (
	radius = 4
	gray   = "#606060"
	dashes = "4 3"
)

func color(series int) string { return svg.File.Series[series%len(svg.File.Series)] }

// explain adds the legend to p.
func explain(p *svg.Plot, names []string, level bool) {
	p.Left = true
	for k, name := range names {
		if level && k == len(names)-1 {
			p.LineKey(name, gray, 1, dashes)
			continue
		}
		p.MarkKey(name, svg.ShapeOf(k), color(k), radius)
	}
}

// plot draws the panel.
func (panel Panel) plot(wide, high float64) *svg.Plot {
	p := svg.New(svg.File, wide, high, panel.X, panel.Y)
	p.Title, p.X.Log, p.Y.Grid = panel.Title, true, true
	for _, at := range panel.Points {
		if math.IsNaN(at.Y) { // a graph without test labels
			continue
		}
		if at.Off > 0 {
			p.Whisker(color(at.Series), svg.Point{X: at.X, Y: at.Y - at.Off}, svg.Point{X: at.X, Y: at.Y + at.Off})
		}
		p.Mark(svg.ShapeOf(at.Series), color(at.Series), radius, svg.Point{X: at.X, Y: at.Y})
	}
	if panel.Level > 0 {
		p.Level(gray, 1, dashes, panel.Level)
	}
	p.Y.Min, p.Y.Max = p.Y.Min-1, p.Y.Max+1
	return p
}

// decadesOf returns the powers of ten between which all points lie: panels have the same axis.
func decadesOf(panels []Panel) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, at := range p.Points {
			low, high = min(low, at.X), max(high, at.X)
		}
	}
	return math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
}

// decades marks powers of ten, with a text at every second one.
func decades(low, high float64) (ticks []svg.Tick) {
	for k := math.Round(math.Log10(low)); k <= math.Round(math.Log10(high)); k++ {
		tick := svg.Tick{Value: math.Pow(10, k)}
		if int(k)%2 == 0 {
			tick.Text = strconv.FormatFloat(tick.Value, 'f', -1, 64)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}
