package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
	"github.com/heddle-gnn/heddle/train/session"
)

// Member is one site in a contest of several. First the sites sum what limits and choice depend on, then they try one
// candidate after the other: each of these is a step.
type Member struct {
	State   string   // see Trials
	Extent  Extent   // of this site
	Contest *Contest // once the extents are summed
	OnEvent func(train.Event)

	// Attend takes part in sessions with the others until what new makes is done; dir is that of their checkpoints, empty:
	// there are none.
	Attend func(ctx context.Context, dir string, new func(*session.Member) (session.Trainer, error)) (session.Trainer, session.Usage, error)
	// New makes the trainer of candidate i, and what returns the bytes that this site has sent for it.
	New func(i int, m *session.Member) (t session.Trainer, sent func() int64, err error)

	failed  uint64  // steps that failed here, a bit each
	extents []int64 // the sum
}

// extentNote is the name under which a site keeps what the sites have summed, in a directory of that name.
const extentNote = "extent"

// Extents returns the sum of the extents of all sites.
func (m *Member) Extents(ctx context.Context) (Extent, error) {
	var store *checkpoint.Store
	if m.State != "" {
		store = &checkpoint.Store{Dir: StateOf(m.State, extentNote)}
		b, err := store.Note(extentNote)
		if err == nil && b != nil {
			if err = json.Unmarshal(b, &m.extents); err == nil && len(m.extents) != len(m.Extent.Numbers()) {
				err = ErrForeign
			}
		}
		if err != nil {
			return Extent{}, fmt.Errorf("%s: %w: remove %s to start again", filepath.Join(store.Dir, extentNote), err, m.State)
		}
		if b != nil {
			return m.Extent.Of(m.extents), nil
		}
	}
	_, _, sum, err := m.step(ctx, 0)
	if err != nil {
		return Extent{}, err
	}
	m.extents = sum
	if store != nil {
		b, err := json.Marshal(sum)
		if err == nil {
			err = store.KeepNote(extentNote, b)
		}
		if err != nil {
			return Extent{}, err
		}
	}
	return m.Extent.Of(sum), nil
}

// Train trains by candidate i together with the other sites, and returns the trainer, what it used here and the bytes that
// all sites have sent for it.
func (m *Member) Train(ctx context.Context, i int) (session.Trainer, session.Usage, int64, error) {
	t, usage, sum, err := m.step(ctx, i+1)
	if err != nil {
		return nil, usage, 0, err
	}
	return t, usage, sum[0], nil
}

// Lost reports whether err ends the contest: the trainer of a candidate did not fail by itself.
func Lost(err error) bool {
	_, failed := errors.AsType[*FailedError](err)
	return !failed
}

// step takes part in a step until all sites have done it, and in steps before it where another site needs them.
func (m *Member) step(ctx context.Context, k int) (session.Trainer, session.Usage, []int64, error) {
	for {
		t, usage, sum, err := m.once(ctx, k)
		if behind, ok := errors.AsType[*BehindError](err); ok {
			if _, _, _, err := m.step(ctx, behind.Index); err != nil && Lost(err) {
				return nil, usage, nil, err
			}
		} else if !errors.Is(err, ErrAgain) {
			if err != nil && !Lost(err) {
				m.failed |= 1 << k
			}
			return t, usage, sum, err
		}
		m.OnEvent(train.Event{Kind: train.Trace, Text: fmt.Sprintf("step %d once more: %v", k, err)})
	}
}

// once takes part in sessions of one step.
func (m *Member) once(ctx context.Context, k int) (session.Trainer, session.Usage, []int64, error) {
	dir := ""
	if k > 0 {
		dir = StateOf(m.State, m.Contest.candidates[k-1].Name)
	} else if m.State != "" {
		dir = StateOf(m.State, extentNote)
	}
	t, usage, err := m.Attend(ctx, dir, func(one *session.Member) (session.Trainer, error) {
		s := &Step{Index: k, Failed: m.failed}
		if k == 0 {
			s.Trainer, s.Known, s.Values = nothing{}, m.extents, func(int64) []int64 { return m.Extent.Numbers() }
			return s, nil
		}
		inner, sent, err := m.New(k-1, one)
		if err != nil {
			return nil, &FailedError{err}
		}
		if v := m.Contest.Verdicts[k-1]; v.Sent > 0 { // this site has done the step, and helps another
			s.Known = []int64{v.Sent}
		}
		s.Trainer, s.Values = inner, func(compared int64) []int64 { return []int64{sent() - compared} }
		return s, nil
	})
	if err != nil {
		return nil, usage, nil, err
	}
	s := t.(*Step)
	return s.Trainer, usage, s.Sum(), nil
}

// nothing is the trainer of a step that only sums.
type nothing struct{}

func (nothing) Resume() (bool, error)                                { return false, nil }
func (nothing) Run(context.Context, *comm.Group, comm.Reducer) error { return nil }
func (nothing) Done() bool                                           { return true }
