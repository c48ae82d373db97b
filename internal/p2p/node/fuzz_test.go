package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// bytesStream is a stream on which in comes, and then its end.
type bytesStream struct {
	network.Stream
	in    io.Reader
	out   bytes.Buffer
	reset bool
}

func (s *bytesStream) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *bytesStream) Write(b []byte) (int, error) { return s.out.Write(b) }
func (s *bytesStream) SetDeadline(time.Time) error { return nil }
func (s *bytesStream) Close() error                { return nil }
func (s *bytesStream) CloseWrite() error           { return nil }
func (s *bytesStream) Reset() error                { s.reset = true; return nil }

// A probe's answers are accepted if they are whole and count what was sent.
func FuzzProbeAnswer(f *testing.F) {
	said := func(sent uint64) []byte {
		s := &bytesStream{in: bytes.NewReader(nil)}
		mss.SelectProtoOrFail(probeProtocol, s) // a request and an agreement have the same bytes
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
			if got := binary.LittleEndian.Uint64(s.out.Bytes()[probeAnswer:]); got != uint64(min(n,
				len(in)-probeSize)) {
				t.Fatalf("%d of %d bytes counted", got, len(in)-probeSize)
			}
		}
	})
}

// Addresses and IDs of a plan come from others, too.
func FuzzRoster(f *testing.F) {
	id, err := identity.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("site-a", id.PeerID(), "/ip4/127.0.0.1/udp/4001/quic-v1")
	f.Add("", "12D3", "/p2p/"+id.PeerID())
	f.Add("x", id.PeerID(), "/ip4/1.2.3.4/tcp/443/wss/p2p/"+id.PeerID()+"/p2p-circuit")
	f.Fuzz(func(t *testing.T, name, id, addr string) {
		one := identity.Member{Name: name, ID: id, Addrs: []string{addr}}
		members, err := parse(identity.Roster{Members: []identity.Member{one}}, 1)
		if err != nil {
			return
		}
		if len(members[0].Addrs) != 1 {
			t.Fatalf("%+v", members)
		}
		kindOf(members[0].Addrs[0])
		addressOf(members[0].Addrs[0])
		Config{Relays: []string{addr}}.filled().relays()
	})
}
