package tune

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// gave is what a candidate of a test gives.
type gave struct {
	val   float64
	sent  int64
	ended string
}

// played lets candidates try in the contest's order, and returns that order.
func played(t *testing.T, c *Contest, all []gave) (order []int) {
	t.Helper()
	for {
		i, ok := c.Next()
		if !ok {
			return order
		}
		order = append(order, i)
		c.End(i, Verdict{Val: all[i].val, Sent: all[i].sent, Ended: all[i].ended})
	}
}

// TestChoice: the validation metric decides, unless the validation nodes cannot tell candidates apart. 400 labels have a
// standard error of 0.02 at 0.8, and of 0.0022 at 0.998.
func TestChoice(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []gave
		want int
	}{
		{"the only one", []gave{{0.1, 5, ""}}, 0},
		{"the best", []gave{{0.7, 1, ""}, {0.8, 9, ""}, {0.75, 5, ""}}, 1},
		{"within half a standard error the fewest bytes", []gave{{0.998, 9, ""}, {0.9971, 2, ""}, {0.9975, 3, ""}}, 1},
		{"beyond it the metric", []gave{{0.998, 9, ""}, {0.9965, 2, ""}, {0.9975, 3, ""}}, 2},
		{"within half a point", []gave{{0.8, 9, ""}, {0.7951, 2, ""}, {0.797, 3, ""}}, 1},
		{"beyond half a point", []gave{{0.8, 9, ""}, {0.7949, 2, ""}, {0.797, 3, ""}}, 2},
		{"as many bytes, the simplest", []gave{{0.795, 3, ""}, {0.8, 3, ""}, {0.8, 3, ""}}, 0},
		{"not one that was stopped", []gave{{0.6, 3, ""}, {0.8, 1, "stopped"}}, 0},
		{"not one that was not validated", []gave{{math.NaN(), 1, ""}, {0.2, 3, ""}}, 1},
		{"nothing right is a metric, too", []gave{{0, 3, ""}, {0, 2, ""}}, 1},
		{"all right has no error", []gave{{0.999, 1, ""}, {1, 9, ""}}, 1},
	} {
		c2, err := New("accuracy", 1000, 400, make([]Entrant, len(c.all)))
		if err != nil {
			t.Fatal(err)
		}
		played(t, c2, c.all)
		if got, err := c2.Choice(); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
	}
}

// TestUsual: the usual candidate is chosen within a standard error of the best (0.02 at 0.8) whatever it sent, and is tried
// first where it may send at most half of the budget.
func TestUsual(t *testing.T) {
	all := []Entrant{{Name: "cheap", Limit: 1}, {Name: "usual", Usual: true, Limit: 50}, {Name: "dear", Limit: 60}}
	for _, c := range []struct {
		name   string
		budget int64
		usual  gave
		order  []int
		want   int
	}{
		{"within a standard error", 1000, gave{0.781, 50, ""}, []int{1, 0, 2}, 1},
		{"beyond it", 1000, gave{0.779, 50, ""}, []int{1, 0, 2}, 0},
		{"it failed", 1000, gave{0.9, 50, "failed"}, []int{1, 0, 2}, 0},
		{"over half of the budget", 99, gave{0.781, 50, ""}, []int{0, 1}, 1},
		{"over the budget", 49, gave{}, []int{0}, 0},
	} {
		contest, err := New("accuracy", c.budget, 400, all)
		if err != nil {
			t.Fatal(err)
		}
		if order := played(t, contest, []gave{{0.8, 1, ""}, c.usual, {0.795, 60, ""}}); !slices.Equal(order, c.order) {
			t.Errorf("%s: candidates must be tried in the order %v (got %v)", c.name, c.order, order)
		}
		if got, err := contest.Choice(); err != nil || got != c.want {
			t.Errorf("%s: the choice must be %d (got %d, %v)", c.name, c.want, got, err)
		}
	}
}

// TestOneTarget: of two targets of rows one alone is sent, by what plans without rows validate: that of the usual candidate, unless
// the other is better by more than half a standard error (0.01 at 0.8). Where one of these, or the usual candidate, is missing, both are.
func TestOneTarget(t *testing.T) {
	all := []Entrant{{Name: "own", Target: "labels", Own: true, Limit: 9}, {Name: "own too", Target: "residual", Own: true, Limit: 9},
		{Name: "rows", Target: "residual", Limit: 1}, {Name: "other rows", Target: "residual", Limit: 20},
		{Name: "usual", Target: "labels", Usual: true, Limit: 60}, {Name: "any", Limit: 40}}
	for _, c := range []struct {
		name   string
		budget int64
		gave   [2]gave
		order  []int
	}{
		{"the usual target is better", 1000, [2]gave{{0.9, 1, ""}, {0.8, 1, ""}}, []int{0, 1, 4, 5}},
		{"it is within half a standard error", 1000, [2]gave{{0.791, 1, ""}, {0.8, 1, ""}}, []int{0, 1, 4, 5}},
		{"the other is better", 1000, [2]gave{{0.789, 1, ""}, {0.8, 1, ""}}, []int{0, 1, 2, 3, 5}},
		{"the other is better, and the usual one comes late", 110, [2]gave{{0.789, 1, ""}, {0.8, 1, ""}}, []int{0, 1, 2, 3, 5}},
		{"the usual one is over the budget", 50, [2]gave{{0.9, 1, ""}, {0.8, 1, ""}}, []int{0, 1, 2, 3, 5}},
		{"one of them failed", 1000, [2]gave{{0.9, 1, ""}, {0.8, 1, "failed"}}, []int{0, 1, 4, 2, 3, 5}},
	} {
		contest, err := New("accuracy", c.budget, 400, all)
		if err != nil {
			t.Fatal(err)
		}
		same := gave{0.8, 1, ""}
		if order := played(t, contest, []gave{c.gave[0], c.gave[1], same, same, same, same}); !slices.Equal(order, c.order) {
			t.Errorf("%s: candidates must be tried in the order %v (got %v)", c.name, c.order, order)
		}
		for i, v := range contest.Verdicts {
			if tried := slices.Contains(c.order, i); tried != (v.Ended == "" || v.Ended == "failed") {
				t.Errorf("%s: %s is tried: %t, but ended by %q", c.name, all[i].Name, tried, v.Ended)
			}
		}
	}
}

// TestNoChoice: the error says of each candidate why it was not trained.
func TestNoChoice(t *testing.T) {
	c, err := New("accuracy", 10, 5, []Entrant{{Name: "large", Limit: 11}, {Name: "wrong", Barred: "no such thing"}, {Name: "weak"}})
	if err != nil {
		t.Fatal(err)
	}
	played(t, c, []gave{{}, {}, {ended: "failed: diverged"}})
	_, err = c.Choice()
	for _, want := range []string{"large: over the budget: it sends at most 1.1e-05 MB, and 1e-05 MB are left", "wrong: no such thing", "weak: failed: diverged"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if _, err := New("accuracy", 10, 0, nil); err == nil || !strings.Contains(err.Error(), "must be at least 1 (got 0)") {
		t.Errorf("%v, want that validation labels are needed", err)
	}
}

// TestOrderAndBudget: cheap before dear; what does not fit is passed over, and what comes after it is
// not; bytes that are not sent are there for the next.
func TestOrderAndBudget(t *testing.T) {
	all := []Entrant{{Name: "dearest", Limit: 60}, {Name: "dear", Limit: 50}, {Name: "cheap", Limit: 10},
		{Name: "as cheap", Limit: 10}, {Name: "between", Limit: 20}, {Name: "barred", Barred: "why"}}
	same := slices.Repeat([]gave{{0.5, 10, ""}}, len(all))
	for _, c := range []struct {
		budget int64
		want   []int
	}{{1000, []int{2, 3, 4, 1, 0}}, {9, nil}, {19, []int{2}}, {39, []int{2, 3}}, {40, []int{2, 3, 4}}, {80, []int{2, 3, 4, 1}}, {99, []int{2, 3, 4, 1}}, {100, []int{2, 3, 4, 1, 0}}} {
		contest, err := New("accuracy", c.budget, 100, all)
		if err != nil {
			t.Fatal(err)
		}
		if got := played(t, contest, same); !slices.Equal(got, c.want) {
			t.Errorf("budget %d: %v, want %v", c.budget, got, c.want)
		}
		for i, v := range contest.Verdicts {
			if tried := slices.Contains(c.want, i); tried != (v.Ended == "") || !tried && v.Val == v.Val {
				t.Errorf("budget %d: candidate %d is %+v", c.budget, i, v)
			}
		}
	}
}
