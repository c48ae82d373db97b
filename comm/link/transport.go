package link

import (
	"context"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/rng"
)

const (
	queue = 4 << 20         // bytes that may be under way to one peer before Send waits
	leave = 5 * time.Second // for what is under way at Close
)

// slow is a transport whose frames go on when the model lets them arrive.
type slow struct {
	comm.Transport
	outs []*out // by rank; nil: this member

	once   sync.Once
	closed chan struct{}
	ctx    context.Context // of what goes on; ends a while after Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu   sync.Mutex
	idle time.Time // when all that was accepted has left this member, but for ways of their own
}

// out is the way to one peer.
type out struct {
	key     rng.Key
	model   Model
	own     bool          // the rate is of this way alone
	changed chan struct{} // closed and renewed under mu when anything below changes

	mu     sync.Mutex
	frames []parcel
	bytes  int
	count  uint64    // of frames ever accepted
	last   time.Time // when the last of them arrives
	idle   time.Time // of an own rate: when all that was accepted has left
	err    error     // of the transport, which accepts no more
}

type parcel struct {
	frame []byte
	at    time.Time // when it arrives
}

// Over returns t, the transport of member rank of size, as it is behind the connections that ways describes. What is lost
// follows from seed. The result owns t; what is under way when it is closed arrives at once.
func Over(t comm.Transport, rank, size int, ways Table, seed uint64) comm.Transport {
	s := &slow{Transport: t, outs: make([]*out, size), closed: make(chan struct{}), idle: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for q := range s.outs {
		if q != rank {
			m, own := ways.way(rank, q)
			s.outs[q] = &out{key: rng.New(seed).FoldString("link").Fold(uint64(rank)).Fold(uint64(q)), model: m, own: own, changed: make(chan struct{})}
			s.tasks.Go(func() { s.deliver(q) })
		}
	}
	return s
}

func (s *slow) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Send accepts a frame for member to, waiting while too much is under way.
func (s *slow) Send(ctx context.Context, to int, head, body []byte) error {
	o, n := s.outs[to], len(head)+len(body)
	for {
		if s.isClosed() {
			return comm.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o.mu.Lock()
		changed, err := o.changed, o.err
		if err == nil && (o.bytes == 0 || o.bytes+n <= queue) {
			frame := make([]byte, n)
			copy(frame[copy(frame, head):], body)
			s.accept(o, frame)
			o.mu.Unlock()
			return nil
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.closed:
		}
	}
}

// accept puts frame on the way. The caller holds o.mu.
func (s *slow) accept(o *out, frame []byte) {
	idle := &o.idle
	if !o.own {
		s.mu.Lock()
		defer s.mu.Unlock()
		idle = &s.idle
	}
	if now := time.Now(); idle.Before(now) {
		*idle = now
	}
	*idle = idle.Add(o.model.wire(len(frame)))
	at := idle.Add(o.model.Latency * time.Duration(1+2*o.model.repeats(len(frame), o.key.Float64(o.count))))
	if at.Before(o.last) { // frames keep their order
		at = o.last
	}
	o.count++
	o.last, o.bytes, o.frames = at, o.bytes+len(frame), append(o.frames, parcel{frame, at})
	o.signal()
}

func (o *out) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// deliver gives the transport each frame for member to when it is due, until all have gone on after Close.
func (s *slow) deliver(to int) {
	o := s.outs[to]
	for {
		o.mu.Lock()
		changed, waiting := o.changed, len(o.frames) > 0
		var first parcel
		if waiting {
			first = o.frames[0]
		}
		o.mu.Unlock()
		switch {
		case !waiting && s.isClosed():
			return
		case !waiting:
			select {
			case <-changed:
			case <-s.closed:
			}
			continue
		}
		if wait := time.Until(first.at); wait > 0 && !s.isClosed() {
			due := time.NewTimer(wait)
			select {
			case <-due.C:
			case <-s.closed:
				due.Stop()
			}
		}
		err := s.Transport.Send(s.ctx, to, first.frame, nil)
		o.mu.Lock()
		o.frames[0] = parcel{}
		o.frames, o.bytes = o.frames[1:], o.bytes-len(first.frame)
		if err != nil {
			o.err, o.frames, o.bytes = err, nil, 0
		}
		o.signal()
		o.mu.Unlock()
		if err != nil {
			return
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
