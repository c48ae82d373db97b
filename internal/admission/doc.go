// Package admission decides who may take part in a federation and with what plan. It has four files: a roster that a
// quorum of administrators signs, a site's approval of a plan, the site's own policy, and an audit log that shows
// whether it was changed. docs/how-to/federation.md shows how three hospitals use them.
//
// It uses no network. A peer is its Ed25519 key. Its peer ID, which rosters list, is that key as libp2p writes it, so
// that a signature can be checked with its file and nothing else.
package admission

import "fmt"

// Refusal names the rule that refuses something, and the reason. Rule is one of a fixed set of words, for scripts and
// the log: "roster.expired", "policy.encoders", "approval.plan".
type Refusal struct {
	Rule   string
	Reason string
}

func (r *Refusal) Error() string { return r.Rule + ": " + r.Reason }

func refuse(rule, format string, args ...any) error {
	return &Refusal{Rule: rule, Reason: fmt.Sprintf(format, args...)}
}
