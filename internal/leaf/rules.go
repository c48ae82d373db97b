package leaf

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-gnn/heddle/gate"
)

// Rules set whom a site admits. A leaf is admitted as one of a cohort, not by its name: no roster lists it.
type Rules struct {
	Cohorts []gate.Cohort
	Attest  func(ctx context.Context, phone [16]byte, evidence []byte) (gate.Admission, error)
	Edges   *CrossEdges // that nodes of leaves have to nodes of other members; nil unless the agreement has edges
}

// RulesOf returns the rules of a site that admits phones as it sets them.
func RulesOf(p gate.Phones) (r Rules, err error) {
	r = Rules{Cohorts: p.Cohorts, Attest: p.Attest}
	if p.Edges != nil {
		r.Edges, err = NewEdges(p.Edges)
	}
	return r, errors.Join(p.Validate(), err)
}

// quota is what a cohort has used.
type quota struct {
	gate.Cohort
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
