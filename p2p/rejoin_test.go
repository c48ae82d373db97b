package p2p

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// takePart does what a trainer does first, until it succeeds: it joins, greets all members and sums
// through rank 0. paused is called between sending the greetings and reading any.
func takePart(ctx context.Context, h *Host, roster identity.Roster, paused func()) error {
	for {
		s, err := h.Join(ctx, roster, Hello{})
		if err != nil {
			return err
		}
		err = greetAndSum(ctx, s, paused)
		s.Close()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func greetAndSum(ctx context.Context, s *Mesh, paused func()) error {
	var others []int
	for q := range s.Size() {
		if q != s.Rank() {
			others = append(others, q)
		}
	}
	errs := make([]error, s.Size())
	receive := func(from ...int) error {
		var all sync.WaitGroup
		for _, q := range from {
			all.Go(func() { _, errs[q] = s.Recv(ctx, q) })
		}
		all.Wait()
		return errors.Join(errs...)
	}
	send := func(to ...int) error {
		for _, q := range to {
			errs[q] = s.Send(ctx, q, nil, []byte("thread"))
		}
		return errors.Join(errs...)
	}
	if err := send(others...); err != nil {
		return err
	}
	paused()
	if err := receive(others...); err != nil {
		return err
	}
	if s.Rank() != 0 {
		return errors.Join(send(0), receive(0))
	}
	if err := receive(others...); err != nil {
		return err
	}
	return send(others...)
}

// Member 0 ends and comes back while member 2 has still to meet it, and member 1, which had met
// both, notices last. Without agreement on who met whom, 0 waits for 1's greeting, 1 for a stream
// to 2 and 2 for 0's sum.
func TestRestartWhileMembersMeet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		second, err := Listen(Config(hs[0].cfg)) // port 0: another port
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		knowing := func(of int, addrs []string) identity.Roster {
			r := identity.Roster{Members: slices.Clone(roster.Members)}
			r.Members[of].Addrs = addrs
			return r
		}
		ctx := within(t, patience)
		results := make(chan error, 3)
		resume := make(chan struct{})
		go hs[0].Join(ctx, knowing(2, nil), Hello{}) // 0 and 2 cannot reach each other
		go func() { results <- takePart(ctx, hs[1], roster, func() { <-resume }) }()
		go func() { results <- takePart(ctx, hs[2], knowing(0, second.Addrs()), func() {}) }()
		await(t, ctx, "1 has a stream to 0 and 2", func() bool {
			joining, session := hs[1].state()
			if joining == nil {
				return session != nil
			}
			joining.mu.Lock()
			defer joining.mu.Unlock()
			return joining.assembly.met() == 3
		})
		hs[0].Close()
		go func() { results <- takePart(ctx, second, roster, func() {}) }()
		inSession := func() bool { _, s := hs[2].state(); return s != nil }
		for begun := time.Now(); !inSession() && time.Since(begun) < 3*time.Second; {
			time.Sleep(10 * time.Millisecond)
		}
		close(resume)
		for range 3 {
			if err := <-results; err != nil {
				t.Errorf("a member ended with %v", err)
			}
		}
	})
}

func await(t *testing.T, ctx context.Context, what string, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never came about that %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// The break of a connection that nobody reads from ends a session of all members at once, and names
// the member.
func TestBreakEndsTheSession(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 4)
		got := make(chan error, 2)
		go func() {
			_, err := ss[1].Recv(within(t, patience), 3)
			got <- err
		}()
		go func() {
			var err error
			for frame := make([]byte, 1<<20); err == nil; {
				err = ss[0].Send(within(t, patience), 1, frame, nil) // until the window is full: nobody takes them
			}
			got <- err
		}()
		cutOff(ss[2])
		for range 2 { // before the peer timeout
			err := <-got
			wantPeerError(t, err, 2, "site-2")
			if errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "timeout") {
				t.Errorf("noticed by a deadline: %v", err)
			}
		}
		wantPeerError(t, ss[0].Send(within(t, patience), 1, nil, nil), 2, "site-2")
	})
}

// cutOff breaks all connections of a member, without a goodbye.
func cutOff(s *Mesh) {
	for _, c := range s.host.node.Network().Conns() {
		c.Close()
	}
}

// A member that leaves in good order does not end the session of the others.
func TestGoodbyeEndsOneLink(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 3)
		ss[2].Close()
		await(t, within(t, patience), "the connections to a member that left are closed", func() bool {
			left := ss[2].host.node.ID()
			return len(ss[0].host.node.Network().ConnsToPeer(left)) == 0 &&
				len(ss[1].host.node.Network().ConnsToPeer(left)) == 0
		})
		time.Sleep(50 * time.Millisecond) // for the session to notice
		frames(t, ss[0], ss[1])
		if _, err := ss[0].Recv(within(t, patience), 2); !errors.Is(err, errLeft) {
			t.Errorf("a frame of a member that left: %v", err)
		}
	})
}

// The code of a reset shows who is to blame, if it names another member.
func TestBlame(t *testing.T) {
	s := &Mesh{rank: 0, members: []node.Peer{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	l := &link{rank: 1, name: "b"}
	for code, want := range map[network.StreamErrorCode]int{0: 1, lostCode: 1, lostCode + 1: 1, lostCode + 2: 2,
		lostCode + 3: 1, lostCode + 1<<20: 1} {
		got := s.blame(l, "recv", &network.StreamError{ErrorCode: code, Remote: true})
		if got.Rank != want || got.Name != s.members[want].Name {
			t.Errorf("code %#x: %v, must blame peer %d", code, got, want)
		}
	}
	if got := s.blame(l, "recv", &network.StreamError{ErrorCode: lostCode + 2}); got.Rank != 1 {
		t.Errorf("a code of this side: %v", got)
	}
}

// What a member leaves behind when it says goodbye is bounded.
func TestRestIsBounded(t *testing.T) {
	l := newLink(1, "site-1", &bytesStream{in: io.LimitReader(zeros{}, maxRest+1)}, new(comm.SpareFrames))
	if err := l.drain(); err == nil || !strings.Contains(err.Error(), "at most 33554432 bytes") {
		t.Errorf("a goodbye with too much behind it: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
