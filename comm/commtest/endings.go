package commtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// stuff sends to a member that does not receive until Send fails or count frames are taken, and
// returns Send's error. It closes waits once Send seems to wait. That is a guess by time, which can
// let a bad transport pass on a slow machine but never fails a good one.
func stuff(ctx context.Context, m comm.Transport, to, count, length int) (
	taken *atomic.Int64, waits chan struct{}, result chan error,
) {
	taken, waits, result = new(atomic.Int64), make(chan struct{}), make(chan error, 1)
	go func() {
		frame := make([]byte, length)
		for range count {
			if err := m.Send(ctx, to, nil, frame); err != nil {
				result <- err
				return
			}
			taken.Add(1)
		}
		result <- nil
	}()
	go func() {
		defer close(waits)
		for before := int64(-1); before < int64(count); {
			now := taken.Load()
			if now == before && now > 0 {
				return
			}
			before = now
			time.Sleep(60 * time.Millisecond)
		}
	}()
	return taken, waits, result
}

// A sender that nobody receives from waits before 64 MiB are under way, its context ends the wait,
// and other links go on meanwhile.
func (n network) backPressure(t *testing.T) {
	const count, length = 1024, 64 << 10
	ctx, ts := n.start(t, 3)
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	taken, waits, result := stuff(sending, ts[0], 1, count, length)
	<-waits
	together(t, append(oneWay(ctx, ts, 0, 2, 50, 1000), oneWay(ctx, ts, 1, 0, 50, 1000)...)...)
	cancel()
	err := <-result
	switch {
	case err == nil:
		t.Fatalf("Send took %d frames of %d bytes that nobody received", taken.Load(), length)
	case !errors.Is(err, context.Canceled):
		t.Fatalf("cancelled Send must return context.Canceled (got %v)", err)
	}
}

func (n network) cancelledBefore(t *testing.T) {
	_, ts := n.start(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := ts[0].Send(ctx, 1, nil, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Send with a cancelled context: %v", err)
	}
	if _, err := ts[0].Recv(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Recv with a cancelled context: %v", err)
	}
}

func (n network) cancelledWaiting(t *testing.T) {
	ctx, ts := n.start(t, 2)
	for range 20 { // the cancellation meets Recv at different places
		waiting, cancel := context.WithCancel(ctx)
		together(t, func() error {
			if _, err := ts[0].Recv(waiting, 1); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("cancelled Recv must return context.Canceled (got %v)", err)
			}
			return nil
		}, func() error {
			cancel()
			return nil
		})
		ctx, ts = n.again(t, ctx, ts)
	}
}

// again returns the network if it has survived a cancelled call, else a new one: both are allowed.
func (n network) again(t *testing.T, ctx context.Context, ts []comm.Transport) (context.Context, []comm.Transport) {
	probe, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := ts[0].Recv(probe, 1); errors.Is(err, context.Canceled) {
		return ctx, ts
	}
	return n.start(t, len(ts))
}

// After a Recv was cancelled the link either works as before, nothing missing, or fails with a
// *comm.PeerError.
func (n network) afterCancelledRecv(t *testing.T) {
	const count, maxLen = 20, 1000
	ctx, ts := n.start(t, 2)
	waiting, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := ts[1].Recv(waiting, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Recv past its deadline must return context.DeadlineExceeded (got %v)", err)
	}
	together(t, func() error {
		if err := sendAll(ctx, ts, 0, 1, count, maxLen); err != nil {
			return wantPeer(err, 1, "send after a cancelled Recv")
		}
		return nil
	}, func() error {
		if err := recvAll(ctx, ts, 0, 1, count, maxLen); err != nil {
			return wantPeer(err, 0, "Recv after a cancelled Recv")
		}
		return nil
	})
}

// Close ends the waiting calls of this member; later ones fail.
func (n network) closeUnblocks(t *testing.T) {
	ctx, ts := n.start(t, 3)
	received := make(chan error, 1)
	go func() {
		_, err := ts[0].Recv(ctx, 2)
		received <- err
	}()
	_, waits, sent := stuff(ctx, ts[0], 1, 1024, 64<<10)
	<-waits
	closed := make(chan error, 1)
	go func() { closed <- ts[0].Close() }()
	for doing, result := range map[string]chan error{"Send": sent, "Recv": received} {
		if err := <-result; err == nil {
			t.Errorf("%s ended without error when its transport was closed", doing)
		}
		if ctx.Err() != nil {
			t.Fatalf("Close did not end %s; its context did", doing)
		}
	}
	ts[1].Close() // nobody will receive from member 0, so it does not wait
	if err := <-closed; err != nil {
		t.Logf("first Close: %v", err)
	}
	ts[0].Close()
	if err := ts[0].Send(ctx, 2, nil, []byte("x")); err == nil {
		t.Error("Send after Close has no error")
	}
	if _, err := ts[0].Recv(ctx, 2); err == nil {
		t.Error("Recv after Close has no error")
	}
}

// What Send accepted arrives although the sender closes immediately; then the peer is gone.
func (n network) closeKeeps(t *testing.T) {
	const count, maxLen = 50, 10_000
	ctx, ts := n.start(t, 2)
	together(t, func() error {
		err := sendAll(ctx, ts, 0, 1, count, maxLen)
		return errors.Join(err, ts[0].Close())
	}, func() error {
		if err := recvAll(ctx, ts, 0, 1, count, maxLen); err != nil {
			return err
		}
		_, err := ts[1].Recv(ctx, 0)
		return wantPeer(err, 0, "Recv after all that the peer had sent")
	})
}

// A peer that goes fails the calls that deal with it, now and later, with its rank; the others go
// on.
func (n network) lostPeer(t *testing.T) {
	ctx, ts := n.start(t, 3)
	waiting := make(chan error, 1)
	go func() {
		_, err := ts[0].Recv(ctx, 2)
		waiting <- err
	}()
	if err := ts[2].Close(); err != nil {
		t.Logf("close of the peer: %v", err)
	}
	others := append(oneWay(ctx, ts, 0, 1, 200, 1000), oneWay(ctx, ts, 1, 0, 200, 1000)...)
	together(t, append(others, func() error {
		if err := wantPeer(<-waiting, 2, "Recv while the peer goes"); err != nil {
			return err
		}
		_, err := ts[0].Recv(ctx, 2)
		return wantPeer(err, 2, "Recv later")
	}, func() error {
		var err error
		for frame := make([]byte, 64<<10); err == nil; { // it may take a while to notice, not for ever
			err = ts[1].Send(ctx, 2, nil, frame)
		}
		return wantPeer(err, 2, "Send")
	})...)
}
