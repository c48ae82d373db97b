package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/comm"
)

// A frame is its length, a little-endian uint32, and that many bytes.
const lengthBytes = 4

const (
	// firstPart is how much of a frame is copied behind its length and sent in the same Write: as much as fits in a
	// yamux message of 64 KiB. Copying less was slower, as short messages wake the receiver for little.
	firstPart = 64<<10 - 12 - lengthBytes
	// firstRead is the length of the buffer for a frame before any of it has come. The buffer grows fourfold as bytes
	// arrive. So a peer that announces a false length must send a quarter of the memory that it costs us.
	firstRead = 1 << 20
)

// link is the stream to one other member. One Send and one Recv may run at a time.
type link struct {
	rank   int
	name   string
	stream network.Stream
	pool   *comm.SpareFrames

	send   sync.Mutex
	out    []byte
	broken bool // a frame went out in part

	recv sync.Mutex
	in   io.Reader // the stream, or what was left of it when the peer said goodbye
	// What has come of the next frame: it stays here when a Recv is cancelled.
	head  [lengthBytes]byte
	nhead int
	body  []byte
	// reserved is how many bytes the host's limits know of for it.
	reserved int

	fault atomic.Pointer[comm.PeerError] // once set, of every call
	left  atomic.Bool                    // the peer has ended its half of the stream in good order
}

func newLink(rank int, name string, s network.Stream, pool *comm.SpareFrames) *link {
	return &link{rank: rank, name: name, stream: s, pool: pool, in: s}
}

// fail ends the link at its first fault, sends the peer the code, and returns that fault.
func (l *link) fail(e *comm.PeerError, code network.StreamErrorCode) *comm.PeerError {
	if !l.fault.CompareAndSwap(nil, e) {
		return l.fault.Load()
	}
	l.stream.ResetWithError(code)
	return e
}

// silent ends the link because of the peer timeout.
func (l *link) silent(d time.Duration) {
	l.fail(&comm.PeerError{Rank: l.rank, Name: l.name, Op: "recv",
		Err: fmt.Errorf("peer timeout: nothing has come from it for %s", d)}, 0)
}

// past is a deadline that has gone by.
var past = time.Unix(1, 0)

// interrupt makes a blocked read or write return when ctx ends. undo precedes the next one.
func interrupt(ctx context.Context, setDeadline func(time.Time) error) (undo func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		setDeadline(past)
		close(fired)
	})
	return func() {
		if !stop() {
			<-fired
			setDeadline(time.Time{})
		}
	}
}

// isTimeout recognises the deadline errors of yamux and quic-go.
func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// write sends one frame, head and then body. clean: an interrupted write has sent nothing.
func (l *link) write(ctx context.Context, head, body []byte) (clean bool, err error) {
	l.send.Lock()
	defer l.send.Unlock()
	defer interrupt(ctx, l.stream.SetWriteDeadline)()
	part := min(len(body), max(firstPart-len(head), 0))
	l.out = binary.LittleEndian.AppendUint32(l.out[:0], uint32(len(head)+len(body)))
	l.out = append(l.out, head...)
	l.out = append(l.out, body[:part]...)
	n, err := l.stream.Write(l.out)
	if err == nil && part < len(body) {
		_, err = l.stream.Write(body[part:])
	}
	l.broken = err != nil && n > 0
	return n == 0 && isTimeout(err), err
}

// read takes one frame of at most limit bytes. clean: an interrupted read keeps what came of it.
func (l *link) read(ctx context.Context, limit int) (frame []byte, clean bool, err error) {
	l.recv.Lock()
	defer l.recv.Unlock()
	defer interrupt(ctx, l.stream.SetReadDeadline)()
	for l.nhead < lengthBytes {
		n, err := l.in.Read(l.head[l.nhead:])
		l.nhead += n
		if err != nil && (l.nhead < lengthBytes || err != io.EOF) {
			return nil, n == 0 && isTimeout(err), cut(err, l.nhead > 0)
		}
	}
	size := binary.LittleEndian.Uint32(l.head[:])
	if uint64(size) > uint64(limit) {
		return nil, false, comm.Refused("a frame must have at most %d bytes (got %d)", limit, size)
	}
	if l.body == nil {
		if err := l.reserve(max(min(int(size), firstRead), comm.MaxFrame)); err != nil { // what the pool may give
			return nil, false, err
		}
		l.body = l.pool.Get(min(int(size), firstRead))[:0]
	}
	for len(l.body) < int(size) {
		if len(l.body) == cap(l.body) {
			room := min(int(size), 4*cap(l.body))
			if err := l.reserve(cap(l.body) + room); err != nil { // both, while one is copied to the other
				return nil, false, err
			}
			grown := make([]byte, len(l.body), room)
			copy(grown, l.body)
			l.body = grown
		}
		n, err := l.in.Read(l.body[len(l.body):min(cap(l.body), int(size))])
		l.body = l.body[:len(l.body)+n]
		if err != nil && (len(l.body) < int(size) || err != io.EOF) {
			// yamux can return bytes with a timeout, and then does not return their window to the
			// sender, which would wait forever: the link ends even if the frame is whole.
			return nil, n == 0 && isTimeout(err), cut(err, true)
		}
	}
	frame, l.body, l.nhead = l.body, nil, 0
	l.release()
	return frame, false, nil
}

// reserve reserves n bytes for the next frame in the host's limits, before they are allocated.
func (l *link) reserve(n int) error {
	if n <= l.reserved {
		return nil
	}
	err := l.stream.Scope().ReserveMemory(n-l.reserved, network.ReservationPriorityAlways)
	if errors.Is(err, network.ErrResourceScopeClosed) {
		return nil // the connection is gone: what comes now is in memory already, since the peer's goodbye
	}
	if err != nil {
		return fmt.Errorf("no memory for %d bytes of its frame: %w", n, err)
	}
	l.reserved = n
	return nil
}

// release ends what was reserved for a frame that is whole: it is its receiver's from now on.
func (l *link) release() {
	l.stream.Scope().ReleaseMemory(l.reserved)
	l.reserved = 0
}

// cut states what the end of a stream means.
func cut(err error, inside bool) error {
	if err != io.EOF { // a broken connection wraps io.EOF too
		return err
	}
	if inside {
		return io.ErrUnexpectedEOF
	}
	return errLeft
}

// errLeft is how a peer's orderly Close appears to a member that still expects a frame.
var errLeft = errors.New("it has left the session")

// drain reads what the peer sent before its goodbye into memory: at most one flow-control window.
// Then the connection may close without loss. Recv also finds an error of the stream.
func (l *link) drain() error {
	l.recv.Lock()
	defer l.recv.Unlock()
	if l.in != io.Reader(l.stream) {
		return nil
	}
	l.stream.SetReadDeadline(time.Now().Add(goodbyeTime))
	rest, err := io.ReadAll(io.LimitReader(l.stream, maxRest))
	if err == nil && len(rest) == maxRest {
		err = fmt.Errorf("it must leave at most %d bytes unread", maxRest)
	}
	end := err
	if err == nil {
		end = io.EOF
	}
	l.in = io.MultiReader(bytes.NewReader(rest), ended{end})
	return err
}

// ended is the end of a stream that has been drained.
type ended struct{ err error }

func (e ended) Read([]byte) (int, error) { return 0, e.err }

// goodbye ends our half of the stream and waits until the peer has taken what we sent. The
// connection cannot simply be closed: libp2p's TCP resets it and QUIC drops what is in flight.
func (l *link) goodbye(ctx context.Context) {
	l.stream.SetDeadline(past) // calls in progress end
	l.send.Lock()
	defer l.send.Unlock()
	if l.fault.Load() != nil || l.broken {
		l.stream.Reset()
		return
	}
	l.stream.SetWriteDeadline(time.Time{})
	if l.stream.CloseWrite() == nil {
		l.confirm(ctx)
	}
}

// confirm returns when the peer has seen how the stream ended, or ctx ends.
func (l *link) confirm(ctx context.Context) {
	b, err := l.stream.Conn().NewStream(ctx)
	if err != nil {
		return
	}
	defer b.Reset()
	deadline, _ := ctx.Deadline()
	b.SetDeadline(deadline)
	if b.SetProtocol(goodbyeProtocol) == nil && mss.SelectProtoOrFail(goodbyeProtocol, b) == nil {
		io.ReadFull(b, make([]byte, 1))
	}
}
