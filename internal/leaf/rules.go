package leaf

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Rules say whom a site admits. A leaf is admitted as one of a cohort, not by its name: no roster lists it.
type Rules struct {
	Cohorts []Cohort

	// Attest judges what a leaf shows of itself. The program that embeds the site knows what its leaves can show: the
	// verdict of a platform (Play Integrity, App Attest), a code of invitation, a client certificate. Without it
	// everybody could be as many leaves as a cohort has space for.
	Attest func(ctx context.Context, t Token, evidence []byte) (Admission, error)

	// Edges are those that nodes of leaves have to nodes of other members; nil unless the agreement has edges.
	Edges *CrossEdges
}

// Admission is as what a leaf is admitted.
type Admission struct {
	Cohort string
	Nodes  []string // of Rules.Edges that are the leaf's own, and no other leaf's
}

// Cohort is a kind of leaves that a site knows.
type Cohort struct {
	Name string
	Most int     // leaves of it in a run
	Rate float64 // messages a second of all of them together (0 = no bound)
}

// Validate returns the first fault of r, or nil.
func (r Rules) Validate() error {
	if r.Attest == nil || len(r.Cohorts) == 0 {
		return fmt.Errorf("rules for leaves need a cohort and a judge of what leaves show of themselves")
	}
	names := map[string]bool{}
	for _, c := range r.Cohorts {
		if names[c.Name] || c.Most < 1 || !(c.Rate >= 0) || math.IsInf(c.Rate, 0) {
			return fmt.Errorf("a cohort must have its own name, at least 1 leaf and a rate of at "+
				"least 0 (got %+v)", c)
		}
		names[c.Name] = true
	}
	return nil
}

// quota is what a cohort has used.
type quota struct {
	Cohort
	leaves  int
	allowed float64 // messages
	at      time.Time
}

// burst is how many seconds' messages may come at once.
const burst = 10

// take counts a message that comes now, and reports whether the rate allows it.
func (q *quota) take(now time.Time) bool {
	if q.Rate == 0 {
		return true
	}
	if q.at.IsZero() {
		q.allowed = burst * q.Rate
	} else {
		q.allowed = min(q.allowed+q.Rate*now.Sub(q.at).Seconds(), burst*q.Rate)
	}
	if q.at = now; q.allowed < 1 {
		return false
	}
	q.allowed--
	return true
}
