package svg

import (
	"encoding/xml"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Ticks are few, round, and have no zeros at their ends.
func TestTicks(t *testing.T) {
	for _, c := range [][2]float64{{0, 100}, {0, 1}, {-3, 7}, {12.3, 12.9}, {0, 1e-4}, {0, 31_000}, {80, 81}} {
		all := Ticks(c[0], c[1])
		if len(all) < 3 || len(all) > 9 {
			t.Errorf("%v: %d ticks", c, len(all))
		}
		for _, one := range all {
			if one.Value < c[0]-1e-9 || one.Value > c[1]+1e-9 || len(one.Text) > 7 ||
				strings.Contains(one.Text, ".") && strings.HasSuffix(one.Text, "0") || one.Text == "-0" {
				t.Errorf("%v: tick %+v", c, one)
			}
		}
	}
	if all := Ticks(0, 100); all[len(all)-1].Text != "100" {
		t.Errorf("%v", all)
	}
	if all := powers(0.5, 200); len(all) != 5+9+9+2 || all[5] != (Tick{1, "1"}) || all[6].Text != "" {
		t.Errorf("%v", all)
	}
}

// Everything is plotted inside the frame. A chart is XML with its text alternative, even if it is empty or has one
// point.
func TestElement(t *testing.T) {
	empty, one, full := New(Page, 300, 200, "x", "y"), New(Page, 300, 200, "x", "y"),
		New(Page, 300, 200, "x <&> x", "y")
	one.Mark(Disc, "red", 3, Point{5, 5})
	one.X.Log = true
	full.Line("red", 1, "4 3", Point{0, 1}, Point{10, 3})
	full.Whisker("red", Point{0, 1}, Point{0, 2})
	full.Bar("red", 5, 2, 0, 3)
	full.Cell("red", 0.5, Point{1, 1})
	full.Level("red", 1, "", 2)
	full.Text(Point{1, 1}, 0, 0, "start", "<text>")
	for s := range shapes {
		full.Mark(s, "red", 3, Point{float64(s), 2})
		full.MarkKey("mark", ShapeOf(int(s)), "red", 3)
	}
	full.LineKey("line", "red", 1, "")
	full.X.Ticks = Names([]string{"a", "b"})
	for _, p := range []*Plot{empty, one, full} {
		text := p.Element("an <alternative>")
		var read struct {
			Title string `xml:"title"`
		}
		if err := xml.Unmarshal([]byte(text), &read); err != nil || read.Title != "an <alternative>" ||
			strings.Contains(text, "NaN") {
			t.Errorf("%v: %s", err, text)
		}
	}
	f := &frame{p: full, left: 10, right: 110, top: 5, bottom: 55}
	if x, y := f.at(Point{full.X.Min, full.Y.Max}); x != 10 || y != 5 {
		t.Errorf("(%g, %g)", x, y)
	}
	a := Axis{Min: 1, Max: 100, Log: true}
	if s := a.share(10); math.Abs(s-0.5) > 1e-12 {
		t.Errorf("10 is at %g between 1 and 100", s)
	}
}

// The text of a tick at the end of the axis is inside the chart.
func TestLastTick(t *testing.T) {
	p := New(Page, 300, 200, "round", "loss")
	p.Line("red", 1, "", Point{0, 1}, Point{12_000, 3})
	text := p.Element("loss")
	found := regexp.MustCompile(`<text x="([0-9.]+)"[^>]*>12000</text>`).FindStringSubmatch(text)
	if found == nil {
		t.Fatal(text)
	}
	if x, err := strconv.ParseFloat(found[1], 64); err != nil || x+wide("12000", small)/2 > p.Width {
		t.Errorf("12000 is at %s of %g: %v", found[1], p.Width, err)
	}
}
