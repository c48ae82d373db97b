package tune

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train/session"
)

// Step is one of the things that the members of a contest do together, one after the other, each in sessions of its own: a
// trainer's run, and a sum. A session begins with a comparison of where the members are: one that was restarted may be a
// step behind, and the others come back to that one.
type Step struct {
	session.Trainer

	Index  int    // from 0
	Failed uint64 // steps that failed at this member, a bit each
	// Values returns what this member adds to the sum when the trainer is done; it has sent so many bytes in this session
	// for the comparison.
	Values func(compared int64) []int64
	Known  []int64 // the sum, where this member has it from an earlier session; nil: it does not

	sum  []int64
	done bool
}

// MaxSteps bounds Step.Index.
const MaxSteps = 64

// Why a step has no sum, although no member has failed.
var (
	// ErrAgain says that the members are to meet again for the same step.
	ErrAgain = errors.New("the members are at different steps")
	// ErrElsewhere says that the step failed at another member, and is over.
	ErrElsewhere = errors.New("it failed at another site")
)

// BehindError says that a member is at an earlier step, which all have to do first.
type BehindError struct{ Index int }

func (e *BehindError) Error() string { return fmt.Sprintf("a member is at step %d", e.Index) }

// FailedError says that the trainer failed at this member, and not for another one.
type FailedError struct{ Err error }

func (e *FailedError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *FailedError) Unwrap() error { return e.Err }

// Resume implements session.Trainer. Without its sum a step is not done.
func (s *Step) Resume() (bool, error) {
	_, err := s.Trainer.Resume()
	return false, err
}

// Done implements session.Trainer.
func (s *Step) Done() bool { return s.done }

// Sum returns the sum, once the step is done.
func (s *Step) Sum() []int64 { return s.sum }

// Run implements session.Trainer.
func (s *Step) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	before := g.Bytes() // for keys of secure sums
	all, err := s.compare(ctx, r)
	if err != nil {
		return err
	}
	lowest := slices.MinFunc(all, func(a, b place) int { return a.index - b.index }).index
	failed := slices.ContainsFunc(all, func(p place) bool { return p.failed>>lowest&1 == 1 })
	switch {
	case failed && lowest == s.Index:
		return &FailedError{ErrElsewhere}
	case lowest < s.Index && !failed:
		return &BehindError{lowest}
	case slices.ContainsFunc(all, func(p place) bool { return p.index != s.Index }):
		return ErrAgain
	}
	compared := g.Bytes().Total() - before.Total()
	if err := s.Trainer.Run(ctx, g, r); err != nil {
		if _, peer := errors.AsType[*comm.PeerError](err); peer || ctx.Err() != nil {
			return err
		}
		return &FailedError{err}
	}
	s.sum = s.Values(compared)
	if _, err := r.Reduce(ctx, &comm.Contribution{ID: comm.ReduceID{Stage: s.Index, Kind: "sum of a step"}, Counts: s.sum}); err != nil {
		return err
	}
	for _, p := range all { // what was done again was paid for again, but is not to be decided again
		if p.known != nil {
			s.sum = p.known
		}
	}
	s.done = true
	return nil
}

// place is where a member is.
type place struct {
	index  int
	failed uint64
	known  []int64
}

// compare tells the other members where this one is, and returns where all are.
func (s *Step) compare(ctx context.Context, r comm.Reducer) (all []place, err error) {
	c := &comm.Contribution{ID: comm.ReduceID{Stage: s.Index, Kind: "step"}, Meta: place{s.Index, s.Failed, s.Known}.encode()}
	said, err := r.Reduce(ctx, c)
	if err != nil {
		return nil, err
	}
	for q, b := range said.Meta {
		p, err := parsePlace(b)
		if err != nil {
			return nil, &comm.PeerError{Rank: q, Op: c.ID.String(), Err: err}
		}
		all = append(all, p)
	}
	return all, nil
}

// encode appends u8 index · u64 failed · i64 of each known value.
func (p place) encode() []byte {
	b := binary.LittleEndian.AppendUint64([]byte{byte(p.index)}, p.failed)
	for _, v := range p.known {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func parsePlace(b []byte) (p place, err error) {
	if len(b) < 9 || len(b)%8 != 1 || b[0] >= MaxSteps {
		return p, fmt.Errorf("a step must have 9 bytes and 8 for each value, the first of them below %d (got % x)",
			MaxSteps, b[:min(len(b), 24)])
	}
	p.index, p.failed = int(b[0]), binary.LittleEndian.Uint64(b[1:])
	for at := 9; at < len(b); at += 8 {
		p.known = append(p.known, int64(binary.LittleEndian.Uint64(b[at:])))
	}
	return p, nil
}
