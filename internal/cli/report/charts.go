package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/federation"
	"github.com/heddle-gnn/heddle/internal/svg"
	"github.com/heddle-gnn/heddle/train"
)

// Chart is a picture with its text alternative and its caption.
type Chart struct {
	SVG     template.HTML // made by this package
	Caption string
}

// Size of a chart in points. The page scales it to the width that there is: on a phone its letters are as large as the
// text.
const (
	width  = 298
	height = 184
)

// Points of a bar, and from one to the next; letters of a name; how many bars or sites a chart has at most (a table has
// all), and how many points of a curve: more cannot be distinguished.
const (
	barHeight = 11
	barStep   = 21
	longest   = 20
	mostBars  = 24
	points    = 300
)

// leastSpan is how far an axis reaches at least, in percent of its largest value, so that noise does not fill a chart.
const leastSpan = 5

// palette has the colors of series.
var palette = svg.Page.Series

func newPlot(x, y string) *svg.Plot { return svg.New(svg.Page, width, height, x, y) }

// chartOf is the chart of p, with alt as its text alternative.
func chartOf(p *svg.Plot, alt, caption string) []Chart {
	return []Chart{{template.HTML(p.Element(alt)), caption}}
}

// cutName cuts a name that is too long for an axis.
func cutName(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most-1]) + "…"
}

// Bar is a figure in [0, 1] with its interval; Low and High are NaN without one.
type Bar struct {
	Name             string
	Value, Low, High float64
}

// BarOf is a figure without an interval.
func BarOf(name string, value float64) Bar { return Bar{name, value, math.NaN(), math.NaN()} }

// Bars draws figures in percent from the first to the last, downwards, and a dashed line at each level. It is nil for
// fewer than two figures.
func Bars(title, axis string, bars []Bar, levels ...Bar) []Chart {
	var shown []Bar
	for _, b := range bars {
		if !math.IsNaN(b.Value) {
			shown = append(shown, b)
		}
	}
	if len(shown) < 2 || len(shown) > mostBars {
		return nil
	}
	p := newPlot(axis+", %", "")
	p.Height = 45 + barStep*float64(len(shown))
	names := make([]string, len(shown))
	var said []string
	intervals := false
	for k, b := range shown {
		at := len(shown) - 1 - k // the axis goes upwards
		y, edge := float64(at), b.Value
		names[at] = cutName(b.Name, longest)
		p.Bar(palette[0], barHeight, y, 0, 100*b.Value)
		if !math.IsNaN(b.Low) && !math.IsNaN(b.High) {
			edge, intervals = max(edge, b.High), true
			p.Whisker(p.Ink, svg.Point{X: 100 * b.Low, Y: y}, svg.Point{X: 100 * b.High, Y: y})
		}
		p.Text(svg.Point{X: 100 * edge, Y: y}, 4, 3.5, "start", fmt.Sprintf("%.1f", 100*b.Value))
		said = append(said, fmt.Sprintf("%s %.1f %%", b.Name, 100*b.Value))
	}
	caption := title + "."
	for _, level := range levels {
		if x := 100 * level.Value; !math.IsNaN(x) {
			p.Line(palette[1], 1.5, "4 3", svg.Point{X: x, Y: -0.5}, svg.Point{X: x, Y: float64(len(shown)) - 0.5})
			said = append(said, fmt.Sprintf("%s %.1f %%", level.Name, x))
			caption += fmt.Sprintf(" Dashed: %s, %.1f %%.", level.Name, x)
		}
	}
	if intervals {
		caption += " Lines are 95 % intervals."
	}
	p.Y.Ticks = svg.Names(names)
	p.X.Min, p.X.Max = 0, max(leastSpan, min(115, p.X.Max*1.15)) // space for the numbers
	p.Y.Min, p.Y.Max = -0.6, float64(len(shown))-0.4
	return chartOf(p, title+": "+strings.Join(said, "; "), caption)
}

// sentBars draws the bytes that each site sent, with a bar of parts for each; nil if nothing was sent.
func sentBars(peers []heddle.Traffic) []Chart {
	most := int64(0)
	for _, q := range peers {
		most = max(most, q.Total())
	}
	if most == 0 || len(peers) > mostBars {
		return nil
	}
	unit, name := 1e6, "MB sent"
	if most < 1e6 {
		unit, name = 1e3, "kB sent"
	}
	p := newPlot(name, "")
	names, said := make([]string, len(peers)), make([]string, len(peers))
	for i, q := range peers {
		at, from := len(peers)-1-i, 0.0
		names[at], said[i] = cutName(q.Name, longest), q.Name+" "+cli.Bytes(q.Total())
		for k, n := range []int64{q.Halo, q.Reduce, q.Control} {
			p.Bar(palette[k], barHeight, float64(at), from, from+float64(n)/unit)
			from += float64(n) / unit
		}
	}
	for k, purpose := range []string{"rows of nodes (halo)", "model updates (reduce)", "control"} {
		p.LineKey(purpose, palette[k], 8, "")
	}
	p.Y.Ticks = svg.Names(names)
	const legend = 2.6 // bars
	p.Y.Min, p.Y.Max = -0.6, float64(len(peers))-0.4+legend
	p.Height = 45 + barStep*(float64(len(peers))+legend)
	title := "Bytes sent by site and purpose"
	return chartOf(p, title+": "+strings.Join(said, "; "), title+".")
}

// siteMap draws the sites of a federation on a circle, with a line between each two that are connected. It is nil for
// fewer than two sites and for too many to distinguish.
func siteMap(sites []federation.LiveSite) []Chart {
	n := len(sites)
	if n < 2 || n > mostBars {
		return nil
	}
	p := newPlot("", "")
	p.Bare = true
	at, said, here := make([]svg.Point, n), make([]string, n), 0
	for k, s := range sites {
		turn := math.Pi/2 - 2*math.Pi*float64(k)/float64(n)
		at[k] = svg.Point{X: math.Cos(turn), Y: math.Sin(turn)}
		said[k] = s.Name + " " + s.State
		if !s.Connected {
			continue
		}
		here++
		for q := range k {
			if sites[q].Connected {
				p.Line(palette[0], 1, "", at[k], at[q])
			}
		}
	}
	for k, s := range sites {
		shape, color, out := svg.Disc, palette[0], 0.2 // the name is that far from the mark, away from the center
		if !s.Connected {
			shape, color = svg.Ring, palette[1]
		}
		if at[k].Y < 0 {
			out = -out
		}
		p.Mark(shape, color, 6, at[k])
		p.Text(svg.Point{X: at[k].X, Y: at[k].Y + out}, 0, 3.5, "middle", cutName(s.Name, longest))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -1.9, 1.9, -1.4, 1.4
	return chartOf(p, "Federation: "+strings.Join(said, "; "),
		fmt.Sprintf("%d of %d sites are connected; a ring is a site that is not.", here, n))
}

// curves draws the training loss and the validation metric of a run, which may go on, as far as they are known.
func curves(r train.Result, metric string) []Chart {
	return append(curve("training loss", r, func(q train.Point) float64 { return q.Loss },
		func(train.StageResult) float64 { return math.NaN() }),
		curve("validation "+metric, r, func(q train.Point) float64 { return q.Val },
			func(s train.StageResult) float64 { return s.Val })...)
}

// curve draws a value over rounds, with a line for each stage and a ring around the round whose parameters the stage
// ended with. The stage that the model ends with has a disc in its ring. It is nil if no stage has two rounds of the
// value. after is the value after a stage's last round (NaN = it is not known).
func curve(label string, r train.Result, of func(train.Point) float64, after func(train.StageResult) float64) []Chart {
	p := newPlot("round", cutName(label, 32))
	p.Y.Grid = true
	var said []string
	var rings, discs []svg.Point
	for _, s := range r.Stages {
		xy := curvePoints(s.Curve, s.BestRound, of)
		if len(xy) < 2 {
			continue
		}
		// the state after the last round, which begins none
		if last := xy[len(xy)-1]; s.Ended && s.BestRound > int(last.X) {
			if end := after(s); !math.IsNaN(end) {
				last.Y = end
			}
			xy = append(xy, svg.Point{X: float64(s.BestRound), Y: last.Y})
		}
		for _, at := range xy {
			if s.Ended && int(at.X) == s.BestRound {
				rings = append(rings, at)
				if s.Stage == r.Ends {
					discs = append(discs, at)
				}
			}
		}
		k := len(said)
		color, dash := palette[k%len(palette)], []string{"", "6 3", "2 2"}[k/len(palette)%3]
		p.Line(color, 1.5, dash, xy...)
		if k < 7 { // more would cover the chart
			p.LineKey(s.Name, color, 1.5, dash)
		}
		said = append(said, fmt.Sprintf("%s from %.4g to %.4g", s.Name, xy[0].Y, xy[len(xy)-1].Y))
	}
	if len(said) == 0 {
		return nil
	}
	p.Mark(svg.Ring, p.Ink, 4.5, rings...)
	p.Mark(svg.Disc, p.Ink, 2.5, discs...)
	if label == "training loss" {
		p.Y.Min = 0
	} else {
		p.Bottom = true
		if more := leastSpan/100.*max(p.Y.Max, -p.Y.Min) - (p.Y.Max - p.Y.Min); more > 0 {
			p.Y.Min, p.Y.Max = p.Y.Min-more/2, p.Y.Max+more/2
		}
	}
	if n := len(said) - 4; n > 0 {
		said = append(said[:4], fmt.Sprintf("and %d more", n))
	}
	caption := strings.ToUpper(label[:1]) + label[1:] + " by round."
	if len(rings) > 0 {
		p.MarkKey("chosen round", svg.Ring, p.Ink, 4.5)
		caption += " A ring marks the round whose parameters were kept"
		if len(r.Stages) > 1 && len(discs) > 0 {
			caption += ", a dot in it the stage that the model ends with"
		}
		caption += "."
	}
	return chartOf(p, label+" by round: "+strings.Join(said, "; "), caption)
}

// curvePoints returns the points of a curve that are shown, among them the best round's.
func curvePoints(all []train.Point, best int, of func(train.Point) float64) (xy []svg.Point) {
	var known []train.Point
	for _, q := range all {
		if v := of(q); !math.IsNaN(v) && !math.IsInf(v, 0) {
			known = append(known, q)
		}
	}
	step := (len(known) + points - 1) / points
	for k, q := range known {
		if k%step == 0 || k == len(known)-1 || q.Round == best {
			xy = append(xy, svg.Point{X: float64(q.Round), Y: of(q)})
		}
	}
	return xy
}
