// Package session is one member's place in a run, over as many connections to the others as it takes: it meets them, waits
// for failed ones, and ends the run so that no two peers have different models. It also enforces the site's policy and
// writes its audit log.
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

// Trainer is one peer's training, which a Session runs.
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

// Session is one member's place in a run, over as many connections as it takes. The caller provides the connections.
type Session struct {
	Rank  int
	Names []string // of all members, by rank

	Progress time.Duration // without any frame ends a session; 0: never
	Wait     time.Duration // for the others at first
	Rejoin   time.Duration // for failed peers; 0: a failure ends the run
	More     bool          // another run follows: there the others are, when all have this one's model

	Checkpoints *checkpoint.Store // of the trainers; nil: there are none, and a failure ends the run

	New   func(*Session) (Trainer, error)                // trainers tell Note their events
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
	at      *Connection
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
func (s *Session) Run(ctx context.Context) (Trainer, Usage, error) {
	s.moved = time.Now()
	err := s.readUsage()
	if err != nil {
		return nil, s.usage, err
	}
	if s.trainer, err = s.New(s); err != nil {
		return nil, s.usage, err
	}
	if s.done, err = s.trainer.Resume(); err != nil {
		return nil, s.usage, err
	}
	wait := s.Wait
	if s.done { // others may wait for this peer, or are still without a model
		b, err := s.Checkpoints.Note(writtenNote)
		switch wait = s.Rejoin; {
		case err != nil:
			return nil, s.usage, err
		case s.More && string(b) == writtenByAll:
			return s.trainer, s.usage, s.final()
		case len(b) > 0:
			wait = leaveTime
		}
	}
	for {
		met, err := s.meet(ctx, wait)
		if err != nil && (met || !s.done) {
			if wait, err = s.patience(ctx, err); err == nil {
				continue
			}
		}
		if !s.done {
			return nil, s.usage, err
		}
		if fault := s.final(); !errors.Is(err, comm.ErrRefused) { // the others may have left
			return s.trainer, s.usage, fault
		}
		return nil, s.usage, err
	}
}

// final tells once that the model is.
func (s *Session) final() error {
	if !s.told && s.Final != nil {
		s.told = true
		s.fault = s.Final(s.trainer, s.usage)
	}
	return s.fault
}

// recoverable reports whether another session may follow one that ended with err.
func (s *Session) recoverable(err error) bool {
	if s.Fatal != nil && s.Fatal(err) || errors.Is(err, comm.ErrRefused) { // it would come again
		return false
	}
	var failed *comm.PeerError
	return s.Checkpoints != nil && errors.As(err, &failed)
}

// patience returns how long the next session is waited for after err, or why there is none: the first cause.
func (s *Session) patience(ctx context.Context, err error) (time.Duration, error) {
	if ctx.Err() != nil || s.Rejoin == 0 || s.lost == nil && !s.recoverable(err) {
		return 0, s.naming(err)
	}
	if !s.recoverable(err) {
		if errors.Is(err, comm.ErrRefused) || !errors.Is(err, context.DeadlineExceeded) {
			return 0, s.naming(err)
		}
		s.note(train.Warning, "%v", err)
		return 0, fmt.Errorf("%w, and it did not come back within %v", s.lost, s.Rejoin)
	}
	if s.lost == nil {
		s.lost = s.naming(err)
	}
	wait := s.Rejoin - time.Since(s.moved)
	if wait <= 0 {
		return 0, fmt.Errorf("no round was done for %v: %w", s.Rejoin, s.lost)
	}
	s.note(train.Warning, "a peer failed; waiting for it, for at most %s: %v", wait.Round(time.Second), s.naming(err))
	failed := -1 // named now: Meet names it only after a while
	if at, ok := errors.AsType[*comm.PeerError](err); ok {
		failed = at.Rank
	}
	text := "waiting for a peer that failed"
	if failed >= 0 && failed < len(s.Names) {
		text = fmt.Sprintf("waiting for %s, which failed", s.Names[failed])
	}
	s.Event(train.Event{Kind: train.Connection, Peer: failed, Text: text})
	select { // whoever is to blame has a moment to notice, and a fault that comes at once does not spin
	case <-time.After(min(time.Second, wait)):
	case <-ctx.Done():
	}
	return wait, nil
}

// naming adds the name of the member at fault, which trainers know by its rank only.
func (s *Session) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(s.Names) {
		at.Name = s.Names[at.Rank]
		if by := comm.FoundBy(err); by >= 0 && by != at.Rank && at.Name != "" {
			s.note(train.Warning, "%s found what ends the run", s.Names[by])
		}
	}
	return err
}

func (s *Session) note(kind train.Kind, format string, args ...any) {
	s.Event(train.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// meet meets the other members and trains until the model is final, and the others have it, or one of them fails. met
// reports whether a session began.
func (s *Session) meet(ctx context.Context, wait time.Duration) (met bool, err error) {
	meeting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.note(train.Trace, "meeting the other peers")
	at, err := s.Meet(meeting)
	if err != nil {
		return false, err
	}
	s.note(train.Trace, "session begun")
	t := s.trainer
	if s.at != nil || s.done { // every session begins from checkpoints, and a final model stays
		if t, err = s.New(s); err != nil {
			return true, err
		}
	}
	s.at = at
	g := comm.NewGroup(at.Transport, s.Rank, len(s.Names))
	g.LimitSilence(s.Progress)
	begun := time.Now()
	counted := s.usage
	s.count = func() {
		u, took := counted, time.Since(begun)
		trips, waited := g.Waits()
		sent := g.Bytes()
		u.Seconds, u.Trips, u.Waited, u.Wire = u.Seconds+took.Seconds(), u.Trips+trips, u.Waited+waited, u.Wire+at.Wire()
		u.Sent, u.Messages = u.Sent.Plus(sent), u.Messages+g.Messages()
		s.usage = u
	}
	defer func() {
		s.keepUsage()
		g.Close()
	}()
	return true, g.Refuse(ctx, s.train(ctx, g, t))
}

// train trains in a session until the model is final, and the others have it.
func (s *Session) train(ctx context.Context, g *comm.Group, t Trainer) (err error) {
	r := comm.Reducer(g)
	if s.Reducer != nil {
		if r, err = s.Reducer(ctx, g); err != nil {
			return err
		}
	}
	err = t.Run(ctx, g, r)
	if t.Done() || !s.done {
		s.trainer, s.done = t, t.Done()
	}
	if err != nil || s.Final == nil {
		return err
	}
	s.keepUsage()
	if err := errors.Join(s.final(), s.keepWritten("here")); err != nil {
		return err
	}
	if err := g.Barrier(ctx); err != nil { // each has told that its model is final
		return err
	}
	return s.keepWritten(writtenByAll)
}

// keepWritten keeps where the model is written and measured.
func (s *Session) keepWritten(where string) error {
	if s.Checkpoints == nil {
		return nil
	}
	return s.Checkpoints.KeepNote(writtenNote, []byte(where))
}

// Note is told every event of the trainers, and passes it on.
func (s *Session) Note(e train.Event) {
	switch e.Kind {
	case train.RoundEnd:
		s.moved, s.lost = time.Now(), nil
	case train.Saved:
		s.keepUsage()
	}
	s.Event(e)
}

// Names of notes next to checkpoints, about the usage of a run, and where the model is written and measured.
const (
	usageNote    = "usage"
	writtenNote  = "written"
	writtenByAll = "by all" // text of the second
)

// readUsage begins with what this peer used before its process was restarted.
func (s *Session) readUsage() error {
	if s.Checkpoints == nil {
		return nil
	}
	b, err := s.Checkpoints.Note(usageNote)
	if b == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(b, &s.usage); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(s.Checkpoints.Dir, usageNote), err)
	}
	return nil
}

// keepUsage brings usage up to now, and keeps it beside the checkpoints. What other peers need after Final was called is
// not counted.
func (s *Session) keepUsage() {
	if s.told {
		return
	}
	s.count()
	if s.Checkpoints == nil {
		return
	}
	b, err := json.Marshal(s.usage)
	if err == nil {
		err = s.Checkpoints.KeepNote(usageNote, b)
	}
	if err != nil {
		s.note(train.Warning, "after a restart, bytes and seconds up to now will be missing: %v", err)
	}
}
