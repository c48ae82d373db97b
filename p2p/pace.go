package p2p

import (
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// paced takes at most rate bytes a second from a stream (0 = no limit). What comes faster fills the stream's window,
// and then the sender waits.
func paced(s network.Stream, rate int64) network.Stream {
	if rate == 0 {
		return s
	}
	return &pacedStream{Stream: s, rate: float64(rate), changed: make(chan struct{})}
}

const (
	paceLeast = 16 << 10               // bytes that one Read may take at any rate
	paceSlack = 100 * time.Millisecond // that a slow sender may make up for
)

type pacedStream struct {
	network.Stream
	rate float64   // bytes a second
	next time.Time // when what was read so far has had its time; of the one reader

	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{} // closed when the deadline changes
}

// Read implements io.Reader. It waits before it reads, so that a deadline loses nothing.
func (p *pacedStream) Read(b []byte) (int, error) {
	if err := p.wait(time.Until(p.next)); err != nil {
		return 0, err
	}
	if earliest := time.Now().Add(-paceSlack); p.next.Before(earliest) {
		p.next = earliest
	}
	n, err := p.Stream.Read(b[:min(len(b), max(paceLeast, int(p.rate*paceSlack.Seconds())))])
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	return n, err
}

func (p *pacedStream) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for d > 0 {
		p.mu.Lock()
		deadline, changed := p.deadline, p.changed
		p.mu.Unlock()
		over := time.Duration(1<<63 - 1)
		if !deadline.IsZero() {
			over = time.Until(deadline)
		}
		late := time.NewTimer(over)
		select {
		case <-timer.C:
			late.Stop()
			return nil
		case <-late.C:
			return os.ErrDeadlineExceeded
		case <-changed:
			late.Stop()
		}
	}
	return nil
}

// SetReadDeadline implements network.Stream.
func (p *pacedStream) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	p.deadline = t
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	return p.Stream.SetReadDeadline(t)
}

// SetDeadline implements network.Stream.
func (p *pacedStream) SetDeadline(t time.Time) error {
	p.SetReadDeadline(t)
	return p.Stream.SetWriteDeadline(t)
}
