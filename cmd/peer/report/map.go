package report

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Place is a site on a map of a federation.
type Place struct {
	Name   string
	Status string // in words
	Here   bool   // connected to the others
}

// mostPlaces is how many sites a map has: of more, the table has all.
const mostPlaces = 24

// Map draws the sites of a federation on a circle, with a line between each two that are connected. It is empty for fewer
// than two sites and for too many to tell apart.
func Map(sites []Place) (Chart, error) {
	n := len(sites)
	if n < 2 || n > mostPlaces {
		return Chart{}, nil
	}
	p := newPlot("", "")
	p.HideAxes()
	at := make(plotter.XYs, n)
	for k := range at {
		turn := math.Pi/2 - 2*math.Pi*float64(k)/float64(n)
		at[k] = plotter.XY{X: math.Cos(turn), Y: math.Sin(turn)}
	}
	var here, away plotter.XYs
	said := make([]string, n)
	for k, s := range sites {
		said[k] = s.Name + " " + s.Status
		if !s.Here {
			away = append(away, at[k])
			continue
		}
		here = append(here, at[k])
		for q := range k {
			if sites[q].Here {
				line := &plotter.Line{XYs: plotter.XYs{at[k], at[q]}}
				line.Color, line.Width = palette[0], vg.Points(1)
				p.Add(line)
			}
		}
	}
	p.Add(&plotter.Scatter{XYs: here, GlyphStyle: draw.GlyphStyle{Color: palette[0], Radius: vg.Points(6), Shape: draw.CircleGlyph{}}},
		&plotter.Scatter{XYs: away, GlyphStyle: draw.GlyphStyle{Color: palette[1], Radius: vg.Points(6), Shape: draw.RingGlyph{}}})
	labels := plotter.XYLabels{XYs: make(plotter.XYs, n), Labels: make([]string, n)}
	for k, s := range sites {
		out := 0.2 // from the mark, away from the centre
		if at[k].Y < 0 {
			out = -out
		}
		labels.XYs[k], labels.Labels[k] = plotter.XY{X: at[k].X, Y: at[k].Y + out}, short(s.Name)
	}
	text, err := plotter.NewLabels(labels)
	if err != nil {
		return Chart{}, err
	}
	for k := range text.TextStyle {
		style := &text.TextStyle[k]
		style.Font, style.Color, style.XAlign, style.YAlign = p.X.Tick.Label.Font, ink, -0.5, -0.5
	}
	p.Add(text)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -1.9, 1.9, -1.4, 1.4
	picture, err := svg(p, width, height, "Federation: "+strings.Join(said, "; "))
	return Chart{picture, fmt.Sprintf("%d of %d sites are connected; a ring is a site that is not.", len(here), n)}, err
}
