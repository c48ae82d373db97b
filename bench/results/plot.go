package results

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle/bench/chart"
	"github.com/heddle-gnn/heddle/bench/page"
)

// drawWays draws what the page says under -table ways, so that the plot and the table agree although
// rows are run again on different days.
func (o options) drawWays(_ context.Context, p *page.Page, _ *book) error {
	text, err := os.ReadFile(o.from)
	if err != nil {
		return err
	}
	names, panels, err := panelsOf(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", o.from, err)
	}
	p.Text("%s has %d data sets, from %s.", o.svg, len(panels), o.from)
	return chart.Write(o.svg, 4, names, panels...)
}

// panelsOf returns a panel for each data set in the tables of a page whose columns are those of
// printWays, and the names of the ways in them: points for all but the last way, which sends
// nothing and is a level.
func panelsOf(text string) (names []string, panels []chart.Panel, err error) {
	heads := make([]string, len(columnsOfWays))
	for i, c := range columnsOfWays {
		heads[i] = c[:strings.LastIndex(c, " %")]
	}
	within := false
	for line := range strings.Lines(text) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 0:
			within = false
		case slices.Equal(cells, heads):
			within = true
		case !within || strings.HasPrefix(cells[0], "-"):
		case len(cells) != len(heads):
			return nil, nil, fmt.Errorf("row %q must have %d cells (got %d)", strings.TrimSpace(line), len(heads), len(cells))
		default:
			cell := func(name string) string { return cells[slices.Index(heads, name)] }
			k := slices.IndexFunc(ways, func(w way) bool { return w.name == cell("what") })
			if k < 0 {
				return nil, nil, fmt.Errorf("row %q must be one of the ways to train", strings.TrimSpace(line))
			}
			mean, off, _ := strings.Cut(cell("test"), " ± ")
			var test, dev, mb float64
			for _, n := range []struct {
				to   *float64
				text string
			}{{&test, mean}, {&dev, off}, {&mb, cell("total MB")}} {
				if *n.to, err = strconv.ParseFloat(n.text, 64); err != nil {
					return nil, nil, fmt.Errorf("row %q: %w", strings.TrimSpace(line), err)
				}
			}
			if len(panels) == 0 || panels[len(panels)-1].Title != cells[0] {
				panels = append(panels, chart.Panel{Title: cells[0], X: "MB sent", Y: "test, %"})
			}
			name := ways[k].name
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			panel := &panels[len(panels)-1]
			if k == len(ways)-1 {
				panel.Level = test
			} else {
				panel.Points = append(panel.Points, chart.Point{Series: slices.Index(names, name), X: mb, Y: test, Off: dev})
			}
		}
	}
	if len(panels) == 0 {
		return nil, nil, fmt.Errorf("no table of -table ways")
	}
	return names, panels, nil
}

// cellsOf returns the cells of a row of a table, none of any other line.
func cellsOf(line string) []string {
	line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
	if !ok {
		line, ok = strings.CutPrefix(strings.TrimSpace(line), "|")
	}
	line, end := strings.CutSuffix(line, "|")
	if !ok || !end {
		return nil
	}
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}
