// Package chart draws measurements as SVG: panels of points over a logarithmic axis.
package chart

import (
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
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
	Level       float64 // a dashed line at that figure; 0: none
}

// Write draws panels, so many in a row, as one SVG file. names are those of the series and, last,
// of the level, if panels have one. They are explained in the place after the last panel or, where
// the last row is full, in the first panel.
func Write(path string, columns int, names []string, panels ...Panel) error {
	rows := (len(panels) + columns - 1) / columns
	height := vg.Length(18) / vg.Length(columns) * vg.Centimeter
	c := vgsvg.New(26*vg.Centimeter, vg.Length(rows)*max(height, 6*vg.Centimeter))
	pad := vg.Points(8)
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: pad, PadY: pad,
		PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}
	low, high := decadesOf(panels)
	var plots []*plot.Plot
	for _, p := range panels {
		one := p.plot(columns)
		one.X.Min, one.X.Max = low, high
		plots = append(plots, one)
	}
	if len(plots) < rows*columns {
		alone := plot.New()
		alone.HideAxes()
		alone.Legend.Top = true
		plots = append(plots, alone)
		explain(alone, names, len(panels) > 0 && panels[0].Level > 0)
	} else {
		explain(plots[0], names, panels[0].Level > 0)
	}
	for i, p := range plots {
		p.Draw(tiles.At(draw.New(c), i%columns, i/columns))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// explain adds the legend to p.
func explain(p *plot.Plot, names []string, level bool) {
	p.Legend.Left, p.Legend.Padding = true, vg.Points(2)
	p.Legend.TextStyle.Font = font.From(sans, p.Legend.TextStyle.Font.Size)
	for k, name := range names {
		if level && k == len(names)-1 {
			p.Legend.Add(name, dashes(0))
			continue
		}
		p.Legend.Add(name, &plotter.Scatter{GlyphStyle: glyph(k)})
	}
}

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// dashes is a level.
func dashes(y float64) *plotter.Function {
	f := plotter.NewFunction(func(float64) float64 { return y })
	f.Color, f.Dashes = color.Gray{Y: 0x60}, []vg.Length{vg.Points(4), vg.Points(3)}
	return f
}

// plot draws the panel, one of so many in a row.
func (panel Panel) plot(columns int) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = panel.Title, panel.X, panel.Y
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		*f = font.From(sans, f.Size)
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	p.Add(grid)
	for _, at := range panel.Points {
		xy := plotter.XYs{{X: at.X, Y: at.Y}}
		points, err := plotter.NewScatter(xy)
		if err != nil {
			continue // not a number: a graph without test labels
		}
		ends := plotter.YErrors{{Low: at.Off, High: at.Off}}
		if off, err := plotter.NewYErrorBars(bar{xy, ends}); err == nil && at.Off > 0 {
			off.Color = palette[at.Series%len(palette)]
			p.Add(off)
		}
		points.GlyphStyle = glyph(at.Series)
		p.Add(points)
	}
	if panel.Level > 0 {
		p.Add(dashes(panel.Level))
		p.Y.Min, p.Y.Max = min(p.Y.Min, panel.Level), max(p.Y.Max, panel.Level)
	}
	p.Y.Min, p.Y.Max = p.Y.Min-1, p.Y.Max+1
	if columns > 2 {
		p.X.Tick.Marker = decades{}
	}
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
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for k := math.Round(math.Log10(low)); k <= math.Round(math.Log10(high)); k++ {
		tick := plot.Tick{Value: math.Pow(10, k)}
		if int(k)%2 == 0 {
			tick.Label = strconv.FormatFloat(tick.Value, 'f', -1, 64)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// Okabe and Ito's palette, which people with colour blindness can distinguish.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{},
}

// bar is one point with its standard deviation to either side, as gonum/plot takes it.
type bar struct {
	plotter.XYs
	plotter.YErrors
}

// glyph is how points of a series look.
func glyph(series int) draw.GlyphStyle {
	return draw.GlyphStyle{Color: palette[series%len(palette)], Radius: vg.Points(5), Shape: shapes[series%len(shapes)]}
}
