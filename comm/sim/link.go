package sim

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/internal/rng"
)

// link is one direction between two members: a bounded queue of frames, each with the time at which it arrives.
type link struct {
	cfg     *Config
	start   time.Time
	key     rng.Key
	cuts    []Partition   // those that part this link's ends
	latency time.Duration // one way
	timed   bool          // whether frames take time at all
	room    chan struct{} // one token: something left the queue
	arrived chan struct{} // one token: something entered it

	mu            sync.Mutex
	queue         []parcel
	queued        int
	idle          time.Duration // when the last frame had left the sender, since start
	last          time.Duration // when the last frame arrives, since start
	frames, bytes int64
}

type parcel struct {
	frame []byte
	at    time.Duration // since start
}

func newLink(cfg *Config, start time.Time, key rng.Key, from, to int) *link {
	l := &link{cfg: cfg, start: start, key: key, room: make(chan struct{}, 1), arrived: make(chan struct{}, 1)}
	l.latency = cfg.MinLatency + time.Duration(key.Float64(0)*float64(cfg.MaxLatency-cfg.MinLatency))
	for _, p := range cfg.Partitions {
		if slices.Contains(p.Ranks, from) != slices.Contains(p.Ranks, to) {
			l.cuts = append(l.cuts, p)
		}
	}
	l.timed = l.latency > 0 || cfg.Bandwidth > 0 || cfg.Loss > 0 || len(l.cuts) > 0
	return l
}

// push puts a copy of frame on the way unless the queue is full. A frame longer than the whole queue goes alone.
func (l *link) push(frame []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && l.queued+len(frame) > l.cfg.Queue {
		return false
	}
	var at time.Duration
	if l.timed {
		at = l.arrival(len(frame))
	}
	l.queue = append(l.queue, parcel{append(make([]byte, 0, len(frame)), frame...), at})
	l.queued += len(frame)
	l.frames++
	l.bytes += int64(len(frame))
	signal(l.arrived)
	return true
}

// arrival is when a frame of n bytes that is sent now arrives: after those before it.
func (l *link) arrival(n int) time.Duration {
	l.idle = max(l.idle, time.Since(l.start))
	if l.cfg.Bandwidth > 0 {
		l.idle += time.Duration(float64(n) / l.cfg.Bandwidth * float64(time.Second))
	}
	at := l.idle + l.latency
	draws := l.key.Fold(uint64(l.frames))
	for i := uint64(0); draws.Float64(i) < l.cfg.Loss; i++ {
		at += l.cfg.Retransmit
	}
	for moved := true; moved; {
		moved = false
		for _, cut := range l.cuts {
			if cut.End == 0 && at >= cut.Start {
				at, moved = math.MaxInt64, false
				break
			}
			if at >= cut.Start && at < cut.End {
				at, moved = cut.End, true
			}
		}
	}
	l.last = max(l.last, at)
	return l.last
}

// pop takes the first frame if it has arrived. Otherwise frame is nil and, when one is under way, wait is its timer.
func (l *link) pop() (frame []byte, wait *timer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil, nil
	}
	first := l.queue[0]
	if l.timed {
		if d := first.at - time.Since(l.start); d > 0 {
			return nil, &timer{time.NewTimer(d)}
		}
	}
	l.queue[0] = parcel{}
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.queued -= len(first.frame)
	signal(l.room)
	return first.frame, nil
}

// timer is a time.Timer that may be nil.
type timer struct{ t *time.Timer }

func (t *timer) C() <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.t.C
}

func (t *timer) stop() {
	if t != nil {
		t.t.Stop()
	}
}

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
