package comm

import (
	"sync"
)

// SpareFrames keeps frames that were received and are done with, for those to come. A Transport has one behind Free. The
// zero SpareFrames is ready to use, by several goroutines.
type SpareFrames struct {
	mu     sync.Mutex
	frames [][]byte
}

const (
	poolFrames = 64 // kept at most: 16 MiB
	poolLeast  = 4 << 10
)

// Get returns a frame of n bytes with any content.
func (p *SpareFrames) Get(n int) []byte {
	if n < poolLeast || n > MaxFrame {
		return make([]byte, n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.frames) - 1; last >= 0 {
		b := p.frames[last]
		p.frames = p.frames[:last]
		return b[:n]
	}
	return make([]byte, n, MaxFrame)
}

// Put keeps b, which nobody else may hold, unless there are enough or it is not of the length that Groups send.
func (p *SpareFrames) Put(b []byte) {
	if cap(b) != MaxFrame {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.frames) < poolFrames {
		p.frames = append(p.frames, b)
	}
}
