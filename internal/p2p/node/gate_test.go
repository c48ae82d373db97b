package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// gateConn is a connection as the gate sees it.
type gateConn struct {
	network.Conn
	from peer.ID
	at   ma.Multiaddr
}

func (c gateConn) RemotePeer() peer.ID           { return c.from }
func (c gateConn) RemoteMultiaddr() ma.Multiaddr { return c.at }

// Over QUIC a member at an unknown address is admitted when it has proved that the address is its own. At a known
// address it is admitted no more often than the address may.
func TestQUICAsksTheGate(t *testing.T) {
	a, b := listen(t, "quic"), listen(t, "quic")
	b.Admit([]Peer{peerOf(a)})
	members := []Peer{{ID: b.ID()}}
	from := ma.StringCast("/ip4/127.0.0.1/udp/1/quic-v1")
	if a.Admit(members); !a.gate.asks(from) {
		t.Fatal("the address is known")
	}
	if _, err := dial(t, b, a); err != nil {
		t.Errorf("a member at an unknown address: %v", err)
	}
	// The dialling side is done first: closed then, its connection would never reach the other
	// side's gate.
	await(t, "its address is known", func() bool { return a.gate.knows(from) })
	b.net.ClosePeer(a.ID())
	a.gate.mu.RLock()
	known := a.gate.addresses[addressOf(from)]
	a.gate.mu.RUnlock()
	known.SetLimit(0)
	known.SetBurst(0)
	if _, err := dial(t, b, a); err == nil || !strings.Contains(Explain(err).Error(), "it closed the connection") {
		t.Errorf("a member at an address that has used up its connections: %v", err)
	}
	a.Admit(members)
	a.gate.strangers.SetLimit(0)
	a.gate.strangers.SetBurst(0)
	b.net.Backoff().Clear(a.ID()) // of the refused dial
	if _, err := dial(t, b, a); err == nil {
		t.Error("one more came from unknown addresses than may")
	}
}

// initial returns the first packet of a QUIC connection.
func initial(t *testing.T) []byte {
	sink, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	ctx, hang := context.WithCancel(t.Context())
	dialled := make(chan bool)
	go func() {
		quic.DialAddr(ctx, sink.LocalAddr().String(),
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"libp2p"}}, nil)
		close(dialled)
	}()
	b := make([]byte, 2048)
	n, err := sink.Read(b)
	hang()
	<-dialled
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// A sender that may have forged its address gets one short packet, which asks it to prove that it receives (Retry, RFC
// 9000, section 8.1.2) or refuses it. A member's address is not asked.
func TestQUICAsksUnknownAddresses(t *testing.T) {
	a := listen(t, "quic")
	to, _, err := quicreuse.FromQuicMultiaddr(a.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	const retry = 3 // the type of a packet that asks; a refusal is an Initial, as the first packet of a handshake is
	answer := func() (kind byte, size int) {
		t.Helper()
		s, err := net.DialUDP("udp4", nil, to)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.SetDeadline(time.Now().Add(patience))
		s.Write(initial(t))
		b := make([]byte, 2048)
		n, err := s.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return b[0] >> 4 & 3, n
	}
	member := newIdentity(t).ID()
	a.Admit([]Peer{{ID: member, Addrs: []ma.Multiaddr{ma.StringCast("/ip4/127.0.0.1/udp/1/quic-v1")}}})
	if kind, _ := answer(); kind == retry {
		t.Error("a member's address is asked")
	}
	a.Admit([]Peer{{ID: member}})
	if kind, size := answer(); kind != retry || size > 300 {
		t.Errorf("an unknown address is answered by a packet of type %d with %d bytes, must be asked", kind, size)
	}
	a.gate.strangers.SetLimit(0)
	a.gate.strangers.SetBurst(0)
	if kind, size := answer(); kind == retry || size > 300 {
		t.Errorf("one that comes after too many is answered by a packet of type %d with %d bytes, must be refused",
			kind, size)
	}
}

// A sender that has not proved that it receives at its address begins no handshake, whether or not there is space for
// strangers.
func TestQUICRefusesUnverifiedAddresses(t *testing.T) {
	a := listen(t, "quic")
	a.Admit([]Peer{{ID: newIdentity(t).ID(), Addrs: []ma.Multiaddr{ma.StringCast("/ip4/198.51.100.7/udp/1/quic-v1")}}})
	for _, test := range []struct {
		ip                 string
		verified, admitted bool
	}{{"192.0.2.1", false, false}, {"192.0.2.1", true, true}, {"198.51.100.7", false, true}} {
		ctx, done := context.WithCancel(t.Context())
		_, err := a.admitQUIC(ctx, &quic.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.ParseIP(test.ip), Port: 9},
			AddrVerified: test.verified})
		if (err == nil) != test.admitted {
			t.Errorf("%+v: %v", test, err)
		}
		done()
	}
}

// Announcements on the local network are bounded, in peers and in addresses of each.
func TestAnnouncementsAreBounded(t *testing.T) {
	l := &lan{found: map[peer.ID]peer.AddrInfo{}}
	at := make([]ma.Multiaddr, 2*maxConfigured)
	for i := range at {
		at[i] = ma.StringCast(fmt.Sprintf("/ip4/10.1.1.1/tcp/%d", i+1))
	}
	for i := range maxFound + 10 {
		l.HandlePeerFound(peer.AddrInfo{ID: peer.ID(fmt.Sprint(i)), Addrs: at})
	}
	if n := len(l.found); n != maxFound {
		t.Errorf("%d peers are kept, must be %d", n, maxFound)
	}
	if n := len(l.found["0"].Addrs); n != maxConfigured {
		t.Errorf("%d addresses of a peer are kept, must be %d", n, maxConfigured)
	}
	l.HandlePeerFound(peer.AddrInfo{ID: "0", Addrs: at[:1]})
	if n := len(l.found["0"].Addrs); n != 1 {
		t.Errorf("a peer that is known and announces itself again has %d addresses", n)
	}
}

// The gate remembers a bounded number of members' addresses, however many they use.
func TestAddressesAreBounded(t *testing.T) {
	g := newGater(2, nil)
	g.admit([]Peer{{ID: "a"}})
	for i := range 1000 {
		at := ma.StringCast(fmt.Sprintf("/ip4/10.1.%d.%d/tcp/1", i/250, i%250))
		g.InterceptSecured(network.DirInbound, "a", gateConn{from: "a", at: at})
	}
	if n := len(g.addresses); n != 2*connsPerPeer {
		t.Errorf("%d addresses are kept, must be %d", n, 2*connsPerPeer)
	}
}

// Every step of a connection asks the gate anew: passing one does not admit to the next.
func TestGateAtEveryStep(t *testing.T) {
	ids := make([]peer.ID, 4)
	for i := range ids {
		ids[i] = newIdentity(t).ID()
	}
	listed, revoked, relay, stranger := ids[0], ids[1], ids[2], ids[3]
	at := ma.StringCast("/ip4/192.0.2.1/tcp/4001")
	g := newGater(4, []peer.AddrInfo{{ID: relay}})
	for _, from := range []string{"/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.1/udp/4001/quic-v1",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + relay.String() + "/p2p-circuit"} {
		if g.InterceptAccept(gateConn{at: ma.StringCast(from)}) {
			t.Errorf("a connection from %s is accepted without a session", from)
		}
	}
	members := []Peer{{ID: listed}, {ID: revoked}}
	g.admit(members)
	g.revoke(revoked, errors.New("serial 2"))
	steps := map[string]func(p peer.ID) bool{
		"peer dial": g.InterceptPeerDial,
		"address dial": func(p peer.ID) bool {
			return g.InterceptAddrDial(p, at)
		},
		"secured, dialled": func(p peer.ID) bool {
			return g.InterceptSecured(network.DirOutbound, p, gateConn{at: at})
		},
		"secured, accepted": func(p peer.ID) bool {
			return g.InterceptSecured(network.DirInbound, p, gateConn{at: at})
		},
		"upgraded": func(p peer.ID) bool {
			ok, _ := g.InterceptUpgraded(gateConn{from: p, at: at})
			return ok
		},
		"stream": g.mayOpen,
	}
	check := func(when string) {
		t.Helper()
		for step, passes := range steps {
			for _, test := range []struct {
				who  string
				id   peer.ID
				want bool
			}{
				{"a member", listed, true}, {"a revoked member", revoked, false}, {"a stranger", stranger, false},
				{"a relay", relay, step != "secured, accepted"}, // nobody but members dials this peer
			} {
				if got := passes(test.id); got != test.want {
					t.Errorf("%s, %s: %s passes: %t", when, step, test.who, got)
				}
			}
		}
	}
	check("after the revocation")
	g.admit(members)
	check("in the next session")
}

// The total cost of strangers is bounded; an address at which a member is known has a separate budget.
func TestMayConnect(t *testing.T) {
	g := newGater(2, nil)
	at := func(s string) ma.Multiaddr { return ma.StringCast(s) }
	if g.mayConnect(at("/ip4/192.0.2.1/tcp/4001")) {
		t.Error("let in while there is no session")
	}
	g.admit([]Peer{{ID: newIdentity(t).ID(),
		Addrs: []ma.Multiaddr{at("/ip4/198.51.100.7/tcp/4001"), at("/ip6/2001:db8:1:2::1/udp/1/quic-v1")}}})
	if !g.asks(at("/ip4/192.0.2.1/udp/4001/quic-v1")) || g.asks(at("/ip4/198.51.100.7/udp/99/quic-v1")) {
		t.Error("who is not known has to show its address, a member does not")
	}
	let, begun := 0, time.Now()
	for i := range 1000 {
		if g.mayConnect(at("/ip4/192.0.2." + string(rune('0'+i%10)) + "/tcp/4001")) {
			let++
		}
	}
	if most := strangersBurst + int(strangersRate*time.Since(begun).Seconds()) + 1; let < strangersBurst || let > most {
		t.Errorf("%d of 1000 strangers came as far as a handshake, must be %d to %d", let, strangersBurst, most)
	}
	g.strangers.SetLimit(0)
	g.strangers.SetBurst(0)
	if g.asks(at("/ip4/192.0.2.1/udp/4001/quic-v1")) {
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

// A member that opens streams without end is held to a rate.
func TestStreamsOfAMemberAreBounded(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		a, b := listen(t, transport), listen(t, transport)
		a.Admit([]Peer{peerOf(b)})
		b.Admit([]Peer{peerOf(a)})
		c, err := dial(t, a, b)
		if err != nil {
			t.Fatal(err)
		}
		answered, opened, begun := 0, 0, time.Now()
		// until one is refused, on a machine however slow
		for ; answered == opened && opened < 1000 || opened < 3*streamsBurst; opened++ {
			ctx := within(t, patience)
			s, err := c.NewStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := probe(ctx, s, 0); err == nil {
				answered++
			}
		}
		most := streamsBurst + int(streamsRate*time.Since(begun).Seconds()) + 1
		if answered < streamsBurst || answered > most {
			t.Errorf("%d of %d streams were served, must be %d to %d in %v", answered, opened, streamsBurst, most,
				time.Since(begun))
		}
	})
}

// TestCloseWhileDialling: a node may be closed at any point of a dial. libp2p looks up the transport of an address
// after the call that dials has returned.
func TestCloseWhileDialling(t *testing.T) {
	t.Parallel()
	other, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	at := ma.StringCast("/ip4/127.0.0.1/udp/9/quic-v1")
	rounds := 100
	if testing.Short() {
		rounds = 40
	}
	for i := range rounds {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		n, err := Listen(Config{Identity: id})
		if err != nil {
			t.Fatal(err)
		}
		n.Admit([]Peer{{Name: "other", ID: other.ID(), Addrs: []ma.Multiaddr{at}}})
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			time.Sleep(time.Duration(i%20) * 50 * time.Microsecond)
			cancel()
		}()
		if err := n.Dial(ctx, Peer{Name: "other", ID: other.ID(), Addrs: []ma.Multiaddr{at}}); err == nil {
			t.Fatal("nobody is there")
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A node with guests admits any peer that proves a key, gives it only its handlers, and dials none of them. A revoked
// guest stays out. Without guests nobody gets in.
func TestGuests(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		cfg := Config{Identity: newIdentity(t), Transport: transport, PeerTimeout: patience}
		cfg.Listen = []string{cfg.sample()}
		a, closed := openFor(t, cfg, true), listen(t, transport)
		a.SetStreamHandler("/test", func(s network.Stream) { s.Close() })
		for k := range 3 {
			b := listen(t, transport)
			b.Admit([]Peer{peerOf(a), peerOf(closed)})
			if k == 2 {
				a.Revoke(b.ID(), errors.New("test"))
			}
			_, err := b.NewStream(within(t, patience), a.ID(), "/test")
			if (err == nil) != (k < 2) {
				t.Errorf("guest %d: %v", k, err)
			}
			if _, err := b.NewStream(within(t, patience), closed.ID(), probeProtocol); err == nil {
				t.Error("a node without guests lets one in")
			}
			if k == 2 {
				break
			}
			if _, err := b.NewStream(within(t, patience), a.ID(), probeProtocol); err == nil {
				t.Error("a guest has a path measured")
			}
			a.learn(peerOf(b))
			b.net.ClosePeer(a.ID())
			await(t, "the guest is gone", func() bool { return len(a.net.ConnsToPeer(b.ID())) == 0 })
			if _, err := dial(t, a, b); err == nil {
				t.Error("a guest is dialled")
			}
		}
	})
}
