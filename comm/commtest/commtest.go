// Package commtest is the suite that every comm.Transport passes.
package commtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/rng"
)

// LargeFrame is the length of the longest frame that the suite sends.
const LargeFrame = 8 << 20

// patience is the time after which a test counts as hanging, far longer than a working one takes.
const patience = time.Minute

// Conformance runs the suite. open returns the connected transports of a new network of size
// members, in rank order; what they need besides Close it registers with t.Cleanup. Beyond the contract
// of comm.Transport the suite requires: frames have 0 to LargeFrame bytes; memory for unread frames is
// bounded below 64 MiB a link; Close may be called twice, unblocks its member's calls with an
// error, and does not lose what Send had accepted; a lost peer does not disturb the links between
// others.
func Conformance(t *testing.T, open func(t *testing.T, size int) []comm.Transport) {
	n := network{open}
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"OrderBothWays", n.order},
		{"EveryPairAtOnce", n.everyPair},
		{"LargeFrames", n.large},
		{"SentFrameIsTheSenders", n.sentFrame},
		{"ReceivedFrameIsTheReceivers", n.receivedFrame},
		{"BackPressure", n.backPressure},
		{"CancelledBefore", n.cancelledBefore},
		{"CancelledWhileWaiting", n.cancelledWaiting},
		{"AfterCancelledRecv", n.afterCancelledRecv},
		{"CloseUnblocks", n.closeUnblocks},
		{"CloseKeepsWhatWasSent", n.closeKeeps},
		{"LostPeer", n.lostPeer},
		{"Group", n.groups},
	} {
		t.Run(test.name, test.run)
	}
}

type network struct {
	open func(t *testing.T, size int) []comm.Transport
}

// start opens a network that is closed when the test ends, with a context that ends a hanging test.
func (n network) start(t *testing.T, size int) (context.Context, []comm.Transport) {
	t.Helper()
	ts := n.open(t, size)
	if len(ts) != size {
		t.Fatalf("open must return %d transports (got %d)", size, len(ts))
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, m := range ts {
			all.Go(func() { m.Close() })
		}
		all.Wait()
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx, ts
}

// together runs the tasks at once and fails the test with their errors.
func together(t *testing.T, tasks ...func() error) {
	t.Helper()
	errs := make([]error, len(tasks))
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() { errs[i] = task() })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// content is frame i from one member to another, of a length and bytes sampled by key.
func content(from, to, i, maxLen int) []byte {
	key := rng.New(1).Fold(uint64(from)).Fold(uint64(to)).Fold(uint64(i))
	b := make([]byte, key.Uint64(0)%uint64(maxLen+1))
	fill(b, key)
	return b
}

// fill writes what follows from the key, again and again after an odd number of bytes when b is
// long.
func fill(b []byte, key rng.Key) {
	first := b[:min(len(b), 1<<14+1)]
	for at := 0; at < len(first); at += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], key.Uint64(uint64(at)+1))
		copy(first[at:], word[:])
	}
	for at := len(first); at < len(b); {
		at += copy(b[at:], b[:at])
	}
}

func sendAll(ctx context.Context, ts []comm.Transport, from, to, count, maxLen int) error {
	for i := range count {
		if err := ts[from].Send(ctx, to, nil, content(from, to, i, maxLen)); err != nil {
			return fmt.Errorf("send frame %d from %d to %d: %w", i, from, to, err)
		}
	}
	return nil
}

func recvAll(ctx context.Context, ts []comm.Transport, from, to, count, maxLen int) error {
	for i := range count {
		got, err := ts[to].Recv(ctx, from)
		if err != nil {
			return fmt.Errorf("receive frame %d from %d at %d: %w", i, from, to, err)
		}
		if want := content(from, to, i, maxLen); string(got) != string(want) {
			return fmt.Errorf("frame %d from %d to %d has %d bytes, want %d, or others",
				i, from, to, len(got), len(want))
		}
	}
	return nil
}

// oneWay returns the tasks of both ends.
func oneWay(ctx context.Context, ts []comm.Transport, from, to, count, maxLen int) []func() error {
	return []func() error{
		func() error { return sendAll(ctx, ts, from, to, count, maxLen) },
		func() error { return recvAll(ctx, ts, from, to, count, maxLen) },
	}
}

// Many small frames, empty ones among them, in both directions at once: each arrives once and in
// order.
func (n network) order(t *testing.T) {
	const count, maxLen = 3000, 40
	ctx, ts := n.start(t, 2)
	together(t, append(oneWay(ctx, ts, 0, 1, count, maxLen), oneWay(ctx, ts, 1, 0, count, maxLen)...)...)
}

// Links do not mix and do not wait for each other.
func (n network) everyPair(t *testing.T) {
	const size, count, maxLen = 4, 40, 10_000
	ctx, ts := n.start(t, size)
	var tasks []func() error
	for from := range size {
		for to := range size {
			if from != to {
				tasks = append(tasks, oneWay(ctx, ts, from, to, count, maxLen)...)
			}
		}
	}
	together(t, tasks...)
}

func (n network) large(t *testing.T) {
	ctx, ts := n.start(t, 2)
	send := func(from, to int) func() error {
		return func() error {
			b := make([]byte, LargeFrame)
			for i := range 2 {
				fill(b, rng.New(uint64(2*from+i)))
				if err := ts[from].Send(ctx, to, nil, b); err != nil {
					return err
				}
			}
			return nil
		}
	}
	recv := func(from, to int) func() error {
		return func() error {
			want := make([]byte, LargeFrame)
			for i := range 2 {
				got, err := ts[to].Recv(ctx, from)
				if err != nil {
					return err
				}
				if fill(want, rng.New(uint64(2*from+i))); string(got) != string(want) {
					return fmt.Errorf("large frame %d from %d has %d bytes, want %d, or others",
						i, from, len(got), len(want))
				}
			}
			return nil
		}
	}
	together(t, send(0, 1), send(1, 0), recv(0, 1), recv(1, 0))
}

// Send keeps nothing of the frame: the sender writes over it at once.
func (n network) sentFrame(t *testing.T) {
	const count, length = 200, 10_000
	ctx, ts := n.start(t, 2)
	together(t, func() error {
		buf := make([]byte, length)
		for i := range count {
			fill(buf, rng.New(uint64(i)))
			if err := ts[0].Send(ctx, 1, nil, buf); err != nil {
				return err
			}
			clear(buf)
		}
		return nil
	}, func() error {
		want := make([]byte, length)
		for i := range count {
			got, err := ts[1].Recv(ctx, 0)
			if err != nil {
				return err
			}
			if fill(want, rng.New(uint64(i))); string(got) != string(want) {
				return fmt.Errorf("frame %d changed after Send returned", i)
			}
		}
		return nil
	})
}

// Recv keeps nothing of the frame: the receiver keeps all of them, and overwrites the memory behind each.
func (n network) receivedFrame(t *testing.T) {
	const count, maxLen = 200, 5000
	ctx, ts := n.start(t, 2)
	together(t,
		func() error { return sendAll(ctx, ts, 0, 1, count, maxLen) },
		func() error {
			var held [][]byte
			for range count {
				b, err := ts[1].Recv(ctx, 0)
				if err != nil {
					return err
				}
				held = append(held, b)
				clear(b[len(b):cap(b)])
			}
			for i, b := range held {
				if string(b) != string(content(0, 1, i, maxLen)) {
					return fmt.Errorf("frame %d changed after it was received", i)
				}
				for j := range b {
					b[j] = 0xff
				}
			}
			return nil
		})
}

// wantPeer checks that err is a *comm.PeerError of the rank.
func wantPeer(err error, rank int, doing string) error {
	fault, ok := errors.AsType[*comm.PeerError](err)
	switch {
	case !ok:
		return fmt.Errorf("%s: error must be a *comm.PeerError (got %v)", doing, err)
	case fault.Rank != rank:
		return fmt.Errorf("%s: error must name peer %d (got %d: %v)", doing, rank, fault.Rank, err)
	}
	return nil
}
