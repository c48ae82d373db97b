// Package admission says who may take part in a federation, with what plan, and keeps the record of
// it: a roster that a quorum of administrators signs, a site's approval of a plan, the site's own
// policy, and a log that shows when it was changed. docs/how-to/federation.md tells how three
// hospitals use it.
//
// It knows no network. A peer is its Ed25519 key, and its peer ID, which rosters list, is that key
// written as libp2p does; so a signature can be checked with nothing but the file it stands in.
package admission

import "fmt"

// Refusal says which rule refuses what. Rule is one of a fixed set of words, for scripts and the
// log: "roster.expired", "policy.encoders", "approval.plan".
type Refusal struct {
	Rule   string
	Reason string
}

func (r *Refusal) Error() string { return r.Rule + ": " + r.Reason }

func refuse(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Reason: fmt.Sprintf(format, args...)}
}
