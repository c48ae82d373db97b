package retexo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-gnn/heddle/train"
)

// Survival says how a run goes on when a peer is lost. The zero value: all wait for it, and go on from a checkpoint.
type Survival struct {
	// MinPeers is the least number of members with which the run goes on: more than half of the peers, and at least 2;
	// 0: all of them. Two groups that cannot reach each other could otherwise train a model each.
	MinPeers int `json:"min_peers,omitempty"`

	// LostRows is what stands for the rows of a lost peer when rows are exchanged: wait (nothing; it is waited for),
	// previous (those of the exchange before, where they are as wide, or else as drop) or drop (the edges from its nodes
	// are gone, and the others' weights are those of a graph without them). Empty: wait.
	LostRows string `json:"lost_rows,omitempty"`

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
	fault(s.MinPeers < 0 || s.MinPeers == 1, "min_peers: %d, want 0 (all) or at least 2: one peer alone has nobody to agree with", s.MinPeers)
	fault(peers > 0 && s.MinPeers > peers, "min_peers: %d, of %d peers", s.MinPeers, peers)
	fault(peers > 0 && s.MinPeers > 1 && 2*s.MinPeers <= peers,
		"min_peers: %d of %d peers, want more than half: two groups that cannot reach each other would train a model each", s.MinPeers, peers)
	fault(!slices.Contains([]string{"", "wait", "previous", "drop"}, s.LostRows), "lost_rows: %q, want wait, previous or drop", s.LostRows)
	fault(!slices.Contains([]string{"", "wait", "drop", "adapt"}, s.Straggler), "straggler: %q, want wait, drop or adapt", s.Straggler)
	fault(s.Straggler == "drop" && s.RoundLimit < leastRoundLimit, "round_limit: %v, want at least %v for straggler drop", s.RoundLimit, leastRoundLimit)
	fault(s.Straggler != "drop" && s.RoundLimit != 0, "round_limit: %v, but no slow peer is lost for it: want straggler drop", s.RoundLimit)
	if !s.On() {
		fault(s.LostRows != "" && s.LostRows != "wait", "lost_rows: %s, but every lost peer is waited for: want min_peers", s.LostRows)
		fault(s.Straggler == "drop", "straggler: drop, but the run does not go on without a peer: want min_peers")
	}
	return errors.Join(errs...)
}

// Greetings of a run that goes on without lost peers come from members alone; the entries of others are empty.

// source finds the peer whose state all go on from: of the newest generation, in it furthest, and of states that
// differ all the same the one that most have. Without any state training begins.
func (m *Machine) source(all []Greeting) (Ready, error) {
	newest := all[m.members[0]]
	for _, r := range m.members {
		if g := all[r]; g.Generation > newest.Generation || g.Generation == newest.Generation && g.Seq > newest.Seq {
			newest = g
		}
	}
	if newest.Seq == 0 {
		m.at, m.held = train.Position{BestRound: -1}, false
		return do(Work{Kind: CountLabels}), nil
	}
	from, most := -1, 0
	for _, r := range m.members {
		if all[r].Generation != newest.Generation || all[r].Seq != newest.Seq {
			continue
		}
		votes := 0
		for _, q := range m.members {
			if all[q].sameState(all[r]) {
				votes++
			}
		}
		if votes > most {
			from, most = r, votes
		}
	}
	return do(Work{Kind: Fetch, From: from}), nil
}

// sameState reports whether two peers hold the same.
func (g Greeting) sameState(h Greeting) bool {
	return g.Generation == h.Generation && g.Seq == h.Seq && g.State == h.State
}

// fetched goes on from the state that all hold now.
func (m *Machine) fetched(at *train.Position) (Ready, error) {
	if at.Stage < 0 || at.Stage > m.config.Stages() || at.Round < 0 || at.Round > m.config.Rounds {
		return Ready{}, fmt.Errorf("retexo: a state of stage %d, round %d, of %d stages of %d rounds", at.Stage, at.Round, m.config.Stages(), m.config.Rounds)
	}
	m.at, m.held, m.stale = *at, true, at.BestRound >= 0
	if at.Stage == m.config.Stages() {
		return do(Work{Kind: Finish}), nil
	}
	return do(Work{Kind: Hold, Stage: at.Stage}), nil
}

// What a peer has of the rows of a stage.
const (
	noRows  = 0 // nothing
	ownRows = 1 // the stage's input of its own nodes
	allRows = 2 // that, and what was to be exchanged
)

// placed brings the rows of the stage at hand into place, of which every peer has have at least.
func (m *Machine) placed(have int) (Ready, error) {
	switch have {
	case allRows:
		return m.resume()
	case ownRows:
		if m.config.Inductive && m.at.Stage == 1 { // nobody may have got so far, or not with these members
			return do(Work{Kind: Prepare, Stage: m.at.Stage}), nil
		}
		return m.enter(m.at.Stage, 0), nil
	}
	m.rebuild = m.at.Stage
	return do(Work{Kind: Carry}), nil
}

// carried goes on with a rebuild when the rows of the stage after w's are computed.
func (m *Machine) carried(stage int) Ready {
	if stage == 0 && m.config.Inductive {
		return do(Work{Kind: Prepare, Stage: m.rebuild})
	}
	return m.enter(stage+1, 0)
}

// again begins a new generation where the run stands.
func (m *Machine) again() {
	m.next, m.waiting = do(Work{Kind: Hello}), false
	m.rebuild, m.synced, m.newest, m.regroup = 0, 0, 0, false
	if m.pace != nil {
		m.pace = newPace(m.size) // members may have seen other rounds; all begin alike
	}
}
