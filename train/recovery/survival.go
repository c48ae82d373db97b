package recovery

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Survival says how a run goes on when a peer is lost. The zero value: all wait for it, and go on from a checkpoint.
type Survival struct {
	// MinPeers is the least number of members with which the run goes on: more than half of the peers, and at least 2;
	// 0: all of them. Two groups that cannot reach each other could otherwise train a model each.
	MinPeers int `json:"min_peers,omitempty"`

	// FailedRows is what stands for the rows of a lost peer when rows are exchanged: wait (nothing; it is waited for),
	// previous (those of the exchange before, where they are as wide, or else as drop) or drop (the edges from its nodes
	// are gone, and the others' weights are those of a graph without them). Empty: wait.
	FailedRows string `json:"failed_rows,omitempty"`

	// Straggler is what happens to a slow peer: wait; drop, which goes on without it when a round's sum has been waited for as
	// long as RoundLimit, and it comes back as a lost one does; or adapt, which gives it less local work (pace). Empty: wait.
	Straggler  string        `json:"straggler,omitempty"`
	RoundLimit time.Duration `json:"round_limit,omitempty"` // with drop: at least 100 ms
}

const leastRoundLimit = 100 * time.Millisecond

// On reports whether the run goes on without lost peers.
func (s Survival) On() bool { return s.MinPeers > 0 }

// Validate returns all faults of s for a run of so many peers, or of any number where peers is 0.
func (s Survival) Validate(peers int) error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(s.MinPeers < 0 || s.MinPeers == 1, "min_peers must be 0 (all) or at least 2 (got %d): one peer alone has nobody to agree with", s.MinPeers)
	fault(peers > 0 && s.MinPeers > peers, "min_peers must be at most the number of peers, %d (got %d)", peers, s.MinPeers)
	fault(peers > 0 && s.MinPeers > 1 && 2*s.MinPeers <= peers,
		"min_peers must be more than half of %d peers (got %d): two groups that cannot reach each other would train a model each", peers, s.MinPeers)
	fault(!slices.Contains([]string{"", "wait", "previous", "drop"}, s.FailedRows), "failed_rows must be wait, previous or drop (got %q)", s.FailedRows)
	fault(!slices.Contains([]string{"", "wait", "drop", "adapt"}, s.Straggler), "straggler must be wait, drop or adapt (got %q)", s.Straggler)
	fault(s.Straggler == "drop" && s.RoundLimit < leastRoundLimit, "round_limit must be at least %v with straggler drop (got %v)", leastRoundLimit, s.RoundLimit)
	fault(s.Straggler != "drop" && s.RoundLimit != 0, "round_limit must be 0 without straggler drop (got %v): no peer is left out for it", s.RoundLimit)
	if !s.On() {
		fault(s.FailedRows != "" && s.FailedRows != "wait", "failed_rows must be wait without min_peers (got %s): all wait for a failed peer", s.FailedRows)
		fault(s.Straggler == "drop", "straggler must be wait or adapt without min_peers (got drop): the run does not continue without a peer")
	}
	return errors.Join(errs...)
}
