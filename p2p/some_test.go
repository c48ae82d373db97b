package p2p

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// Two of three members begin without the third, which requests while their session lasts, and is in
// when all join again.
func TestJoinSome(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		ctx := within(t, patience)
		some := func(hs []*Host, wait time.Duration) ([]*Session, []error) {
			ss, errs := make([]*Session, len(hs)), make([]error, len(hs))
			var all sync.WaitGroup
			for i, h := range hs {
				all.Go(func() { ss[i], errs[i] = h.JoinSome(ctx, roster, Hello{}, 2, wait) })
			}
			all.Wait()
			return ss, errs
		}
		ss, errs := some(hs[1:], 200*time.Millisecond)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, s := range ss {
			if here := s.Here(); !slices.Equal(here, []bool{false, true, true}) {
				t.Errorf("rank %d: here are %v", i+1, here)
			}
			var lost *comm.PeerError
			if err := s.Send(ctx, 0, nil, []byte("thread")); !errors.As(err, &lost) || lost.Rank != 0 || lost.Name != "site-0" {
				t.Errorf("rank %d: a frame to who is not there: %v", i+1, err)
			}
			if s.RejoinRequested(0) || s.RejoinRequested(1) || s.RejoinRequested(2) {
				t.Errorf("rank %d: a member requested to rejoin", i+1)
			}
		}
		frames(t, ss[0], ss[1])

		late := make(chan error, 1)
		joined := make(chan *Session, 1)
		go func() {
			s, err := hs[0].JoinSome(ctx, roster, Hello{}, 2, patience)
			late <- err
			joined <- s
		}()
		for !ss[0].RejoinRequested(0) && !ss[1].RejoinRequested(0) {
			select {
			case <-ctx.Done():
				t.Fatal("nobody got the request to rejoin")
			case <-time.After(10 * time.Millisecond):
			}
		}
		var closing sync.WaitGroup
		for _, s := range ss {
			closing.Go(func() { s.Close() })
		}
		closing.Wait()
		ss, errs = some(hs[1:], patience)
		if err := errors.Join(append(errs, <-late)...); err != nil {
			t.Fatal(err)
		}
		first := <-joined
		if got := ss[0].Here(); !slices.Equal(got, []bool{true, true, true}) {
			t.Errorf("joined again, here are %v", got)
		}
		frames(t, first, ss[0])
	})
}

// Fewer than least do not begin, and the error names who was missing.
func TestJoinSomeIsEnough(t *testing.T) {
	t.Parallel()
	hs, roster := hosts(t, "quic", 3)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := hs[0].JoinSome(ctx, roster, Hello{}, 2, 0)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("alone: %v, must be the deadline's", err)
	}
}
