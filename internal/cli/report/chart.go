package report

import (
	"html/template"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle/internal/svg"
)

// Chart is a picture with its text alternative and its caption.
type Chart struct {
	SVG     template.HTML // drawn by this package
	Caption string
}

// Size of a chart in points. The page scales it to the width that there is: on a phone its letters are as large as the text.
const (
	width  = 298
	height = 184
)

// palette has the colours of series.
var palette = svg.Page.Series

func newPlot(x, y string) *svg.Plot { return svg.New(svg.Page, width, height, x, y) }

// withGrid adds lines at the ticks of the Y axis.
func withGrid(p *svg.Plot) *svg.Plot {
	p.Y.Grid = true
	return p
}

// picture draws p as an element of a page, with title as its text alternative.
func picture(p *svg.Plot, title string) template.HTML { return template.HTML(p.Element(title)) }

// short cuts a name that is too long for an axis.
func short(name string) string {
	const most = 20
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most-1]) + "…"
}
