// Package session is one member's place in a run, over as many connections to the others as it takes: it meets them,
// waits for failed ones, and ends the run so that no two peers have different models. It also enforces the site's
// policy and writes its audit log.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/train"
)

// Usage is what one peer used in all sessions of a run, up to the last checkpoint where its process was killed.
type Usage struct {
	Seconds  float64       // in sessions
	Waited   time.Duration // of it, in operations with the others
	Trips    int64         // messages that followed one another (comm.Group.Waits)
	Messages int64         // sent, each to one other peer
	Sent     comm.Counts
	Wire     int64 // bytes sent, as the network carried them
}

// Training is what a Session runs: a train.Method, and what comes before and after it.
type Training func(context.Context, *Session) (*train.Trained, error)

// Session is one member's place in a run: who is present, what carries rows and sums, what is kept, who listens, what
// was used, and how to come back. Site.Attend, Site.Phone and Local make one. Run trains in it; Once does something
// else.
type Session struct {
	Rank  int
	Names []string // of all members, by rank

	// What the methods of training are given. Group has those who are present: from the time when all have met until
	// one of them fails.
	train.Place

	Progress time.Duration // without any frame ends a connection (0 = never)
	Wait     time.Duration // for the others at first
	Rejoin   time.Duration // for failed peers (0 = a failure ends the run)
	More     bool          // another run follows, in which this peer meets the others when all have this one's model

	Final func(*train.Trained, Usage) error // the model is final, and others may still need this peer; may be nil

	Meet func(context.Context) (comm.Transport, error) // all members
	Link string                                        // simulated slower network, as netsim takes it (empty = none)
	Seed uint64                                        // of Link

	// Reducer makes what sums over the members who are present (nil = the group does, in the clear).
	Reducer func(ctx context.Context, g *comm.Group) (comm.Reducer, error)

	Request Request // of the run (nil = this member may send anything)

	Event func(train.Event)

	*keeper        // (nil = the site has no rules and writes nothing down)
	phone   *phone // (nil = the member is a site)

	trained *train.Trained // (nil = the model is not final)
	told    bool           // Final has been called
	fault   error          // of Final
	wire    func() int64
	usage   Usage
	count   func()        // brings usage up to now
	moved   time.Time     // when the last round was done
	lost    error         // what ended the first connection since then (nil = nothing)
	pause   time.Duration // before the last one
}

const (
	leaveTime = 3 * time.Second  // how long a peer that needs nothing more looks for others that may wait for it
	mostPause = 30 * time.Second // how long a phone sleeps at most before it tries to reach the sites again
)

// Run trains until the model is final and all members have it. It calls do before it meets the others and over each
// connection, as train.Method describes. If a peer fails, and there are checkpoints, this one meets the others again.
// If no round is done in all the time that a failed peer is waited for, it gives up, or ends with the model that it
// has. If one member refuses, the run ends for all.
func (s *Session) Run(ctx context.Context, do Training) (*train.Trained, Usage, error) {
	s.moved, s.OnEvent = time.Now(), s.Note
	err := s.readUsage()
	if err != nil {
		return nil, s.usage, err
	}
	if s.trained, err = do(ctx, s); err != nil {
		return nil, s.usage, err
	}
	wait := s.Wait
	if s.trained != nil { // others may wait for this peer, or are still without a model
		b, err := s.Checkpoints.Note(writtenNote)
		switch wait = s.Rejoin; {
		case err != nil:
			return nil, s.usage, err
		case s.More && string(b) == writtenByAll:
			return s.trained, s.usage, s.final()
		case len(b) > 0:
			wait = leaveTime
		}
	}
	for {
		met, err := s.meet(ctx, wait, do)
		if err != nil && (met || s.trained == nil) {
			if wait, err = s.patience(ctx, err); err == nil {
				continue
			}
		}
		if s.trained == nil {
			return nil, s.usage, err
		}
		if fault := s.final(); !errors.Is(err, comm.ErrRefused) { // the others may have left
			return s.trained, s.usage, fault
		}
		return nil, s.usage, err
	}
}

// final announces once that the model is final.
func (s *Session) final() error {
	if !s.told && s.Final != nil {
		s.told = true
		s.fault = s.Final(s.trained, s.usage)
	}
	return s.fault
}

// recoverable reports whether another connection may follow one that ended with err.
func (s *Session) recoverable(err error) bool {
	for _, again := range []error{comm.ErrRefused, p2p.ErrRevoked, leaf.ErrNotAdmitted} { // it would come again
		if errors.Is(err, again) {
			return false
		}
	}
	_, differs := errors.AsType[*p2p.MemberMismatchError](err)
	_, failed := errors.AsType[*comm.PeerError](err)
	return failed && !differs && (s.Checkpoints != nil || s.phone != nil)
}

// patience returns how long the others are waited for after err, or why they are not: the first cause.
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
	at, _ := errors.AsType[*comm.PeerError](err) // named now: Meet names it only after a while
	text := "waiting for a peer that failed"
	if at.Rank >= 0 && at.Rank < len(s.Names) {
		text = fmt.Sprintf("waiting for %s, which failed: %v", s.Names[at.Rank], at.Err)
	}
	// The peer at fault has a moment to notice, and a fault that comes at once does not spin.
	s.pause = min(max(2*s.pause, time.Second), mostPause)
	if s.phone == nil {
		s.pause = time.Second
	} else if s.phone.summed { // sums may be hours apart
		s.pause, s.moved, s.phone.summed = time.Second, time.Now(), false
	}
	wait := s.Rejoin - time.Since(s.moved)
	switch {
	case s.phone != nil && wait < s.pause:
		return 0, s.naming(err)
	case s.phone != nil:
		text = fmt.Sprintf("no site to send to, trying again in %s: %v", s.pause, s.naming(err))
	case wait <= 0:
		return 0, fmt.Errorf("no round was done for %v: %w", s.Rejoin, s.lost)
	default:
		s.note(train.Warning, "a peer failed; waiting for it, for at most %s: %v", wait.Round(time.Second),
			s.naming(err))
	}
	var others []int // who did not fail is met again
	for r := range s.Names {
		if s.phone == nil && r != at.Rank {
			others = append(others, r)
		}
	}
	s.Event(train.Event{Kind: train.Connection, Peer: at.Rank, Members: others, Text: text})
	select {
	case <-time.After(min(s.pause, wait)):
		return wait, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
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

func (s *Session) note(kind train.EventKind, format string, args ...any) {
	s.Event(train.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// connect meets the other members, and makes the group of those who are present.
func (s *Session) connect(ctx context.Context) (err error) {
	var approval comm.Approval
	if s.Request != nil {
		if approval, err = s.Request.Approval(); err != nil {
			return err
		}
	}
	over, err := s.Meet(ctx)
	if err != nil {
		return err
	}
	s.wire = func() int64 { return 0 }
	if carried, ok := over.(interface{ WireBytes() (sent, received int64) }); ok {
		s.wire = func() int64 { sent, _ := carried.WireBytes(); return sent }
	}
	if s.keeper != nil {
		over = s.met(over)
	}
	size := len(s.Names)
	if s.phone != nil {
		size = 1
	}
	link, err := netsim.ParseLink(s.Link, len(s.Names))
	if err != nil {
		return err
	}
	if link != nil {
		over = netsim.Over(over, s.Rank, size, *link, s.Seed)
	}
	s.Group = comm.NewGroup(over, s.Rank, size)
	s.Group.LimitSilence(s.Progress)
	s.Group.Under(approval)
	return nil
}

// reducer makes Sums.
func (s *Session) reducer(ctx context.Context) (err error) {
	s.Sums = s.Group
	if s.Reducer != nil {
		s.Sums, err = s.Reducer(ctx, s.Group)
	}
	return err
}

// Wire returns the bytes that were sent over the present connection as the network carried them; 0 in memory.
func (s *Session) Wire() int64 { return s.wire() }

// Left records in the audit log the bytes that have left this site since the last record; what names their purpose.
func (s *Session) Left(what string) { s.keeper.left(s.Group.Bytes(), what, 0) }

// Once meets the other members once, and calls do, for something other than training.
func (s *Session) Once(ctx context.Context, do func(context.Context) error) (err error) {
	meeting, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	if err := s.connect(meeting); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Group.Close()) }()
	if err = s.reducer(ctx); err == nil {
		err = do(ctx)
	}
	if errors.Is(err, comm.ErrRefused) { // what is wrong at home may quote this site's tables
		err = s.Group.Refuse(ctx, err)
	}
	return s.naming(err)
}

// meet meets the other members and trains until the model is final, and the others have it, or one of them fails. met
// reports whether all were there.
func (s *Session) meet(ctx context.Context, wait time.Duration, do Training) (met bool, err error) {
	meeting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.note(train.Trace, "meeting the other peers")
	if err := s.connect(meeting); err != nil {
		return false, err
	}
	g := s.Group
	defer g.Close()
	if s.keeper != nil {
		s.countRun()
	}
	s.note(train.Trace, "session begun")
	begun := time.Now()
	counted := s.usage
	s.count = func() {
		u, took := counted, time.Since(begun)
		trips, waited := g.Waits()
		u.Seconds, u.Trips, u.Waited, u.Wire = u.Seconds+took.Seconds(), u.Trips+trips, u.Waited+waited, u.Wire+s.wire()
		u.Sent, u.Messages = u.Sent.Plus(g.Bytes()), u.Messages+g.Messages()
		s.usage = u
	}
	defer s.keepUsage()
	return true, g.Refuse(ctx, s.train(ctx, do))
}

// train trains until the model is final, and the others have it.
func (s *Session) train(ctx context.Context, do Training) error {
	if err := s.reducer(ctx); err != nil {
		return err
	}
	t, err := do(ctx, s)
	if t != nil {
		s.trained = t
	}
	if err != nil || s.Final == nil {
		return err
	}
	s.keepUsage()
	if err := errors.Join(s.final(), s.Checkpoints.KeepNote(writtenNote, []byte("here"))); err != nil {
		return err
	}
	if err := s.Group.Barrier(ctx); err != nil { // each has announced that its model is final
		return err
	}
	return s.Checkpoints.KeepNote(writtenNote, []byte(writtenByAll))
}

// Note receives every event of the trainers, and passes it on.
func (s *Session) Note(e train.Event) {
	if s.phone != nil {
		e.Sent.Reduce = s.phone.sent.Load()
	}
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
	b, err := s.Checkpoints.Note(usageNote)
	if b == nil || err != nil {
		return err
	}
	if err := json.Unmarshal(b, &s.usage); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(s.Checkpoints.Dir, usageNote), err)
	}
	return nil
}

// keepUsage brings usage up to now, and keeps it next to the checkpoints. What other peers need after Final was called
// is not counted.
func (s *Session) keepUsage() {
	if s.told {
		return
	}
	s.count()
	b, err := json.Marshal(s.usage)
	if err == nil {
		err = s.Checkpoints.KeepNote(usageNote, b)
	}
	if err != nil {
		s.note(train.Warning, "after a restart, bytes and seconds up to now will be missing: %v", err)
	}
}
