// Package svg draws charts as SVG: axes with ticks, lines, marks, bars, texts and a legend.
package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Colors are values of CSS.
type Colors struct {
	Ink, Faint string   // of text and of grid lines
	Series     []string // Okabe and Ito's palette, which people with colour blindness can distinguish
}

// Page has the variables of a page's style sheet, which has values for light and for dark.
var Page = Colors{"var(--ink)", "var(--faint)",
	[]string{"var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"}}

// File has colours for a file by itself.
var File = Colors{"#1b1f24", "#d8dce0", []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}}

// Point is a place in the numbers of the axes.
type Point struct{ X, Y float64 }

// Tick is a place of an axis; those without a text are short.
type Tick struct {
	Value float64
	Text  string // empty for a short tick
}

// Axis describes an edge of the frame. Min and Max cover all that is plotted by the time of plotting.
type Axis struct {
	Label    string
	Min, Max float64
	Log      bool   // powers of ten are equally far from each other
	Grid     bool   // lines at the ticks
	Ticks    []Tick // (nil = round numbers)
}

// Plot is a chart. Lengths are in points, which a page may scale to any size.
type Plot struct {
	Colors
	Title         string
	Width, Height float64
	X, Y          Axis
	Bare          bool // without axes
	Bottom, Left  bool // place of the legend; else at the top and right

	drawn []func(*frame)
	keys  []key
}

// New returns an empty plot.
func New(c Colors, width, height float64, x, y string) *Plot {
	nothing := Axis{Min: math.Inf(1), Max: math.Inf(-1)}
	p := &Plot{Colors: c, Width: width, Height: height, X: nothing, Y: nothing}
	p.X.Label, p.Y.Label = x, y
	return p
}

// Sizes of texts, how wide a character is of them, and the points to the right of the frame.
const (
	small, large = 10.0, 11.0
	character    = 0.56
	margin       = 8.0
)

// key is a line of the legend.
type key struct {
	name string
	draw func(f *frame, x, y float64) // its sample, 16 points wide
}

// Names returns ticks with these texts at 0, 1, and so on.
func Names(names []string) (all []Tick) {
	for k, name := range names {
		all = append(all, Tick{float64(k), name})
	}
	return all
}

// reach makes the axes reach to points.
func (p *Plot) reach(points ...Point) {
	for _, at := range points {
		p.X.Min, p.X.Max = min(p.X.Min, at.X), max(p.X.Max, at.X)
		p.Y.Min, p.Y.Max = min(p.Y.Min, at.Y), max(p.Y.Max, at.Y)
	}
}

// Line draws a line; dash is as in stroke-dasharray.
func (p *Plot) Line(color string, width float64, dash string, points ...Point) {
	p.reach(points...)
	p.drawn = append(p.drawn, func(f *frame) {
		var at []string
		for _, q := range points {
			x, y := f.at(q)
			at = append(at, fmt.Sprintf("%.2f,%.2f", x, y))
		}
		fmt.Fprintf(f, `<polyline points="%s" style="%s"/>`, strings.Join(at, " "), lineStyle(color, width, dash))
	})
}

func lineStyle(color string, width float64, dash string) string {
	s := fmt.Sprintf("fill:none;stroke:%s;stroke-width:%g", color, width)
	if dash != "" {
		s += ";stroke-dasharray:" + dash
	}
	return s
}

// Level draws a horizontal line from one end of the frame to the other.
func (p *Plot) Level(color string, width float64, dash string, y float64) {
	p.Y.Min, p.Y.Max = min(p.Y.Min, y), max(p.Y.Max, y)
	p.drawn = append(p.drawn, func(f *frame) {
		_, at := f.at(Point{p.X.Min, y})
		fmt.Fprintf(f, `<path d="M%.2f,%.2fH%.2f" style="%s"/>`, f.left, at, f.right, lineStyle(color, width, dash))
	})
}

// Whisker draws an interval, which is horizontal or vertical.
func (p *Plot) Whisker(color string, from, to Point) {
	p.reach(from, to)
	p.drawn = append(p.drawn, func(f *frame) {
		x0, y0 := f.at(from)
		x1, y1 := f.at(to)
		dx, dy := 0.0, 2.5
		if from.X == to.X {
			dx, dy = dy, dx
		}
		fmt.Fprintf(f, `<path d="M%.2f,%.2fL%.2f,%.2fM%.2f,%.2fL%.2f,%.2fM%.2f,%.2fL%.2f,%.2f" style="%s"/>`, x0, y0,
			x1, y1, x0-dx, y0-dy, x0+dx, y0+dy, x1-dx, y1-dy, x1+dx, y1+dy, lineStyle(color, 0.8, ""))
	})
}

// Bar draws a horizontal bar of that thickness in points.
func (p *Plot) Bar(color string, thick, y, from, to float64) {
	p.reach(Point{from, y}, Point{to, y})
	p.drawn = append(p.drawn, func(f *frame) {
		x0, at := f.at(Point{from, y})
		x1, _ := f.at(Point{to, y})
		fmt.Fprintf(f, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" style="fill:%s"/>`, x0, at-thick/2, x1-x0,
			thick, color)
	})
}

// Cell draws a square with sides of 1 around a point.
func (p *Plot) Cell(color string, opacity float64, at Point) {
	low, high := Point{at.X - 0.5, at.Y - 0.5}, Point{at.X + 0.5, at.Y + 0.5}
	p.reach(low, high)
	p.drawn = append(p.drawn, func(f *frame) {
		x0, y1 := f.at(low)
		x1, y0 := f.at(high)
		fmt.Fprintf(f, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" style="fill:%s;fill-opacity:%.2f"/>`, x0, y0,
			x1-x0, y1-y0, color, opacity)
	})
}

// Shape is how a mark looks.
type Shape int

// Shapes of marks.
const (
	Disc Shape = iota
	Square
	Triangle
	Diamond
	Box
	Ring
	shapes
)

// ShapeOf returns one for each of some series.
func ShapeOf(series int) Shape { return Shape(series) % shapes }

// Mark draws marks.
func (p *Plot) Mark(s Shape, color string, radius float64, points ...Point) {
	p.reach(points...)
	p.drawn = append(p.drawn, func(f *frame) {
		for _, q := range points {
			x, y := f.at(q)
			f.mark(s, color, radius, x, y)
		}
	})
}

// Text draws a text next to a point; anchor is start, middle or end.
func (p *Plot) Text(at Point, dx, dy float64, anchor, text string) {
	p.reach(at)
	p.drawn = append(p.drawn, func(f *frame) {
		x, y := f.at(at)
		f.text(x+dx, y+dy, small, anchor, text)
	})
}

// LineKey adds a line to the legend; with a width of 8 it looks like a bar.
func (p *Plot) LineKey(name, color string, width float64, dash string) {
	p.keys = append(p.keys, key{name, func(f *frame, x, y float64) {
		fmt.Fprintf(f, `<path d="M%.2f,%.2fh16" style="%s"/>`, x, y, lineStyle(color, width, dash))
	}})
}

// MarkKey adds a mark to the legend.
func (p *Plot) MarkKey(name string, s Shape, color string, radius float64) {
	p.keys = append(p.keys, key{name, func(f *frame, x, y float64) { f.mark(s, color, radius, x+8, y) }})
}

// Element returns the chart as an element of a page, with alt as its text alternative.
func (p *Plot) Element(alt string) string {
	return fmt.Sprintf(
		`<svg role="img" viewBox="0 0 %g %g" xmlns="http://www.w3.org/2000/svg"><title>%s</title>%s</svg>`, p.Width,
		p.Height, html.EscapeString(alt), p.At(0, 0))
}

// At returns the parts of the chart, whose corner is at x and y.
func (p *Plot) At(x, y float64) string {
	f := &frame{p: p, left: x + 4, right: x + p.Width - margin, top: y + 6, bottom: y + p.Height - 4}
	p.X.settle()
	p.Y.settle()
	if p.Title != "" {
		f.top += large + 4
		f.text(x+p.Width/2, y+large+2, large, "middle", p.Title)
	}
	if !p.Bare {
		f.axes()
	}
	for _, draw := range p.drawn {
		draw(f)
	}
	f.legend()
	return f.String()
}

// settle gives an axis a range and ticks.
func (a *Axis) settle() {
	if a.Min > a.Max {
		a.Min, a.Max = 0, 1
	}
	if a.Min == a.Max && a.Log {
		a.Min, a.Max = a.Min/2, a.Max*2
	} else if a.Min == a.Max {
		a.Min, a.Max = a.Min-1, a.Max+1
	}
	if a.Ticks == nil {
		a.Ticks = Ticks(a.Min, a.Max)
		if a.Log {
			a.Ticks = powers(a.Min, a.Max)
		}
	}
}

// Ticks returns four to eight round numbers from low to high.
func Ticks(low, high float64) (all []Tick) {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/2)))
	for _, more := range []float64{2, 2.5, 2} {
		if (high-low)/step > 7 {
			step *= more
		}
	}
	// + 0 makes 0 of −0.
	for k := math.Ceil(low/step-1e-9) + 0; k*step <= high+1e-9*step; k++ {
		all = append(all, Tick{k * step, strconv.FormatFloat(math.Round(k*step*1e9)/1e9, 'g', -1, 64)})
	}
	return all
}

// powers marks the powers of ten with a text, and numbers between them without.
func powers(low, high float64) (all []Tick) {
	for k := math.Floor(math.Log10(low)); k <= math.Log10(high); k++ {
		for n := 1.0; n < 10; n++ {
			if v := n * math.Pow(10, k); low*(1-1e-9) <= v && v <= high*(1+1e-9) {
				t := Tick{Value: v}
				if n == 1 {
					t.Text = strconv.FormatFloat(v, 'g', 6, 64)
				}
				all = append(all, t)
			}
		}
	}
	return all
}

// frame is a plot in progress: the place of its axes, and what is written.
type frame struct {
	strings.Builder
	p                        *Plot
	left, right, top, bottom float64
}

// share returns where v is between the ends of an axis.
func (a *Axis) share(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Min) / math.Log(a.Max/a.Min)
	}
	return (v - a.Min) / (a.Max - a.Min)
}

func (f *frame) at(q Point) (x, y float64) {
	return f.left + f.p.X.share(q.X)*(f.right-f.left), f.bottom - f.p.Y.share(q.Y)*(f.bottom-f.top)
}

// wide is about how wide a text is.
func wide(text string, size float64) float64 {
	return character * size * float64(utf8.RuneCountInString(text))
}

func (f *frame) text(x, y, size float64, anchor, text string) {
	fmt.Fprintf(f, `<text x="%.2f" y="%.2f" text-anchor="%s" style="fill:%s;font-size:%gpx">%s</text>`, x, y, anchor,
		f.p.Ink, size, html.EscapeString(text))
}

// axes draws both axes, their ticks, texts and grid.
func (f *frame) axes() {
	p := f.p
	f.bottom -= 6 + small
	if p.X.Label != "" {
		f.bottom -= large + 4
	}
	most := 0.0
	for _, t := range p.Y.Ticks {
		most = max(most, wide(t.Text, small))
	}
	f.left += most + 8
	if p.Y.Label != "" {
		f.left += large + 4
	}
	if n := len(p.X.Ticks); n > 0 { // the last one may be at the end of the frame
		f.right -= max(0, wide(p.X.Ticks[n-1].Text, small)/2-margin)
	}
	line := func(color, d string) { fmt.Fprintf(f, `<path d="%s" style="%s"/>`, d, lineStyle(color, 0.6, "")) }
	line(p.Ink, fmt.Sprintf("M%.2f,%.2fV%.2fH%.2f", f.left, f.top, f.bottom, f.right))
	for _, t := range p.X.Ticks {
		x, long := f.left+p.X.share(t.Value)*(f.right-f.left), 4.0
		if x < f.left-0.1 || x > f.right+0.1 {
			continue
		}
		if t.Text == "" {
			long = 2
		}
		line(p.Ink, fmt.Sprintf("M%.2f,%.2fv%g", x, f.bottom, long))
		f.text(x, f.bottom+5+small, small, "middle", t.Text)
	}
	for _, t := range p.Y.Ticks {
		y := f.bottom - p.Y.share(t.Value)*(f.bottom-f.top)
		if y < f.top-0.1 || y > f.bottom+0.1 {
			continue
		}
		if p.Y.Grid {
			line(p.Faint, fmt.Sprintf("M%.2f,%.2fH%.2f", f.left, y, f.right))
		}
		line(p.Ink, fmt.Sprintf("M%.2f,%.2fh-4", f.left, y))
		f.text(f.left-6, y+0.35*small, small, "end", t.Text)
	}
	if p.X.Label != "" {
		f.text((f.left+f.right)/2, f.bottom+8+small+large, large, "middle", p.X.Label)
	}
	if p.Y.Label != "" {
		x, y := f.left-most-12, (f.top+f.bottom)/2
		fmt.Fprintf(f, `<g transform="rotate(-90 %.2f %.2f)">`, x, y)
		f.text(x, y, large, "middle", p.Y.Label)
		f.WriteString("</g>")
	}
}

// legend explains what keys name.
func (f *frame) legend() {
	const high = small + 4
	y := f.top + high/2
	if f.p.Bottom {
		y = f.bottom - high*(float64(len(f.p.keys))-0.5)
	}
	for _, k := range f.p.keys {
		if f.p.Left {
			k.draw(f, f.left+6, y)
			f.text(f.left+28, y+0.35*small, small, "start", k.name)
		} else {
			k.draw(f, f.right-16, y)
			f.text(f.right-22, y+0.35*small, small, "end", k.name)
		}
		y += high
	}
}

// mark draws a mark around x and y.
func (f *frame) mark(s Shape, color string, r, x, y float64) {
	style := "fill:" + color
	if s == Box || s == Ring {
		style = lineStyle(color, 1, "")
	}
	switch s {
	case Square, Box:
		fmt.Fprintf(f, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" style="%s"/>`, x-0.85*r, y-0.85*r, 1.7*r,
			1.7*r, style)
	case Triangle:
		fmt.Fprintf(f, `<path d="M%.2f,%.2fl%.2f,%.2fh%.2fz" style="%s"/>`, x, y-r, r, 1.75*r, -2*r, style)
	case Diamond:
		fmt.Fprintf(f, `<path d="M%.2f,%.2fl%.2f,%.2fl%.2f,%.2fl%.2f,%.2fz" style="%s"/>`, x, y-r, r, r, -r, r, -r, -r,
			style)
	default:
		fmt.Fprintf(f, `<circle cx="%.2f" cy="%.2f" r="%g" style="%s"/>`, x, y, r, style)
	}
}
