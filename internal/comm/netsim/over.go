package netsim

import (
	"context"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// leave is how long frames under way may take at Close.
const leave = 5 * time.Second

// slow is a transport that gets each frame when the model lets it arrive.
type slow struct {
	comm.Transport
	links []*delayed // by rank (nil = this member)
	pool  comm.SpareFrames

	once   sync.Once
	closed chan struct{}
	ctx    context.Context // of deliveries; ends a while after Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// delayed is a link to one peer. err, which is set before failed is closed, is why the transport
// accepts no more.
type delayed struct {
	*link
	failed chan struct{}
	err    error
}

// Over returns t, the transport of member rank of size, slowed down to the connections that models describes. What is
// lost follows from seed. The result owns t; what is under way when it is closed arrives at once.
func Over(t comm.Transport, rank, size int, models Table, seed uint64) comm.Transport {
	s := &slow{Transport: t, closed: make(chan struct{}), links: make([]*delayed, size)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	shared := &uplink{start: time.Now()}
	for to := range size {
		if to != rank {
			s.links[to] = &delayed{link: newLink(shared, rank, to, models, seed), failed: make(chan struct{})}
			s.tasks.Go(func() { s.deliver(to) })
		}
	}
	return s
}

// Send accepts a frame for member to, waiting while too much is under way.
func (s *slow) Send(ctx context.Context, to int, head, body []byte) error {
	l, frame := s.links[to], joined(&s.pool, head, body)
	for {
		switch {
		case closed(s.closed):
			return comm.ErrClosed
		case closed(l.failed):
			return l.err
		case ctx.Err() != nil:
			return ctx.Err()
		case l.push(frame):
			return nil
		}
		select {
		case <-l.room:
		case <-l.failed:
		case <-ctx.Done():
		case <-s.closed:
		}
	}
}

// deliver gives the transport each frame for member to when it is due, until all are delivered
// after Close.
func (s *slow) deliver(to int) {
	l := s.links[to]
	for {
		closing := closed(s.closed)
		frame, due := l.pop(closing)
		switch {
		case frame != nil:
			if err := s.Transport.Send(s.ctx, to, frame, nil); err != nil {
				l.err = err
				close(l.failed)
				return
			}
			s.pool.Put(frame)
		case closing:
			return
		default:
			var arrival <-chan time.Time
			if due > 0 {
				arrival = time.After(due)
			}
			select {
			case <-l.arrived:
			case <-arrival:
			case <-s.closed:
			}
		}
	}
}

// Close implements comm.Transport.
func (s *slow) Close() (err error) {
	s.once.Do(func() {
		close(s.closed)
		stop := time.AfterFunc(leave, s.cancel)
		s.tasks.Wait()
		stop.Stop()
		s.cancel()
		err = s.Transport.Close()
	})
	return err
}
