// Package session is one peer's part in a run over as many connections to the others as it takes: it meets them, waits for
// failed ones, lets them rejoin, and ends the run so that no two peers have different models.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/privacy/secagg"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer is one peer's training, which a Member runs.
type Trainer interface {
	Resume() (done bool, err error) // takes up a final model from checkpoints
	Generation() (uint64, error)    // the highest that this peer had a part in
	Run(ctx context.Context, g *comm.Group, r comm.Reducer) error
	Done() bool // the model is final: what Run returned concerns the other peers only
}

// Why a Trainer's Run ends although neither the model is done nor the run has failed.
var (
	// ErrRejoin ends a generation in good order because a failed peer asks to rejoin; the next one has it in.
	ErrRejoin = errors.New("a failed peer is back")
	// ErrRowsNeeded ends it before an exchange that the plan does not let go on without the rows of a failed peer. The
	// error is a *comm.PeerError as well.
	ErrRowsNeeded = errors.New("its rows are needed, and the plan says to wait for them (failed_rows)")
	// ErrSlow ends a round that a peer was too late for. The error is a *comm.PeerError as well, but at a peer that was
	// held up by its own frames.
	ErrSlow = errors.New("slower than the plan's round_limit")
)

// Connection is that to the other members until one of them fails.
type Connection struct {
	Transport comm.Transport
	Here      []bool              // by rank: who is there
	Asks      func(rank int) bool // whether a member that is not there asks to rejoin
	Wire      func() int64        // bytes sent as the network carried them
}

// Usage is what one peer used in all sessions of a run, up to the last checkpoint where its process was killed.
type Usage struct {
	Seconds  float64       // in sessions
	Waited   time.Duration // of it, in operations with the others
	Trips    int64         // messages that followed one another (comm.Group.Waits)
	Messages int64         // sent, each to one other peer
	Sent     comm.Counts
	Wire     int64 // bytes sent as the network carried them
}

// Member is one peer's part in a run, over as many sessions as it takes. The caller provides the connections.
type Member struct {
	Rank  int
	Names []string // of all members, by rank

	MinPeers    int           // with which the run goes on; 0: all
	FailureWait time.Duration // for a failed peer before the others go on
	GracePeriod time.Duration // of finished peers for failed ones
	Progress    time.Duration // without any frame ends a session; 0: never
	Wait        time.Duration // for the others at first
	Rejoin      time.Duration // for failed peers; 0: a failure ends the run

	Checkpoints *checkpoint.Store // of the trainers; nil: there are none, and without MinPeers a failure ends the run

	New   func(*Member) (Trainer, error)                            // trainers tell Note their events
	Meet  func(ctx context.Context, least int) (*Connection, error) // at least so many members
	Fatal func(error) bool                                          // no further session helps; may be nil
	Final func(Trainer, Usage) error                                // the model is final, and others may still need this peer; may be nil

	// Reducer makes what sums over the members of a session; nil: the group does, in the clear.
	Reducer func(ctx context.Context, g *comm.Group) (comm.Reducer, error)

	Event func(train.Event)

	trainer Trainer
	done    bool
	told    bool  // Final has been called
	fault   error // of Final
	session *Connection
	usage   Usage
	count   func()    // brings usage up to now
	moved   time.Time // when the last round was done
	away    []absence // by rank
	whole   []bool    // by rank: who has the model
	least   int       // members that the next session must have
	without []bool    // by rank: whom this peer does not go on with; nil: nobody
}

const (
	helpWait   = 5 * time.Second  // how much longer than a failed peer a finished peer waits for those who may need it
	agreeTime  = 30 * time.Second // how much longer than a failed peer the members wait for one another to agree
	graceTick  = time.Second      // how often finished peers tell each other whether anybody is back
	finishWait = 10 * time.Second // for a failed peer, where all are waited for and this one is finished
)

// Run trains until the model is final. Where a peer fails, and there are checkpoints or the others may go on, this one
// meets the others in another session; without one round in all the time that a failed peer is waited for, it gives up.
func (m *Member) Run(ctx context.Context) (Trainer, Usage, error) {
	m.away, m.whole = make([]absence, len(m.Names)), make([]bool, len(m.Names))
	m.least, m.moved = m.MinPeers, time.Now()
	err := m.readUsage()
	if err != nil {
		return nil, m.usage, err
	}
	if m.trainer, err = m.New(m); err != nil {
		return nil, m.usage, err
	}
	if m.done, err = m.trainer.Resume(); err != nil {
		return nil, m.usage, err
	}
	wait := m.Wait
	if m.done {
		wait = m.helpTime()
	}
	for {
		met, err := m.meet(ctx, wait)
		if m.done && (err == nil || !met || ctx.Err() != nil || m.Rejoin == 0 || !m.recoverable(err)) {
			return m.trainer, m.usage, m.final()
		}
		if m.done { // this peer's model is whole; another may need it, but not for long
			if errors.Is(err, ErrRejoin) {
				m.note(train.Note, "a failed peer is back, and is given the model")
			}
			wait = m.helpTime()
			continue
		}
		if wait, err = m.patience(ctx, err); err != nil {
			return nil, m.usage, err
		}
	}
}

// final tells once that the model is.
func (m *Member) final() error {
	if !m.told && m.Final != nil {
		m.told = true
		m.fault = m.Final(m.trainer, m.usage)
	}
	return m.fault
}

func (m *Member) helpTime() time.Duration {
	if m.MinPeers == 0 {
		return finishWait + helpWait
	}
	return m.FailureWait + helpWait
}

// recoverable reports whether another session may follow one that ended with err.
func (m *Member) recoverable(err error) bool {
	var failed *comm.PeerError
	var few *comm.TooFewError
	switch {
	case m.Fatal != nil && m.Fatal(err), errors.Is(err, comm.ErrRefused): // it would come again
		return false
	case m.MinPeers == 0:
		return m.Checkpoints != nil && errors.As(err, &failed)
	}
	return errors.As(err, &failed) || errors.As(err, &few) || errors.Is(err, comm.ErrLeftOut) || errors.Is(err, ErrSlow) || errors.Is(err, ErrRejoin)
}

// patience returns how long the next session is waited for after err, or why there is none.
func (m *Member) patience(ctx context.Context, err error) (time.Duration, error) {
	if m.session == nil && m.MinPeers > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w. If the others have ended the run, they all hold its model: take model.safetensors from any of them", err)
	}
	if ctx.Err() != nil || m.Rejoin == 0 || !m.recoverable(err) {
		return 0, m.naming(err)
	}
	m.least, m.without = m.MinPeers, nil
	if errors.Is(err, ErrRejoin) {
		m.note(train.Note, "a failed peer is back")
		return m.Rejoin, nil
	}
	wait := m.Rejoin - time.Since(m.moved)
	if wait <= 0 {
		return 0, fmt.Errorf("no round was done for %v: %w", m.Rejoin, err)
	}
	plan := fmt.Sprintf("going on with %d or more after %v", m.least, m.FailureWait)
	var failed *comm.PeerError
	switch {
	case m.MinPeers == 0:
		plan = "waiting for it"
	case errors.Is(err, secagg.ErrNeeded):
		m.least, plan = len(m.Names), "a sum needs it, waiting for it"
	case errors.Is(err, ErrRowsNeeded):
		m.least, plan = len(m.Names), "its rows are needed, waiting for it"
	case errors.Is(err, ErrSlow) && errors.As(err, &failed) && failed.Rank != m.Rank:
		m.without = make([]bool, len(m.Names))
		m.without[failed.Rank] = true
		plan = "going on without it, which is slow"
	}
	m.note(train.Warning, "a peer failed; %s, for at most %s: %v", plan, wait.Round(time.Second), m.naming(err))
	select { // whoever is to blame has a moment to notice, and a fault that comes at once does not spin
	case <-time.After(min(time.Second, wait)):
	case <-ctx.Done():
	}
	return wait, nil
}

// naming adds the name of the member at fault, which trainers know by its rank only.
func (m *Member) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(m.Names) {
		return fmt.Errorf("%s: %w", m.Names[at.Rank], err)
	}
	return err
}

func (m *Member) note(kind train.Kind, format string, args ...any) {
	m.Event(train.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// meet meets the other members and trains until the model is final, and the others have it, or one of them fails. met
// reports whether a session began.
func (m *Member) meet(ctx context.Context, wait time.Duration) (met bool, err error) {
	meeting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	m.note(train.Trace, "meeting the other peers")
	s, err := m.Meet(meeting, m.least)
	if err != nil {
		return false, err
	}
	m.note(train.Trace, "session begun")
	t := m.trainer
	if m.session != nil && m.MinPeers == 0 { // every session begins from checkpoints
		if t, err = m.New(m); err != nil {
			return true, err
		}
	}
	m.session = s
	g := comm.NewGroup(s.Transport, m.Rank, len(m.Names))
	g.LimitSilence(m.Progress)
	begun := time.Now()
	counted := m.usage
	m.count = func() {
		u, took := counted, time.Since(begun)
		trips, waited := g.Waits()
		sent := g.Bytes()
		u.Seconds, u.Trips, u.Waited, u.Wire = u.Seconds+took.Seconds(), u.Trips+trips, u.Waited+waited, u.Wire+s.Wire()
		u.Sent, u.Messages = u.Sent.Plus(sent), u.Messages+g.Messages()
		m.usage = u
	}
	defer func() {
		m.keepUsage()
		g.Close()
	}()
	if m.MinPeers > 0 {
		if err := m.agree(ctx, g, s.Here); err != nil {
			return true, err
		}
	}
	r := comm.Reducer(g)
	if m.Reducer != nil {
		if r, err = m.Reducer(ctx, g); err != nil {
			return true, err
		}
	}
	err = t.Run(ctx, g, r)
	if t.Done() || !m.done {
		m.trainer, m.done = t, t.Done()
	}
	if err != nil || m.Final == nil {
		return true, err
	}
	m.keepUsage()
	if err := m.final(); err != nil {
		return true, err
	}
	return true, m.stay(ctx, g)
}

// agree makes those who can all talk to one another the members of the next generation.
func (m *Member) agree(ctx context.Context, g *comm.Group, here []bool) error {
	last, err := m.trainer.Generation()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.FailureWait+agreeTime)
	defer cancel()
	return g.Agree(ctx, here, m.without, m.least, last)
}

// stay keeps the members together until each has told that its model is final, and then, for the grace period, for failed
// peers: one that comes back is let in, as in a round, and fetches the model. All count the same ticks, so all leave after
// the same.
func (m *Member) stay(ctx context.Context, g *comm.Group) error {
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	var failed []int
	var names []string
	for q, name := range m.Names {
		if m.whole[q] = m.whole[q] || g.Has(q); !m.whole[q] {
			failed, names = append(failed, q), append(names, name)
		}
	}
	if len(failed) == 0 || m.GracePeriod == 0 {
		return nil
	}
	m.note(train.Note, "the model is done and written; staying for failed peers %s, for at most %s", strings.Join(names, ", "), m.GracePeriod)
	for tick := range int(m.GracePeriod / graceTick) {
		select {
		case <-time.After(graceTick):
		case <-ctx.Done():
			return ctx.Err()
		}
		asks := []byte{0}
		for _, q := range failed {
			if m.session.Asks(q) && m.away[q].over(m.FailureWait) {
				asks[0] = 1
			}
		}
		r, err := g.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Generation: g.Generation(), Round: tick, Kind: "rejoin requests"}, Meta: asks})
		if err != nil {
			return err
		}
		for _, b := range r.Meta {
			if len(b) > 0 && b[0] == 1 {
				return ErrRejoin
			}
		}
	}
	return nil
}

// Note is told every event of the trainers, and passes it on.
func (m *Member) Note(e train.Event) {
	switch e.Kind {
	case train.RoundEnd:
		m.moved = time.Now()
	case train.Saved:
		m.keepUsage()
	case train.Generation:
		in := make([]bool, len(m.Names))
		for _, q := range e.Members {
			in[q] = true
		}
		for q := range m.away {
			if !in[q] {
				m.away[q].times++
				m.away[q].since = time.Now()
			}
		}
	}
	m.Event(e)
}

// usageNote is the name under which the usage of a run is kept beside its checkpoints.
const usageNote = "usage"

// readUsage begins with what this peer used before its process was restarted.
func (m *Member) readUsage() error {
	if m.Checkpoints == nil {
		return nil
	}
	b, err := m.Checkpoints.Note(usageNote)
	if b == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(b, &m.usage); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(m.Checkpoints.Dir, usageNote), err)
	}
	return nil
}

// keepUsage brings usage up to now, and keeps it beside the checkpoints. What other peers need after Final was called is
// not counted.
func (m *Member) keepUsage() {
	if m.told {
		return
	}
	m.count()
	if m.Checkpoints == nil {
		return
	}
	b, err := json.Marshal(m.usage)
	if err == nil {
		err = m.Checkpoints.KeepNote(usageNote, b)
	}
	if err != nil {
		m.note(train.Warning, "after a restart, bytes and seconds up to now will be missing: %v", err)
	}
}

// Asked reports whether a failed peer asks to rejoin and is to be let in.
func (m *Member) Asked() bool {
	for q := range m.away {
		if m.session.Asks(q) && m.away[q].over(m.FailureWait) {
			return true
		}
	}
	return false
}

// absence is how often a generation began without a peer, and when the last one did.
type absence struct {
	times int
	since time.Time
}

// over reports whether a peer that asks to rejoin is to be let in: at once when it failed for the first time, and later
// each time, so that one that fails again and again does not hold up the others.
func (a absence) over(unit time.Duration) bool {
	return time.Since(a.since) >= unit*time.Duration(1<<min(max(a.times-1, 0), 4)-1)
}
