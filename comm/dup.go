package comm

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Dup returns a second group of the same members over the same transport (MPI_Comm_dup), whose
// operations run concurrently with g's: the gradients of one layer are summed while the rows of
// another are sent. Every member calls it between two operations of g; another call returns the same
// group. g.Bytes counts what both send; g.Close closes both, and a fault of the transport ends both.
//
// Each group buffers frames that arrive for the other. A member that sends more than MaxUnread bytes
// to a group that does not read them is at fault.
func (g *Group) Dup() *Group {
	if b := g.dup.Load(); b != nil {
		return b
	}
	if !g.busy.CompareAndSwap(false, true) {
		panic("comm: Dup must not be called while an operation runs")
	}
	defer g.busy.Store(false)
	ways := &ways{t: g.t, peers: make([]way, g.size)}
	for q := range ways.peers {
		w := &ways.peers[q]
		w.sending, w.reading, w.came = make(chan struct{}, 1), make(chan struct{}, 1),
			[2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	}
	g.t = half{ways, 0}
	b := &Group{
		t: half{ways, 1}, rank: g.rank, size: g.size, patience: g.patience, approval: g.approval,
	}
	g.dup.Store(b)
	return b
}

// MaxUnread is how many bytes a peer may send to one of two groups while only the other one reads.
const MaxUnread = 1 << 28

// dupBit, in a frame's operation byte, marks the frames of a group that Dup returned.
const dupBit = 1 << 7

// ways carries the frames of two groups over one transport. The group that waits for a frame of a
// peer reads, and keeps what belongs to the other.
type ways struct {
	t     Transport
	peers []way
}

type way struct {
	sending chan struct{}    // held by who sends
	reading chan struct{}    // held by who reads
	came    [2]chan struct{} // something was kept
	mu      sync.Mutex
	kept    [2][][]byte
	held    int // bytes in kept
}

// pop returns the first frame that was kept for one of the two, nil if there is none.
func (w *way) pop(which int) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept[which]) == 0 {
		return nil
	}
	frame := w.kept[which][0]
	w.kept[which], w.held = w.kept[which][1:], w.held-len(frame)
	return frame
}

func (w *way) keep(which int, frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held+len(frame) > MaxUnread {
		return fmt.Errorf("a peer may send at most %d bytes before they are requested (got %d)",
			MaxUnread, w.held+len(frame))
	}
	w.kept[which], w.held = append(w.kept[which], frame), w.held+len(frame)
	select {
	case w.came[which] <- struct{}{}:
	default:
	}
	return nil
}

// half is the transport of one of the two groups.
type half struct {
	*ways
	which int
}

func (h half) Send(ctx context.Context, to int, head, body []byte) error {
	if h.which == 1 {
		head[1] |= dupBit
	}
	w := &h.peers[to]
	select {
	case w.sending <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.sending }()
	return h.t.Send(ctx, to, head, body)
}

func (h half) Recv(ctx context.Context, from int) ([]byte, error) {
	w := &h.peers[from]
	for {
		if frame := w.pop(h.which); frame != nil {
			return frame, nil
		}
		select {
		case w.reading <- struct{}{}:
		case <-w.came[h.which]:
			continue
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if frame := w.pop(h.which); frame != nil { // kept since
			<-w.reading
			return frame, nil
		}
		frame, err := h.t.Recv(ctx, from)
		which := 0
		if err == nil && len(frame) > 1 && frame[1]&dupBit != 0 {
			which, frame[1] = 1, frame[1]&^dupBit
		}
		switch head, _, bad := parseFrame(frame); {
		case err != nil:
		case bad == nil && head.ends(): // both groups
			err = w.keep(1-h.which, slices.Clone(frame))
		case which != h.which:
			err = w.keep(which, frame)
			frame = nil
		}
		<-w.reading
		if frame != nil || err != nil {
			return frame, err
		}
	}
}

func (h half) Free(frame []byte) { h.t.Free(frame) }

func (h half) Close() error { return h.t.Close() }
