package chart

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Panels of points and a level give an SVG file that names all series once, even if a figure is not a number.
func TestWrite(t *testing.T) {
	panel := Panel{Title: "cora", X: "MB", Y: "test", Level: 81.5,
		Points: []Point{{0, 0.3, 82.5, 0.4}, {1, 1788, 79.9, 0}, {1, 5, math.NaN(), 0}}}
	level, plain := panel, panel
	level.Title, plain.Title, plain.Level = "citeseer", "photo", 0
	for _, columns := range []int{1, 2, 4} {
		path := filepath.Join(t.TempDir(), "plot.svg")
		if err := Write(path, columns, []string{"few bytes", "many bytes", "one machine"}, panel, level,
			plain); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(text, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%d columns: %v", columns, err)
		}
		for _, want := range []string{"cora", "citeseer", "photo", "few bytes", "many bytes", "one machine"} {
			if n := strings.Count(string(text), ">"+want+"<"); n != 1 {
				t.Errorf("%d columns: %q must be there once (got %d)", columns, want, n)
			}
		}
	}
	if err := Write(filepath.Join(t.TempDir(), "no", "folder.svg"), 2, nil, panel); err == nil {
		t.Error("a file that cannot be written must be an error")
	}
}
