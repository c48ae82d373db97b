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

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/network"
)

// bytesStream is a stream on which in comes, and then its end.
type bytesStream struct {
	network.Stream
	in  io.Reader
	out bytes.Buffer
}

func (s *bytesStream) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *bytesStream) Write(b []byte) (int, error)      { return s.out.Write(b) }
func (s *bytesStream) SetDeadline(time.Time) error      { return nil }
func (s *bytesStream) SetReadDeadline(time.Time) error  { return nil }
func (s *bytesStream) SetWriteDeadline(time.Time) error { return nil }
func (s *bytesStream) Close() error                     { return nil }
func (s *bytesStream) Reset() error                     { return nil }

// Whatever a peer sends, the frames that are taken encode to what came, none is larger than allowed, and what a length
// promises costs no more than four times what came of it.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte{4, 0, 0, 0, 'w', 'a', 'r', 'p', 0, 0, 0, 0, 1}, true)
	f.Add([]byte{255, 255, 255, 255, 1}, false)
	f.Add(binary.LittleEndian.AppendUint32(nil, 1<<20), true)
	const limit = 2 << 20
	f.Fuzz(func(t *testing.T, in []byte, slow bool) {
		s := &bytesStream{in: bytes.NewReader(in)}
		if slow {
			s.in = iotest.OneByteReader(s.in)
		}
		l := newLink(1, "site-1", s, new(comm.Pool))
		var taken []byte
		for {
			frame, clean, err := l.read(context.Background(), limit)
			if cap(l.body) > max(firstRead, 4*len(in)) {
				t.Fatalf("%d bytes of room for %d that came", cap(l.body), len(in))
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
