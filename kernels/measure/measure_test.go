package measure

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/kernels"
)

// TestRun holds that every turn is one of each, and that ratios say how many times faster ours is.
func TestRun(t *testing.T) {
	var ours, peaks, theirs int
	c := Case{
		Work:    1e9,
		Peak:    func(Clock) float64 { peaks++; return 1e6 },
		Prepare: func() func() { return func() { ours++; time.Sleep(10 * time.Millisecond) } },
	}
	r, err := c.Run(5, Wall, func() (map[string]float64, error) { theirs++; return map[string]float64{"slow": 3600}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if ours != 7 || peaks != 5 || theirs != 5 {
		t.Errorf("%d, %d and %d runs, want 7, 5 and 5", ours, peaks, theirs)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }
	if !(r.Rate > 0 && r.Rate <= 100) || !near(r.OfPeak, r.Rate/1e6) || !near(r.Times["slow"], 3600*r.Rate) {
		t.Errorf("%+v", r)
	}
	broken := errors.New("broken")
	if _, err := c.Run(1, Wall, func() (map[string]float64, error) { return nil, broken }); err != broken {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestCases runs what is small of the table.
func TestCases(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Cases(true) {
		if names[c.Name] || c.Work <= 0 || c.Unit == "" {
			t.Errorf("case %q: %g %s, or its name is taken", c.Name, c.Work, c.Unit)
		}
		names[c.Name] = true
		if !strings.Contains(c.Name, "2708×7") {
			continue
		}
		r, err := c.Run(1, Wall, nil)
		if err != nil || !(r.Rate > 0) {
			t.Errorf("%s: %+v, %v", c.Name, r, err)
		}
		if known := kernels.Name() != "generic" && fmaFlops() > 0; known != (r.OfPeak > 0) {
			t.Errorf("%s: fraction %g of the peak", c.Name, r.OfPeak)
		}
	}
}
