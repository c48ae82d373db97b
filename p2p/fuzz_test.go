package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// bytesStream is a stream on which in comes, and then its end.
type bytesStream struct {
	network.Stream
	in    io.Reader
	out   bytes.Buffer
	reset bool
	scope countedScope
	conn  network.Conn // (nil = a bytesConn)
}

// countedScope is a scope that knows what is reserved.
type countedScope struct {
	network.NullScope
	held   int
	closed bool
}

func (c *countedScope) ReserveMemory(n int, _ uint8) error {
	if c.closed {
		return network.ErrResourceScopeClosed
	}
	c.held += n
	return nil
}
func (c *countedScope) ReleaseMemory(n int) { c.held -= n }

// bytesConn is the connection below a bytesStream.
type bytesConn struct {
	network.Conn
	from peer.ID
}

func (c bytesConn) RemotePeer() peer.ID { return c.from }

func (bytesConn) IsClosed() bool { return false }
func (bytesConn) As(any) bool    { return false }
func (bytesConn) Close() error   { return nil }

func (s *bytesStream) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *bytesStream) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *bytesStream) SetDeadline(time.Time) error      { return nil }
func (s *bytesStream) SetReadDeadline(time.Time) error  { return nil }
func (s *bytesStream) SetWriteDeadline(time.Time) error { return nil }
func (s *bytesStream) Close() error                     { return nil }
func (s *bytesStream) CloseWrite() error                { return nil }
func (s *bytesStream) Reset() error                     { s.reset = true; return nil }
func (s *bytesStream) Conn() network.Conn {
	if s.conn != nil {
		return s.conn
	}
	return bytesConn{}
}
func (s *bytesStream) Scope() network.StreamScope { return &s.scope }

// Whatever a peer sends, the accepted frames encode to what came, none is larger than allowed, and an announced length
// costs at most four times the bytes that came. They come byte by byte if slow is set, and as what a goodbye left
// behind if drained is set. Every Read takes a byte or is the last, so the target ends after len(in) of them.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{}, false, false)
	f.Add([]byte{4, 0, 0, 0, 'w', 'a', 'r', 'p', 0, 0, 0, 0, 1}, true, false)
	f.Add([]byte{4, 0, 0, 0, 'w', 'e', 'f', 't', 1, 0, 0, 0, 1}, false, true)
	f.Add([]byte{255, 255, 255, 255, 1}, false, false)
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<20), true, true)
	const limit = 2 << 20
	f.Fuzz(func(t *testing.T, in []byte, slow, drained bool) {
		s := &bytesStream{in: bytes.NewReader(in)}
		if slow {
			s.in = iotest.OneByteReader(s.in)
		}
		l := newLink(1, "site-1", s, new(comm.SpareFrames))
		if drained {
			l.drain()
		}
		var taken []byte
		for {
			frame, clean, err := l.read(context.Background(), limit)
			if cap(l.body) > max(firstRead, 4*len(in)) {
				t.Fatalf("%d bytes of room for %d that came", cap(l.body), len(in))
			}
			if s.scope.held < cap(l.body) || l.body == nil && s.scope.held > 0 {
				t.Fatalf("%d bytes are reserved and %d taken", s.scope.held, cap(l.body))
			}
			if err != nil {
				if clean || len(taken) == len(in) != errors.Is(err, errLeft) {
					t.Fatalf("%d of %d bytes taken, then %v, clean %v", len(taken), len(in), err, clean)
				}
				break
			}
			if len(frame) > limit {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			taken = append(binary.LittleEndian.AppendUint32(taken, uint32(len(frame))), frame...)
		}
		if !bytes.HasPrefix(in, taken) {
			t.Fatalf("took %x of %x", taken, in)
		}
	})
}

// Whatever a peer sends in a handshake, the stream becomes the session's only after a hello that matches and a verdict
// that agrees. This side sends its hello and at most one further byte, and a hello that differs ends the attempt for
// good.
func FuzzHandshake(f *testing.F) {
	id, err := identity.New()
	if err != nil {
		f.Fatal(err)
	}
	hello := func(rank uint32) greeting {
		return greeting{Hello: Hello{Generation: 3}, rank: rank, size: 2, attempt: 1}
	}
	for _, theirs := range []uint32{0, 1} {
		good := hello(theirs).encode()
		f.Add(append(good, verdictUse), theirs == 0, true)
		f.Add(append(good, verdictOther), theirs == 0, false)
		f.Add(good[:40], theirs == 0, false)
		f.Add(append(hello(1-theirs).encode(), verdictUse), theirs == 0, false)
		f.Add(append(greeting{rank: theirs, size: 2, attempt: 1}.encode(), verdictUse), theirs == 0, true)
		f.Add(append(greeting{Hello: Hello{Generation: 3}, rank: theirs, size: 2}.encode(), verdictUse), theirs == 0,
			true)
	}
	f.Fuzz(func(t *testing.T, in []byte, low, dialled bool) { // low: the peer has the lower rank
		ours, p := hello(0), &pair{rank: 1, member: node.Peer{Name: "site", ID: id.ID()}}
		if low {
			ours, p.rank = hello(1), 0
		}
		r := newRendezvous(&Host{node: &node.Node{}}, []node.Peer{{}, {}}, int(ours.rank), Hello{})
		r.ours = ours
		s := &bytesStream{in: bytes.NewReader(in)}
		kept := false
		err := r.shake(s, p, dialled, func() bool { kept = true; return true })
		r.listening.Wait()
		theirs, parsed := greeting{}, error(nil)
		if len(in) >= helloSize {
			theirs, parsed = parseGreeting(in[:helloSize])
			theirs.attempt = 1
		}
		matches := len(in) >= helloSize && parsed == nil && theirs == hello(uint32(p.rank))
		if linked := err == nil; linked != kept ||
			linked != (matches && len(in) > helloSize && in[helloSize] == verdictUse) {
			t.Fatalf("linked %v, kept %v, error %v", linked, kept, err)
		}
		said := append(ours.encode(), verdictUse)
		if parsed == nil && theirs.Plan != ours.Plan && len(in) >= helloSize {
			// the text of a plan that has none, and that the other's came
			said = append(ours.encode(), 0, 0, 0, 0, refusalTaken)
		}
		if out := s.out.Bytes(); !bytes.HasPrefix(said, out) {
			t.Fatalf("said %x", out)
		}
		if differs := len(in) >= helloSize && !matches; differs != (len(r.fatal) == 1) {
			t.Fatalf("the hello differs: %v, and for good: %v (%v)", differs, len(r.fatal) == 1, err)
		}
	})
}
