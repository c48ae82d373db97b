package netsim

import (
	"math"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/rng"
)

// link is one direction between two members: a bounded queue of frames, each with the time at which
// it arrives.
type link struct {
	model   Model
	uplink  *uplink
	key     rng.Key       // of what is lost
	cuts    []Partition   // those that separate this link's ends, in order of Start
	limit   int           // bytes in the queue before push refuses
	timed   bool          // whether frames take time at all
	room    chan struct{} // has one token if something left the queue
	arrived chan struct{} // has one token if something entered it

	mu            sync.Mutex
	queue         []parcel
	queued        int
	last          time.Duration // when the last frame arrives, since uplink.start
	frames, bytes int64
}

type parcel struct {
	frame []byte
	at    time.Duration // since uplink.start
}

// never is when a frame arrives that is held up by a partition without end.
const never = time.Duration(math.MaxInt64)

// defaultLimit is how many bytes may be under way on a link before Send waits.
const defaultLimit = 4 << 20

// uplink is what a member's links share: the rate at which it sends.
type uplink struct {
	start time.Time
	mu    sync.Mutex
	idle  time.Duration // when the last frame has left, since start
}

// leave returns when a frame has left that is handed over now and keeps the sender busy for wire.
func (u *uplink) leave(wire time.Duration) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.idle = max(u.idle, time.Since(u.start)) + wire
	return u.idle
}

// newLink returns the link from one member, whose links share an uplink, to another. A pair with a separate model has a
// separate uplink, too.
func newLink(shared *uplink, from, to int, models Table, seed uint64) *link {
	l := &link{uplink: shared, key: rng.New(seed).FoldString("sim").Fold(uint64(from)).Fold(uint64(to)),
		limit: defaultLimit}
	l.room, l.arrived = make(chan struct{}, 1), make(chan struct{}, 1)
	var own bool
	if l.model, own = models.between(from, to); own {
		l.uplink = &uplink{start: shared.start}
	}
	l.timed = l.model != Model{}
	return l
}

// push puts frame on the way unless the queue is full. A frame longer than the whole queue goes by itself.
func (l *link) push(frame []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && l.queued+len(frame) > l.limit {
		return false
	}
	var at time.Duration
	if l.timed {
		at = l.arrival(len(frame))
	}
	l.queue = append(l.queue, parcel{frame, at})
	l.queued += len(frame)
	l.frames++
	l.bytes += int64(len(frame))
	signal(l.arrived)
	return true
}

// arrival is when a frame of n bytes that is sent now arrives: after those before it.
func (l *link) arrival(n int) time.Duration {
	busy, flight := l.model.Delivery(n, l.key.Float64(1+uint64(l.frames)))
	at := l.uplink.leave(busy) + flight
	for _, cut := range l.cuts {
		switch {
		case at < cut.Start:
		case cut.End == 0:
			at = never
		case at < cut.End:
			at = cut.End
		}
	}
	l.last = max(l.last, at)
	return l.last
}

// pop takes the first frame if it has arrived, or in any case if early is set. Otherwise frame is
// nil, and due is how long the one under way still takes: 0 when there is none.
func (l *link) pop(early bool) (frame []byte, due time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil, 0
	}
	first := l.queue[0]
	if l.timed && !early {
		if first.at == never {
			return nil, never
		}
		if due := first.at - time.Since(l.uplink.start); due > 0 {
			return nil, due
		}
	}
	l.queue[0] = parcel{}
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.queued -= len(first.frame)
	signal(l.room)
	return first.frame, 0
}

// joined returns head and body as one frame from pool.
func joined(pool *comm.SpareFrames, head, body []byte) []byte {
	frame := pool.Get(len(head) + len(body))
	copy(frame[copy(frame, head):], body)
	return frame
}

// signal leaves a token unless one is there.
func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
