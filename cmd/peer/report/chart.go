package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is a picture with its text alternative and its caption.
type Chart struct {
	SVG     template.HTML // drawn by this package
	Caption string
}

// Size of a chart. The page scales it to the width that there is: on a phone its letters are as large as the text.
const (
	width  = 10.5 * vg.Centimeter
	height = 6.5 * vg.Centimeter
)

// Okabe and Ito's palette, which people with colour blindness can distinguish.
var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

// ink and faint are the colours of text and of grid lines.
var (
	ink   = color.RGBA{R: 0x1b, G: 0x1f, B: 0x24, A: 0xff}
	faint = color.RGBA{R: 0xd8, G: 0xdc, B: 0xe0, A: 0xff}
)

// themed replaces the colours of a picture by variables of the style sheet, which has values for light and for dark, and
// its font by one that every system has.
var themed = func() *strings.Replacer {
	pairs := []string{"font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", ""}
	name := func(c color.Color, variable string) {
		r, g, b, _ := c.RGBA()
		pairs = append(pairs, fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8), "var(--"+variable+")")
	}
	name(ink, "ink")
	name(faint, "faint")
	for k, c := range palette {
		name(c, "c"+strconv.Itoa(k))
	}
	return strings.NewReplacer(pairs...)
}()

func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = x, y
	sans := font.Font{Typeface: "Liberation", Variant: "Sans"}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = ink, ink
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink
		axis.Label.TextStyle.Font = font.From(sans, vg.Points(11))
		axis.Tick.Label.Font = font.From(sans, vg.Points(10))
		axis.Tick.Marker = plot.TickerFunc(ticks)
	}
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = font.From(sans, vg.Points(10)), ink
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	return p
}

// withGrid adds lines at the ticks of the Y axis, behind what is added later.
func withGrid(p *plot.Plot) *plot.Plot {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, faint
	p.Add(grid)
	return p
}

// ticks are those of gonum/plot, with labels as short as they can be: 25, not 25.00.
func ticks(low, high float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(low, high)
	for k, t := range all {
		if t.Label != "" {
			all[k].Label = strconv.FormatFloat(math.Round(t.Value*1e9)/1e9, 'g', -1, 64)
		}
	}
	return all
}

// powers marks the powers of ten with a text, and the lines between them without.
func powers(low, high float64) []plot.Tick {
	all := plot.LogTicks{Prec: -1}.Ticks(low, high)
	for k, t := range all {
		if t.Label != "" {
			all[k].Label = strconv.FormatFloat(t.Value, 'f', -1, 64)
		}
	}
	return all
}

// svg draws p as an element of a page, with title as its text alternative.
func svg(p *plot.Plot, width, height vg.Length, title string) (template.HTML, error) {
	c := vgsvg.New(width, height)
	p.Draw(draw.Crop(draw.New(c), vg.Points(4), -vg.Points(8), 0, -vg.Points(4))) // fonts differ in width, and the last label of an axis stands out
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", err
	}
	// Inside HTML only the element is allowed, without the prologue of an SVG file, and the page gives it its size.
	_, body, ok := bytes.Cut(b.Bytes(), []byte(`xmlns:xlink="http://www.w3.org/1999/xlink">`))
	if !ok {
		return "", fmt.Errorf("no <svg> in %d bytes", b.Len())
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg role="img" viewBox="0 0 %g %g" xmlns="http://www.w3.org/2000/svg"><title>%s</title>`,
		width.Points(), height.Points(), template.HTMLEscapeString(title))
	_, err := themed.WriteString(&out, string(body))
	return template.HTML(strings.TrimSpace(out.String())), err
}

// short cuts a name that is too long for an axis.
func short(name string) string {
	const most = 20
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most-1]) + "…"
}
