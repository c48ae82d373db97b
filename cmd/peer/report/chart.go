package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/train"
)

// Size of a chart on the page.
const (
	width  = 13 * vg.Centimeter
	height = 7.5 * vg.Centimeter
)

// Okabe and Ito's palette, which colour-blind people can tell apart.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, s := range []*font.Font{&p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		*s = font.From(sans, s.Size)
	}
	p.Legend.Top = true
	p.BackgroundColor = color.Transparent
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = color.Gray{Y: 0xdd}
	p.Add(grid)
	return p
}

// curves draws a value over rounds, with a line for each stage; "" if no stage has two rounds of
// it.
func curves(label string, stages []train.StageResult, of func(train.Point) float64) (string, error) {
	p := newPlot("round", label)
	lines := 0
	for k, s := range stages {
		var xy plotter.XYs
		for _, q := range s.Curve {
			if v := of(q); !math.IsNaN(v) && !math.IsInf(v, 0) {
				xy = append(xy, plotter.XY{X: float64(q.Round), Y: v})
			}
		}
		if len(xy) < 2 {
			continue
		}
		line, err := plotter.NewLine(xy)
		if err != nil {
			return "", err
		}
		line.Color, line.Width = palette[k%len(palette)], vg.Points(1.5)
		line.Dashes = [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}[k/len(palette)%3]
		p.Add(line)
		p.Legend.Add(s.Name, line)
		lines++
	}
	if lines == 0 {
		return "", nil
	}
	if label == "training loss" {
		p.Y.Min = 0
	} else {
		p.Legend.Top = false
	}
	return svg(p)
}

// bars draws the bytes that each peer sent, with a stacked bar for each.
func bars(peers []heddle.Traffic) (string, error) {
	total := int64(0)
	for _, q := range peers {
		total += q.Total()
	}
	if total == 0 || len(peers) > 64 { // too thin to see; the table has the numbers
		return "", nil
	}
	p := newPlot("", "MB sent")
	doors := []struct {
		name string
		of   func(heddle.Traffic) int64
	}{
		{"halo rows", func(q heddle.Traffic) int64 { return q.Halo }},
		{"updates (reduce)", func(q heddle.Traffic) int64 { return q.Reduce }},
		{"control", func(q heddle.Traffic) int64 { return q.Control }},
	}
	var below *plotter.BarChart
	names := make([]string, len(peers))
	for k, d := range doors {
		v := make(plotter.Values, len(peers))
		for i, q := range peers {
			v[i], names[i] = float64(d.of(q))/1e6, q.Name
		}
		b, err := plotter.NewBarChart(v, vg.Length(float64(width)*0.5/float64(len(peers))))
		if err != nil {
			return "", err
		}
		b.Color, b.LineStyle = palette[k], draw.LineStyle{}
		if below != nil {
			b.StackOn(below)
		}
		below = b
		p.Add(b)
		p.Legend.Add(d.name, b)
	}
	p.NominalX(names...)
	p.Y.Max *= 1.35 // room for the legend
	return svg(p)
}

func svg(p *plot.Plot) (string, error) { return svgOf(p, width, height) }

func svgOf(p *plot.Plot, width, height vg.Length) (string, error) {
	c := vgsvg.New(width, height)
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	// Inside HTML only the element is allowed, without the prologue of an SVG file.
	at := bytes.Index(b.Bytes(), []byte("<svg"))
	if at < 0 {
		return "", fmt.Errorf("no <svg> in %d bytes", b.Len())
	}
	return b.String()[at:], nil
}
