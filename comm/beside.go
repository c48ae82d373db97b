package comm

import (
	"context"
	"fmt"
	"sync"
)

// Beside returns a second group of the same members over the same transport, whose operations run at the same time as
// g's: the gradients of one layer are summed while the rows of another travel. Every member calls it between two
// operations of g; another call returns the same group. What it sends is counted by g.Bytes, too, and it is closed with
// g: a fault of the transport ends both.
//
// Neither may run so far ahead at one member that another one has to keep more than MaxBeside bytes of frames until the
// group whose they are asks for them: that is a fault of the member who sent them.
func (g *Group) Beside() *Group {
	if b := g.beside.Load(); b != nil {
		return b
	}
	if !g.busy.CompareAndSwap(false, true) {
		panic("comm: Beside called while an operation runs")
	}
	defer g.busy.Store(false)
	ways := &ways{t: g.t, peers: make([]way, g.size)}
	for q := range ways.peers {
		w := &ways.peers[q]
		w.reading, w.came = make(chan struct{}, 1), [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	}
	g.t = half{ways, 0}
	b := &Group{t: half{ways, 1}, rank: g.rank, size: g.size, members: g.members, generation: g.generation, patience: g.patience}
	g.beside.Store(b)
	return b
}

// MaxBeside is how many bytes a peer may send to one of two groups while only the other one listens.
const MaxBeside = 1 << 28

// besideBit, in a frame's byte of the operation, marks frames of a group that Beside returned.
const besideBit = 1 << 7

// ways carries the frames of two groups over one transport. Whoever of them waits for a frame of a peer reads, and what
// is the other's is kept for it.
type ways struct {
	t     Transport
	peers []way
}

type way struct {
	sending sync.Mutex
	reading chan struct{}    // held by who reads
	came    [2]chan struct{} // something was kept
	mu      sync.Mutex
	kept    [2][][]byte
	held    int // bytes in kept
}

// pop returns the first frame that was kept for one of the two, nil where there is none.
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
	if w.held+len(frame) > MaxBeside {
		return fmt.Errorf("a peer may send at most %d bytes before they are requested (got %d)", MaxBeside, w.held+len(frame))
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
		head[1] |= besideBit
	}
	w := &h.peers[to]
	w.sending.Lock()
	defer w.sending.Unlock()
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
		if err == nil && len(frame) > 1 && frame[1]&besideBit != 0 {
			which, frame[1] = 1, frame[1]&^besideBit
		}
		if err == nil && which != h.which {
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
