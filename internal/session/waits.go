package session

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/train"
)

// waits is a transport that reports for whom its calls wait: a member may stay connected and send nothing.
type waits struct {
	comm.Transport
	// One slot for each rank and direction is enough, since a Transport has at most one Send and one Recv for a peer at
	// a time. Atomics, because the ticker reads while calls write, and a lock in each frame would cost more.
	since [2][]atomic.Int64 // of sending and receiving, by rank: when the call at hand began (0 = there is none)
	stop  context.CancelFunc
	ended chan struct{}
}

// watchWaits reports, until the transport of size members is closed, each change in the list of members for which a
// call has waited for train.WaitNoted.
func watchWaits(t comm.Transport, size int, event func(train.Event)) comm.Transport {
	ctx, stop := context.WithCancel(context.Background())
	w := &waits{Transport: t, stop: stop, ended: make(chan struct{})}
	for k := range w.since {
		w.since[k] = make([]atomic.Int64, size)
	}
	go func() {
		defer close(w.ended)
		// A change is noticed at most a quarter late. There is no timer for each call, since frames are far more
		// frequent than ticks.
		tick := time.NewTicker(train.WaitNoted / 4)
		defer tick.Stop()
		var said []int
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if late := w.late(now); !slices.Equal(late, said) {
					event(train.Event{Kind: train.Waiting, Members: late})
					said = late
				}
			}
		}
	}()
	return w
}

// late lists the members for which a call has waited for long at now.
func (w *waits) late(now time.Time) (ranks []int) {
	for q := range w.since[0] {
		for k := range w.since {
			if at := w.since[k][q].Load(); at != 0 && now.UnixNano()-at >= int64(train.WaitNoted) {
				ranks = append(ranks, q)
				break
			}
		}
	}
	return ranks
}

// Send implements comm.Transport.
func (w *waits) Send(ctx context.Context, to int, head, body []byte) error {
	w.since[0][to].Store(time.Now().UnixNano())
	defer w.since[0][to].Store(0)
	return w.Transport.Send(ctx, to, head, body)
}

// Recv implements comm.Transport.
func (w *waits) Recv(ctx context.Context, from int) ([]byte, error) {
	w.since[1][from].Store(time.Now().UnixNano())
	defer w.since[1][from].Store(0)
	return w.Transport.Recv(ctx, from)
}

// Close implements comm.Transport.
func (w *waits) Close() error {
	// The goroutine ends first, so that no event follows the end of the run.
	w.stop()
	<-w.ended
	return w.Transport.Close()
}
