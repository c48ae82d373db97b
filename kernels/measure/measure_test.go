package measure

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/kernels"
)

// TestRun checks that every turn has one measurement of each, that enough turns count, and that ratios are how many
// times faster our kernel is. The test's clock shows a constant speed, and our work takes 10 ms.
func TestRun(t *testing.T) {
	var ours, peaks, theirs int
	var now atomic.Int64
	clock := func() time.Duration { return time.Duration(now.Add(int64(time.Microsecond))) }
	c := Case{
		Work:    1e9,
		Peak:    func(Clock) float64 { peaks++; return 1e6 },
		Prepare: func() func() { return func() { ours++; now.Add(int64(10 * time.Millisecond)) } },
	}
	slow := Engine{"slow", func() (float64, error) { theirs++; return 3600, nil }}
	r, err := c.Run(5, clock, 0, slow)
	if err != nil {
		t.Fatal(err)
	}
	if peaks != 5 || ours != 2+2*peaks || theirs != peaks || r.Turns != peaks {
		t.Errorf("%d, %d and %d runs, %d turns count, must be 12 and 5 of each", ours, peaks, theirs, r.Turns)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }
	if !(r.Rate > 0 && r.Rate <= 100) || !near(r.OfPeak, r.Rate/1e6) || !near(r.Times["slow"], 3600*r.Rate) {
		t.Errorf("%+v", r)
	}
	broken := errors.New("broken")
	if _, err := c.Run(1, clock, 0, Engine{"broken", func() (float64, error) { return 0, broken }}); err != broken {
		t.Errorf("error %v, must be %v", err, broken)
	}
}

// TestGood checks that slow turns do not count if there are enough others.
func TestGood(t *testing.T) {
	slow := &Turns{best: 300, speeds: []float64{300, 150, 280, 110},
		turns: []Turn{{"x": 1}, {"x": 9}, {"x": 2}, {"x": 8}}}
	x := func(t Turn) float64 { return t["x"] }
	if good := slow.Good(2); len(good) != 2 || Median(good, x) != 1.5 {
		t.Errorf("good turns %v", good)
	}
	if all := slow.Good(3); len(all) != 4 || Median(all, x) != 5 {
		t.Errorf("of too few good turns: %v", all)
	}
	unknown := &Turns{speeds: make([]float64, 3), turns: make([]Turn, 3)}
	if len(unknown.Good(3)) != 3 {
		t.Error("turns of unknown speed do not count")
	}
}

// TestSettle checks that a turn has the lowest speed around its parts.
func TestSettle(t *testing.T) {
	turns := NewTurns(Wall)
	turns.Settle(0) // before any turn
	turns.Begin()
	turns.Check()
	turns.best *= 1e6 // as if the machine had been much faster
	turn := turns.Begin()
	turn["x"] = 1
	if good := turns.Good(1); turns.best > 0 && (len(good) != 2 || len(turns.kept()) != 0) {
		t.Errorf("%+v: %v", turns, good)
	}
	if turns.Reset(); len(turns.Good(0)) != 0 || fmaFlops() > 0 && turns.best == 0 {
		t.Errorf("after Reset: %+v", turns)
	}
}

// TestCases runs the small cases.
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
		r, err := c.Run(1, Wall, 0)
		if err != nil || !(r.Rate > 0) {
			t.Errorf("%s: %+v, %v", c.Name, r, err)
		}
		if known := kernels.Name() != "generic" && fmaFlops() > 0; known != (r.OfPeak > 0) {
			t.Errorf("%s: fraction %g of the peak", c.Name, r.OfPeak)
		}
	}
}
