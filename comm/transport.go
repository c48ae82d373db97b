// Package comm gives a fixed set of peers their collective operations: sums, exchanges of rows, broadcasts, barriers.
// It knows no network: a Transport carries the frames. Every call takes a context, and bytes are counted by
// class: Halo, Reduce or Control.
package comm

import (
	"context"
	"fmt"
	"sync"
)

// Transport carries frames between two members: they arrive once and in order, or later calls fail with *PeerError.
// A frame is sent as head and body, so that a body need not be copied, and received in one piece. Send may return
// before the frame is delivered and must not keep head or body after it returns. Recv returns a frame that the caller
// owns, and may give back by Free when it is done with it. Send and Recv for different peers may run at the same time;
// for one peer, one of each.
type Transport interface {
	Send(ctx context.Context, to int, head, body []byte) error
	Recv(ctx context.Context, from int) ([]byte, error)
	Free(frame []byte) // keeps the memory for the next frame received
	Close() error      // ends this member's own calls with an error; peers still receive what Send had accepted
}

// PeerError is a fault of the connection to one peer, or of what that peer sent.
type PeerError struct {
	Rank int    // of the peer at fault
	Name string // the peer's name if the transport knows it
	Op   string // what was being done: "send", "recv", "exchange layer 1", …
	Err  error

	lost bool // the connection, or nothing came: the peer may come back
}

func (e *PeerError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("peer %d (%s): %s: %v", e.Rank, e.Name, e.Op, e.Err)
	}
	return fmt.Sprintf("peer %d: %s: %v", e.Rank, e.Op, e.Err)
}

func (e *PeerError) Unwrap() error { return e.Err }

// WaitError reports that members did not come before the wait for them was over.
type WaitError struct {
	Missing []string // their names
	Err     error    // what is known of each, and why the wait ended
}

func (e *WaitError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// Door is a class of bytes that a peer sends. Two classes carry data; control carries none.
type Door uint8

// The classes. Halo is for rows, Reduce for updates and counts, Control for fingerprints, digests and barriers.
const (
	Halo Door = iota
	Reduce
	Control
	numDoors
)

func (d Door) String() string { return [...]string{"halo", "reduce", "control"}[d] }

// SpareFrames keeps frames that were received and are done with, for those to come. A Transport has one behind Free.
// The zero SpareFrames is ready to use, by several goroutines.
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
