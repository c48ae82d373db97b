package results

import (
	"context"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/bench/chart"
	"github.com/heddle-gnn/heddle/bench/page"
)

// waysTable is the table that -table plot draws.
const waysTable = "ways to train"

// drawWays draws the lines of -table ways, so that the plot and the page agree.
func (o options) drawWays(_ context.Context, p *page.Page, _ *book) error {
	lines, err := page.Read(o.from)
	if err != nil {
		return err
	}
	names, panels, err := panelsOf(lines)
	if err != nil {
		return fmt.Errorf("%s: %w", o.from, err)
	}
	p.Text("%s has %d data sets, from %s.", o.svg, len(panels), o.from)
	return chart.Write(o.svg, 4, names, panels...)
}

// panelsOf returns a panel for each data set, and the names of the ways: points for all but the last way, which sends
// nothing and is a level.
func panelsOf(lines []page.Line) (names []string, panels []chart.Panel, err error) {
	for _, l := range lines {
		if l.Table != waysTable {
			continue
		}
		data, _ := l.Row.Text("data set")
		what, _ := l.Row.Text("what")
		test, off, err := l.Row.Number("test")
		if err != nil {
			return nil, nil, err
		}
		k := slices.IndexFunc(ways, func(w way) bool { return w.name == what })
		if k < 0 {
			return nil, nil, fmt.Errorf("%q must be one of the ways to train", what)
		}
		if len(panels) == 0 || panels[len(panels)-1].Title != data {
			panels = append(panels, chart.Panel{Title: data, X: "MB sent", Y: "test, %"})
		}
		if !slices.Contains(names, what) {
			names = append(names, what)
		}
		panel := &panels[len(panels)-1]
		if k == len(ways)-1 {
			panel.Level = test
		} else {
			mb, _, err := l.Row.Number("total MB")
			if err != nil {
				return nil, nil, err
			}
			at := chart.Point{Series: slices.Index(names, what), X: mb, Y: test, Off: off}
			panel.Points = append(panel.Points, at)
		}
	}
	if len(panels) == 0 {
		return nil, nil, fmt.Errorf("no table %q", waysTable)
	}
	return names, panels, nil
}
