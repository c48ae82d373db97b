package retexo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/pace"
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

// fetched goes on from the state that all hold now.
func (m *machine) fetched(at *train.Position) ready {
	m.at, m.held, m.stale = *at, true, at.BestRound >= 0
	if at.Stage == m.config.Stages() {
		return do(work{Kind: doFinish})
	}
	return do(work{Kind: doHold, Stage: at.Stage})
}

// What a peer has of the rows of a stage.
const (
	noRows  = 0 // nothing
	ownRows = 1 // the stage's input of its own nodes
	allRows = 2 // that, and what was to be exchanged
)

// placed brings the rows of the stage at hand into place, of which every peer has have at least.
func (m *machine) placed(have int) ready {
	switch have {
	case allRows:
		return m.resume()
	case ownRows:
		if m.config.Inductive && m.at.Stage == 1 { // nobody may have got so far, or not with these members
			return do(work{Kind: doPrepare, Stage: m.at.Stage})
		}
		return m.enter(m.at.Stage, 0)
	}
	m.rebuild = m.at.Stage
	return do(work{Kind: doCarry})
}

// carried goes on with a rebuild when the rows of the stage after w's are computed.
func (m *machine) carried(stage int) ready {
	if stage == 0 && m.config.Inductive {
		return do(work{Kind: doPrepare, Stage: m.rebuild})
	}
	return m.enter(stage+1, 0)
}

// again begins a new generation where the run stands.
func (m *machine) again() {
	m.next, m.waiting = do(work{Kind: doHello}), false
	m.rebuild, m.synced, m.regroup, m.warm = 0, 0, false, false
	if m.pace != nil {
		m.pace = pace.New(m.who.Size) // members may have seen other rounds; all begin alike
	}
}
