package session

import (
	"context"
	"errors"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// Stoppable is a trainer whose run may end early: then it is done, without a model.
type Stoppable struct {
	Trainer

	// Stop says after each round whether to end the run; it must say the same at all peers. nil: never.
	Stop func(train.Event) bool

	ending, stopped bool
	sent            comm.Counts
}

// Note is told every event of the trainer.
func (s *Stoppable) Note(e train.Event) {
	if e.Kind == train.RoundEnd && s.Stop != nil && !s.ending {
		s.ending, s.sent = s.Stop(e), e.Sent
	}
}

// Stopped reports whether the run ended early, and what this peer sent in it.
func (s *Stoppable) Stopped() (comm.Counts, bool) { return s.sent, s.stopped }

// Run implements Trainer. A trainer that nothing can stop gets the reducer itself: one that sums through the group may do so
// while rows travel.
func (s *Stoppable) Run(ctx context.Context, g *comm.Group, r comm.Reducer) error {
	if s.Stop == nil {
		return s.Trainer.Run(ctx, g, r)
	}
	err := s.Trainer.Run(ctx, g, &lastReducer{r, g, s})
	if errors.Is(err, errStopped) {
		s.stopped, err = true, nil
	}
	return err
}

// Done implements Trainer.
func (s *Stoppable) Done() bool { return s.stopped || s.Trainer.Done() }

// errStopped ends a run that Stop ends.
var errStopped = errors.New("stopped")

// lastReducer ends a run at the first sum after Stop has said so: all peers are at the same one, and wait for one another
// so that none takes it for a failure.
type lastReducer struct {
	comm.Reducer
	group *comm.Group
	of    *Stoppable
}

// Reduce implements comm.Reducer.
func (r *lastReducer) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	if !r.of.ending {
		return r.Reducer.Reduce(ctx, c)
	}
	if err := r.group.Barrier(ctx); err != nil {
		return comm.Reduced{}, err
	}
	r.of.sent.Control += int64(comm.HeaderLen * (r.group.Size() - 1)) // of the barrier
	return comm.Reduced{}, errStopped
}
