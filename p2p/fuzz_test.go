package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/network"
	mss "github.com/multiformats/go-multistream"
)

// bytesStream is a stream on which in comes, and then its end.
type bytesStream struct {
	network.Stream
	in    io.Reader
	out   bytes.Buffer
	reset bool
	scope countedScope
	conn  network.Conn // nil: a bytesConn
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
type bytesConn struct{ network.Conn }

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

// Whatever a peer sends, the frames that are taken encode to what came, none is larger than allowed, and what a length
// promises costs no more than four times what came of it. It comes byte by byte where slow, and as what a goodbye left
// behind where drained. Every Read takes a byte or is the last, so the target ends after len(in) of them.
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
		l := newLink(1, "site-1", s, new(comm.Pool))
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

// Whatever a peer says in a handshake, the stream becomes the session's only after a hello that matches and a verdict that
// agrees; this side says its hello and at most one byte more; and a hello that differs ends the attempt for good.
func FuzzHandshake(f *testing.F) {
	id, err := NewIdentity()
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
		f.Add(append(greeting{Hello: Hello{Generation: 3}, rank: theirs, size: 2}.encode(), verdictUse), theirs == 0, true)
	}
	f.Fuzz(func(t *testing.T, in []byte, low, dialled bool) { // low: the peer has the lower rank
		ours, p := hello(0), &pair{rank: 1, member: member{name: "site", id: id.id}}
		if low {
			ours, p.rank = hello(1), 0
		}
		r := newRendezvous(&Host{}, []member{{}, {}}, int(ours.rank), Hello{}, nil)
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
		if linked := err == nil; linked != kept || linked != (matches && len(in) > helloSize && in[helloSize] == verdictUse) {
			t.Fatalf("linked %v, kept %v, error %v", linked, kept, err)
		}
		said := append(ours.encode(), verdictUse)
		if parsed == nil && theirs.Plan != ours.Plan && len(in) >= helloSize {
			said = append(ours.encode(), 0, 0, 0, 0, refusalTaken) // the text of a plan that has none, and that the other's came
		}
		if out := s.out.Bytes(); !bytes.HasPrefix(said, out) {
			t.Fatalf("said %x", out)
		}
		if differs := len(in) >= helloSize && !matches; differs != (len(r.fatal) == 1) {
			t.Fatalf("the hello differs: %v, and for good: %v (%v)", differs, len(r.fatal) == 1, err)
		}
	})
}

// A probe's answers are taken where they are whole and count what was sent.
func FuzzProbeAnswer(f *testing.F) {
	said := func(sent uint64) []byte {
		s := &bytesStream{in: bytes.NewReader(nil)}
		mss.SelectProtoOrFail(probeProtocol, s) // what one side says when it asks is what the other says when it agrees
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(s.out.Bytes(), 1<<60), sent)
	}
	f.Add(said(100), uint16(100))
	f.Add(said(0), uint16(0))
	f.Add(said(99), uint16(100))
	f.Add(said(1 << 40)[:20], uint16(7))
	f.Add([]byte("\x03na\n"), uint16(7))
	f.Fuzz(func(t *testing.T, in []byte, n uint16) {
		s := &bytesStream{in: bytes.NewReader(in)}
		seen, err := probe(context.Background(), s, int(n))
		switch {
		case err != nil && !s.reset:
			t.Fatalf("%v, and the stream is left open", err)
		case err == nil && (seen.rtt < 0 || seen.rate < 0 || math.IsInf(seen.rate, 0) || n == 0 != (seen.rate == 0)):
			t.Fatalf("%+v of %d bytes", seen, n)
		case err == nil && n > 0 && !bytes.Contains(in, binary.LittleEndian.AppendUint64(nil, uint64(n))):
			t.Fatalf("%x counts %d bytes", in, n)
		}
	})
}

// A probe is answered with a clock and with how much has come, or not at all.
func FuzzProbe(f *testing.F) {
	f.Add(encodeProbe(0))
	f.Add(append(encodeProbe(5), "zeros and more"...))
	f.Add(encodeProbe(probeMost + 1))
	f.Add([]byte("HEDP"))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &bytesStream{in: bytes.NewReader(in)}
		answerProbe(s)
		if len(in) < probeSize {
			if s.out.Len() > 0 {
				t.Fatalf("half a question was answered: %x", s.out.Bytes())
			}
			return
		}
		n, err := parseProbe(in[:probeSize])
		switch {
		case err != nil && s.out.Len() > 0:
			t.Fatalf("%x was answered", in)
		case err == nil && n > probeMost:
			t.Fatalf("a probe of %d bytes is taken", n)
		case err == nil && !bytes.Equal(encodeProbe(n), in[:probeSize]):
			t.Fatalf("%x is read as %d bytes", in[:probeSize], n)
		case err == nil && n == 0 && s.out.Len() != probeAnswer:
			t.Fatalf("answer %x", s.out.Bytes())
		case err == nil && n > 0:
			if got := binary.LittleEndian.Uint64(s.out.Bytes()[probeAnswer:]); got != uint64(min(n, len(in)-probeSize)) {
				t.Fatalf("%d of %d bytes counted", got, len(in)-probeSize)
			}
		}
	})
}

// Addresses and IDs of a plan come from others, too.
func FuzzRoster(f *testing.F) {
	id, err := NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("site-a", id.PeerID(), "/ip4/127.0.0.1/udp/4001/quic-v1")
	f.Add("", "12D3", "/p2p/"+id.PeerID())
	f.Add("x", id.PeerID(), "/ip4/1.2.3.4/tcp/443/wss/p2p/"+id.PeerID()+"/p2p-circuit")
	f.Fuzz(func(t *testing.T, name, id, addr string) {
		members, err := Roster{Members: []Member{{Name: name, ID: id, Addrs: []string{addr}}}}.parse(1)
		if err != nil {
			return
		}
		if members[0].name != name || len(members[0].addrs) != 1 {
			t.Fatalf("%+v", members)
		}
		kindOf(members[0].addrs[0])
		addressOf(members[0].addrs[0])
		Config{Relays: []string{addr}}.relays()
	})
}
