// Package session is one peer's part in a run over as many connections to the others as it takes: it meets them, waits for
// failed ones, and ends the run so that no two peers have different models.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// Trainer is one peer's training, which a Member runs.
type Trainer interface {
	Resume() (done bool, err error) // takes up a final model from checkpoints
	Run(ctx context.Context, g *comm.Group, r comm.Reducer) error
	Done() bool // the model is final: unless it is a refusal, what Run returned concerns the other peers only
}

// Connection is that to the other members until one of them fails.
type Connection struct {
	Transport comm.Transport
	Wire      func() int64 // bytes sent as the network carried them
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

	Progress time.Duration // without any frame ends a session; 0: never
	Wait     time.Duration // for the others at first
	Rejoin   time.Duration // for failed peers; 0: a failure ends the run
	More     bool          // another run follows: there the others are, when all have this one's model

	Checkpoints *checkpoint.Store // of the trainers; nil: there are none, and a failure ends the run

	New   func(*Member) (Trainer, error)                 // trainers tell Note their events
	Meet  func(ctx context.Context) (*Connection, error) // all members
	Fatal func(error) bool                               // no further session helps; may be nil
	Final func(Trainer, Usage) error                     // the model is final, and others may still need this peer; may be nil

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
	lost    error     // what ended the first session since then (nil = nothing)
}

// leaveTime is how long a peer that needs nothing more looks for others, which may wait for it.
const leaveTime = 3 * time.Second

// Run trains until the model is final and all members have it. Where a peer fails, and there are checkpoints, this one
// meets the others in another session; without one round in all the time that a failed peer is waited for, it gives up,
// or ends with the model that it has. What one member refuses ends the run of all.
func (m *Member) Run(ctx context.Context) (Trainer, Usage, error) {
	m.moved = time.Now()
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
	if m.done { // others may wait for this peer, or are still without a model
		b, err := m.Checkpoints.Note(writtenNote)
		switch wait = m.Rejoin; {
		case err != nil:
			return nil, m.usage, err
		case m.More && string(b) == writtenByAll:
			return m.trainer, m.usage, m.final()
		case len(b) > 0:
			wait = leaveTime
		}
	}
	for {
		met, err := m.meet(ctx, wait)
		if err != nil && (met || !m.done) {
			if wait, err = m.patience(ctx, err); err == nil {
				continue
			}
		}
		if !m.done {
			return nil, m.usage, err
		}
		if fault := m.final(); !errors.Is(err, comm.ErrRefused) { // the others may have left
			return m.trainer, m.usage, fault
		}
		return nil, m.usage, err
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

// recoverable reports whether another session may follow one that ended with err.
func (m *Member) recoverable(err error) bool {
	if m.Fatal != nil && m.Fatal(err) || errors.Is(err, comm.ErrRefused) { // it would come again
		return false
	}
	var failed *comm.PeerError
	return m.Checkpoints != nil && errors.As(err, &failed)
}

// patience returns how long the next session is waited for after err, or why there is none: the first cause.
func (m *Member) patience(ctx context.Context, err error) (time.Duration, error) {
	if ctx.Err() != nil || m.Rejoin == 0 || m.lost == nil && !m.recoverable(err) {
		return 0, m.naming(err)
	}
	if !m.recoverable(err) {
		if errors.Is(err, comm.ErrRefused) || !errors.Is(err, context.DeadlineExceeded) {
			return 0, m.naming(err)
		}
		m.note(train.Warning, "%v", err)
		return 0, fmt.Errorf("%w, and it did not come back within %v", m.lost, m.Rejoin)
	}
	if m.lost == nil {
		m.lost = m.naming(err)
	}
	wait := m.Rejoin - time.Since(m.moved)
	if wait <= 0 {
		return 0, fmt.Errorf("no round was done for %v: %w", m.Rejoin, m.lost)
	}
	m.note(train.Warning, "a peer failed; waiting for it, for at most %s: %v", wait.Round(time.Second), m.naming(err))
	failed := -1 // named now: Meet names it only after a while
	if at, ok := errors.AsType[*comm.PeerError](err); ok {
		failed = at.Rank
	}
	text := "waiting for a peer that failed"
	if failed >= 0 && failed < len(m.Names) {
		text = fmt.Sprintf("waiting for %s, which failed", m.Names[failed])
	}
	m.Event(train.Event{Kind: train.Connection, Peer: failed, Text: text})
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
		at.Name = m.Names[at.Rank]
		if by := comm.FoundBy(err); by >= 0 && by != at.Rank && at.Name != "" {
			m.note(train.Warning, "%s found what ends the run", m.Names[by])
		}
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
	s, err := m.Meet(meeting)
	if err != nil {
		return false, err
	}
	m.note(train.Trace, "session begun")
	t := m.trainer
	if m.session != nil || m.done { // every session begins from checkpoints, and a final model stays
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
	return true, g.Refuse(ctx, m.train(ctx, g, t))
}

// train trains in a session until the model is final, and the others have it.
func (m *Member) train(ctx context.Context, g *comm.Group, t Trainer) (err error) {
	r := comm.Reducer(g)
	if m.Reducer != nil {
		if r, err = m.Reducer(ctx, g); err != nil {
			return err
		}
	}
	err = t.Run(ctx, g, r)
	if t.Done() || !m.done {
		m.trainer, m.done = t, t.Done()
	}
	if err != nil || m.Final == nil {
		return err
	}
	m.keepUsage()
	if err := errors.Join(m.final(), m.keepWritten("here")); err != nil {
		return err
	}
	if err := g.Barrier(ctx); err != nil { // each has told that its model is final
		return err
	}
	return m.keepWritten(writtenByAll)
}

// keepWritten keeps where the model is written and measured.
func (m *Member) keepWritten(where string) error {
	if m.Checkpoints == nil {
		return nil
	}
	return m.Checkpoints.KeepNote(writtenNote, []byte(where))
}

// Note is told every event of the trainers, and passes it on.
func (m *Member) Note(e train.Event) {
	switch e.Kind {
	case train.RoundEnd:
		m.moved, m.lost = time.Now(), nil
	case train.Saved:
		m.keepUsage()
	}
	m.Event(e)
}

// Names of notes next to checkpoints, about the usage of a run, and where the model is written and measured.
const (
	usageNote    = "usage"
	writtenNote  = "written"
	writtenByAll = "by all" // text of the second
)

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
