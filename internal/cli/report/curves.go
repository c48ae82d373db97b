package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle/internal/svg"
	"github.com/heddle-gnn/heddle/train"
)

// points is how many points of a curve are drawn at most: more cannot be told apart.
const points = 300

// Curves draws the training loss and the validation metric of a run, which may go on, as far as they are known.
func Curves(r train.Result, metric string) []Chart {
	loss := curves("training loss", r, func(q train.Point) float64 { return q.Loss }, func(train.StageResult) float64 { return math.NaN() })
	val := curves("validation "+metric, r, func(q train.Point) float64 { return q.Val }, func(s train.StageResult) float64 { return s.Val })
	return charts(loss, val)
}

// curves draws a value over rounds, with a line for each stage, a ring around the round whose parameters the stage ended
// with, and a disc in that of the stage that the model ends with. It is empty if no stage has two rounds of the value.
// after is the value after a stage's last round; NaN: it is not known.
func curves(label string, r train.Result, of func(train.Point) float64, after func(train.StageResult) float64) Chart {
	p := withGrid(newPlot("round", label))
	var said []string
	var rings, discs []svg.Point
	for _, s := range r.Stages {
		xy := line(s.Curve, s.BestRound, of)
		if len(xy) < 2 {
			continue
		}
		if last := xy[len(xy)-1]; s.Ended && s.BestRound > int(last.X) { // the state after the last round, which no round begins with
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
		return Chart{}
	}
	p.Mark(svg.Ring, p.Ink, 4.5, rings...)
	p.Mark(svg.Disc, p.Ink, 2.5, discs...)
	if len(rings) > 0 {
		p.MarkKey("chosen round", svg.Ring, p.Ink, 4.5)
	}
	if label == "training loss" {
		p.Y.Min = 0
	} else {
		p.Bottom = true
	}
	more := ""
	if len(said) > 4 {
		said, more = said[:4], fmt.Sprintf("; and %d more", len(said)-4)
	}
	caption := strings.ToUpper(label[:1]) + label[1:] + " by round."
	if len(rings) > 0 {
		caption += " A ring marks the round whose parameters were kept"
		if len(r.Stages) > 1 && len(discs) > 0 {
			caption += ", a dot in it the stage that the model ends with"
		}
		caption += "."
	}
	return Chart{picture(p, label+" by round: "+strings.Join(said, "; ")+more), caption}
}

// line returns the points of a curve that are drawn, among them the best round's.
func line(curve []train.Point, best int, of func(train.Point) float64) (xy []svg.Point) {
	var all []train.Point
	for _, q := range curve {
		if v := of(q); !math.IsNaN(v) && !math.IsInf(v, 0) {
			all = append(all, q)
		}
	}
	step := (len(all) + points - 1) / points
	for k, q := range all {
		if k%step == 0 || k == len(all)-1 || q.Round == best {
			xy = append(xy, svg.Point{X: float64(q.Round), Y: of(q)})
		}
	}
	return xy
}
