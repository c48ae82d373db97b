package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Phones are whom a site admits of the phones whose shares it collects. A phone is admitted as one of a cohort, not by
// its name: no roster lists it.
type Phones struct {
	Listen  []string      // multiaddresses to listen on for phones (nil = the plan's)
	Stay    time.Duration // at most, when the model is final, for phones that have not fetched all sums yet
	Cohorts []Cohort

	// Attest judges what a phone shows of itself. The program that embeds the site knows what its phones can show: the
	// verdict of a platform (Play Integrity, App Attest), a code of invitation, a client certificate. Without it
	// everybody could be as many phones as a cohort has space for. phone names it within the run.
	Attest func(ctx context.Context, phone [16]byte, evidence []byte) (Admission, error)

	// Edges are those that nodes of phones have to nodes of other members, by name; nil unless the plan has leaf_edges.
	Edges [][2]string
}

// Admission is as what a phone is admitted.
type Admission struct {
	Cohort string
	Nodes  []string // of Phones.Edges that are the phone's own, and no other phone's
}

// Cohort is a kind of phones that a site knows.
type Cohort struct {
	Name string
	Most int     // phones of it in a run
	Rate float64 // messages a second of all of them together (0 = no bound)
}

// Validate returns the first fault of p, or nil.
func (p Phones) Validate() error {
	if p.Attest == nil || len(p.Cohorts) == 0 {
		return errors.New("rules for phones need a cohort and a judge of what phones show of themselves")
	}
	names := map[string]bool{}
	for _, c := range p.Cohorts {
		if names[c.Name] || c.Most < 1 || !(c.Rate >= 0 && c.Rate <= math.MaxFloat64) {
			return fmt.Errorf("a cohort must have its own name, at least 1 phone and a rate of at least 0 (got %+v)", c)
		}
		names[c.Name] = true
	}
	return nil
}
