package p2p

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// Who is revoked loses its connection at once, calls that wait for it end with its name, it does not come back, and the
// others go on.
func TestRevoke(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		ss, errs := join(within(t, 10*time.Second), hs, []Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 2)
		for _, way := range [][2]int{{0, 2}, {2, 0}} {
			go func() {
				_, err := ss[way[0]].Recv(within(t, 10*time.Second), way[1])
				gone <- err
			}()
		}
		for _, h := range hs[:2] {
			if err := h.Revoke(hs[2].ID(), "serial 2 of tumour-registry"); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		for range 2 {
			err := <-gone
			if _, ok := errors.AsType[*comm.PeerError](err); !ok || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a Recv that waited for a revoked peer, or the revoked peer's own: %v", err)
			}
			if errors.Is(err, ErrRevoked) && strings.Contains(err.Error(), "site-2") && strings.Contains(err.Error(), "serial 2") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("%d of the two were told of the revocation, want the one that was not revoked", told)
		}
		if c := hs[0].net.ConnsToPeer(hs[2].net.LocalPeer()); len(c) > 0 {
			t.Errorf("a revoked peer has the connection %v", c)
		}
		frames(t, ss[0], ss[1])
		ss[2].Close()
		if _, err := hs[2].Join(within(t, 500*time.Millisecond), roster, Hello{}); err == nil {
			t.Error("a revoked peer joined again")
		}
		if c := hs[0].net.ConnsToPeer(hs[2].net.LocalPeer()); len(c) > 0 {
			t.Errorf("a revoked peer came back over %v", c)
		}
		ss[0].Close()
		if _, err := hs[0].Join(within(t, 5*time.Second), roster, Hello{}); !errors.Is(err, ErrRevoked) || !strings.Contains(err.Error(), "site-2") {
			t.Errorf("a Join that waits for a revoked peer: %v", err)
		}
	})
}

// A revocation ends a Join that waits for the peer.
func TestRevokeEndsJoin(t *testing.T) {
	hs, roster := hosts(t, "tcp", 2)
	time.AfterFunc(50*time.Millisecond, func() { hs[0].Revoke(hs[1].ID(), "expired") })
	if _, err := hs[0].Join(within(t, 20*time.Second), roster, Hello{}); !errors.Is(err, ErrRevoked) {
		t.Errorf("join: %v", err)
	}
}

// A member that opens streams without end is held to a rate, and its session goes on.
func TestStreamsOfAMemberAreBounded(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		ss := sessions(t, transport, 2)
		c := ss[0].links[1].stream.Conn()
		answered, opened, begun := 0, 0, time.Now()
		for ; answered == opened && opened < 1000 || opened < 3*streamsBurst; opened++ { // until one is refused, on a machine however slow
			ctx := within(t, 5*time.Second)
			s, err := c.NewStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := probe(ctx, s, 0); err == nil {
				answered++
			}
		}
		most := streamsBurst + int(streamsRate*time.Since(begun).Seconds()) + 1
		if answered < streamsBurst/2 || answered > most {
			t.Errorf("%d of %d streams were served, want at most %d in %v", answered, opened, most, time.Since(begun))
		}
		frames(t, ss[0], ss[1])
	})
}

// What strangers may cost is bounded together; an address at which a member is known has a budget of its own.
func TestMayConnect(t *testing.T) {
	g := newGater(2, nil)
	at := func(s string) ma.Multiaddr { return ma.StringCast(s) }
	if g.mayConnect(at("/ip4/192.0.2.1/tcp/4001")) {
		t.Error("let in while there is no session")
	}
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	g.admit([]member{{id: id.id, addrs: []ma.Multiaddr{at("/ip4/198.51.100.7/tcp/4001"), at("/ip6/2001:db8:1:2::1/udp/1/quic-v1")}}})
	if !g.asks(at("/ip4/192.0.2.1/udp/4001/quic-v1")) || g.asks(at("/ip4/198.51.100.7/udp/99/quic-v1")) {
		t.Error("who is not known has to show its address, a member does not")
	}
	let := 0
	for i := range 1000 {
		if g.mayConnect(at("/ip4/192.0.2." + string(rune('0'+i%10)) + "/tcp/4001")) {
			let++
		}
	}
	if let < strangersBurst || let > strangersBurst+strangersRate {
		t.Errorf("%d of 1000 strangers came as far as a handshake, want %d", let, strangersBurst)
	}
	if g.strangers.SetLimit(0); g.asks(at("/ip4/192.0.2.1/udp/4001/quic-v1")) {
		t.Error("too many have come, and one more is asked for its address")
	}
	for _, known := range []string{"/ip4/198.51.100.7/udp/99/quic-v1", "/ip6/2001:db8:1:ff::9/tcp/1"} {
		if !g.mayConnect(at(known)) {
			t.Errorf("%s is a member's address and was kept out with the strangers", known)
		}
	}
	if g.InterceptSecured(network.DirInbound, "nobody", nil) {
		t.Error("a stranger passed")
	}
}

// No more is taken of a member than MaxRate, and a deadline that falls into the wait loses nothing.
func TestMaxRate(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		const rate = 4 << 20
		hs[1].cfg.MaxRate = rate
		ss, errs := join(within(t, 10*time.Second), hs, []Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		go ss[0].Send(within(t, 20*time.Second), 1, make([]byte, rate), nil)
		var err error
		for patience := 20 * time.Millisecond; ; patience *= 2 {
			if _, err = ss[1].Recv(within(t, patience), 0); !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if took := time.Since(begun); err != nil || took < 800*time.Millisecond {
			t.Errorf("a second's worth came after %v, %v", took, err)
		}
		frames(t, ss[0], ss[1])
	})
}
