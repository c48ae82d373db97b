package sim

import (
	"cmp"
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

// never is when a frame arrives that a partition without end holds up.
const never = time.Duration(math.MaxInt64)

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
	slices.SortFunc(l.cuts, func(a, b Partition) int { return cmp.Compare(a.Start, b.Start) })
	l.timed = l.latency > 0 || cfg.Bandwidth > 0 || cfg.Loss > 0 || len(l.cuts) > 0
	return l
}

// push puts frame on the way unless the queue is full. A frame longer than the whole queue goes alone.
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
	l.queue = append(l.queue, parcel{frame, at})
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
	for _, cut := range l.cuts { // in order of Start
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

// pop takes the first frame if it has arrived. Otherwise frame is nil, and due says when one that is under way will:
// 0 when there is none.
func (l *link) pop() (frame []byte, due time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil, 0
	}
	first := l.queue[0]
	if first.at == never {
		return nil, never
	}
	if l.timed {
		if due := first.at - time.Since(l.start); due > 0 {
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

// signal leaves a token unless one is there.
func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
