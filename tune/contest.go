// Package tune chooses among ways to train by their validation metric alone, within a budget of bytes.
package tune

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/heddle-gnn/heddle/nn/eval"
)

// Why a contest has no choice.
var (
	// ErrNone says that no candidate was trained to its end.
	ErrNone = errors.New("no plan was trained to its end")
	// ErrForeign says that a directory has what a candidate of another contest gave.
	ErrForeign = errors.New("it is of another plan or of other data")
)

// forBytes is the most that the validation metric may lose for fewer bytes: half a point.
const forBytes = 0.005

// Entrant is what is known of a way to train before it is tried.
type Entrant struct {
	Name   string
	Plan   string // text that tells its plan from others
	Usual  bool   // chosen unless another is better by more than a standard error
	Target string // of its rows: those of one target alone are sent; empty: whatever others send
	Own    bool   // sends no rows
	Limit  int64  // bytes that all peers send at most
	Barred string // why it cannot be tried; empty: it can
}

// Verdict is what became of a candidate.
type Verdict struct {
	Val     float64 // validation metric, in [0, 1]; NaN: it was not tried, or nothing was validated
	Error   float64 // standard error of Val; NaN in the same cases
	Limit   int64   // bytes that all peers would send at most
	Sent    int64   // bytes that all peers sent
	Seconds float64
	Ended   string // why it was not tried or not trained to its end; empty: it was
}

// Contest tries candidates one after the other and chooses one of them. It decides from what all peers know alike, so
// that each of them decides the same.
type Contest struct {
	Verdicts []Verdict // by candidate

	metric         eval.Metric
	budget, labels int64
	candidates     []Entrant
	order          []int // in which candidates are tried: usual ones, then by bytes, then as given
	next           int   // of order
	spent          int64
}

// New returns the contest of candidates, of which an earlier one is simpler. All of them together may send so many
// bytes as budget says; labels is the number of labels in the validation nodes of all peers. More of the metric is better, and
// it is 1 at most.
func New(metric eval.Metric, budget, labels int64, candidates []Entrant) (*Contest, error) {
	if labels < 1 {
		return nil, errors.New("validation nodes with labels must be at least 1 (got 0): candidates are chosen by them")
	}
	c := &Contest{metric: metric, budget: budget, labels: labels, candidates: candidates}
	for i, one := range candidates {
		c.order = append(c.order, i)
		c.Verdicts = append(c.Verdicts, Verdict{Val: math.NaN(), Error: math.NaN(), Limit: one.Limit, Ended: one.Barred})
	}
	slices.SortStableFunc(c.order, func(a, b int) int {
		x, y := candidates[a], candidates[b]
		return cmp.Or(cmp.Compare(c.early(y), c.early(x)), cmp.Compare(x.Limit, y.Limit))
	})
	return c, nil
}

// early is 2 for a candidate that says which rows are sent, and 1 for a usual one that may send at most half of the budget:
// it is tried before others spend what it needs. It is 0 for any other.
func (c *Contest) early(one Entrant) int {
	switch {
	case one.Target != "" && one.Own:
		return 2
	case one.Usual && one.Limit <= c.budget/2:
		return 1
	}
	return 0
}

// Next returns the candidate to try now; ok is false when none is left. Those that it passes over are told why.
func (c *Contest) Next() (i int, ok bool) {
	for ; c.next < len(c.order); c.next++ {
		i = c.order[c.next]
		if c.Verdicts[i].Ended == "" {
			c.Verdicts[i].Ended = c.refused(c.candidates[i])
		}
		if c.Verdicts[i].Ended == "" {
			c.next++
			return i, true
		}
	}
	return 0, false
}

// refused says why a candidate is not worth a try; empty: it is.
func (c *Contest) refused(one Entrant) string {
	if name := c.instead(one); name != "" {
		return fmt.Sprintf("rows of one target alone are sent: the one of %s, by what it validates", name)
	}
	if left := c.budget - c.spent; one.Limit > left {
		return fmt.Sprintf("over the budget: it sends at most %s, and %s are left", megabytes(one.Limit), megabytes(max(left, 0)))
	}
	return ""
}

// instead returns the candidate that says that rows of one's target are not to be sent beside those of the other; empty: none
// does. Of two candidates without rows, one of each target, the better one has the target of which rows are sent. That of
// the usual candidate is taken where they are within half a standard error, and where it cannot be tried, any.
func (c *Contest) instead(one Entrant) string {
	if one.Target == "" || one.Own {
		return ""
	}
	usual, other, can := -1, -1, ""
	for i, e := range c.candidates {
		v := c.Verdicts[i]
		if e.Usual && v.Ended == "" && (v.Val == v.Val || e.Limit <= c.budget-c.spent) {
			can = e.Target
		}
	}
	for i, e := range c.candidates {
		if v := c.Verdicts[i]; e.Target == "" || !e.Own || v.Ended != "" { // others were tried before
			continue
		} else if e.Target == can {
			usual = i
		} else {
			other = i
		}
	}
	if usual < 0 || other < 0 {
		return ""
	}
	taken := usual
	if x, y := c.Verdicts[usual].Val, c.Verdicts[other]; y.Val-y.Error/2 > x {
		taken = other
	}
	if c.candidates[taken].Target == one.Target {
		return ""
	}
	return c.candidates[taken].Name
}

// End notes what became of candidate i: its v. Limit is set here, and Error unless v has it.
func (c *Contest) End(i int, v Verdict) {
	if v.Limit = c.candidates[i].Limit; !(v.Error > 0) {
		v.Error = c.metric.StandardError(v.Val, float64(c.labels))
	}
	c.Verdicts[i] = v
	c.spent += v.Sent
}

// best returns the candidate with the best metric of those that were trained to their end, and that metric; −1: there is
// none.
func (c *Contest) best() (at int, val float64) {
	at = -1
	for i, a := range c.Verdicts {
		if a.Ended == "" && (at < 0 && a.Val == a.Val || a.Val > val) {
			at, val = i, a.Val
		}
	}
	return at, val
}

// untold returns the candidate that is taken if no metric is defined, as of a ranking of nodes of one class: a usual
// one, else the simplest; −1: none was trained to its end.
func (c *Contest) untold() (at int) {
	at = -1
	for i, a := range c.Verdicts {
		if a.Ended == "" && (at < 0 || c.candidates[i].Usual && !c.candidates[at].Usual) {
			at = i
		}
	}
	return at
}

// Choice returns the candidate that is chosen: a usual one within a standard error of the best, which the validation
// nodes cannot tell from it (the one-standard-error rule, Breiman et al., 1984, §3.4.3). Where there is none, it is, of
// those within half a standard error of the best and within forBytes of it, the one that sent the fewest bytes, then the
// simplest. It is an error if none was trained to its end; the error says what became of each.
func (c *Contest) Choice() (int, error) {
	at, val := c.best()
	if at < 0 {
		if i := c.untold(); i >= 0 {
			return i, nil
		}
		var all []error
		for i, a := range c.Verdicts {
			all = append(all, fmt.Errorf("%s: %s", c.candidates[i].Name, cmp.Or(a.Ended, "nothing was validated")))
		}
		return 0, fmt.Errorf("%w:\n%w", ErrNone, errors.Join(all...))
	}
	for i, a := range c.Verdicts {
		if c.candidates[i].Usual && a.Ended == "" && a.Val >= val-c.Verdicts[at].Error {
			return i, nil
		}
	}
	least := val - min(c.Verdicts[at].Error/2, forBytes)
	chosen := -1
	for i, a := range c.Verdicts {
		if a.Ended == "" && a.Val >= least && (chosen < 0 || a.Sent < c.Verdicts[chosen].Sent) {
			chosen = i
		}
	}
	return chosen, nil
}

// megabytes writes a number of bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.4g MB", float64(n)/1e6) }
