package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

// gateConn is a connection as the gate sees it.
type gateConn struct {
	network.Conn
	from peer.ID
	at   ma.Multiaddr
}

func (c gateConn) RemotePeer() peer.ID           { return c.from }
func (c gateConn) RemoteMultiaddr() ma.Multiaddr { return c.at }

// A stream of somebody who is not listed, or who has this peer's own identity, is reset before a hello.
func TestAnswerToNoMember(t *testing.T) {
	for _, from := range []peer.ID{"self", "stranger"} {
		r := newRendezvous(&Host{}, []member{{id: "self"}, {id: "other"}}, 0, Hello{}, nil)
		s := &bytesStream{in: bytes.NewReader(r.ours.encode()), conn: gateConn{from: from}}
		if r.answer(s); !s.reset || s.out.Len() > 0 {
			t.Errorf("%s: reset %t, %d bytes were sent", string(from), s.reset, s.out.Len())
		}
	}
}

// Over QUIC a member at an address that is not known gets in, when it has shown that the address is its own; and at one that
// is known no more often than the address may.
func TestQUICAsksTheGate(t *testing.T) {
	a, b := listen(t, "quic"), listen(t, "quic")
	for _, s := range a.Addrs() {
		at, _ := peer.SplitAddr(ma.StringCast(s))
		b.store.AddAddr(a.net.LocalPeer(), at, peerstore.PermanentAddrTTL)
	}
	b.gate.admit([]member{{id: a.net.LocalPeer()}})
	dial := func() error {
		_, err := b.net.DialPeer(network.WithForceDirectDial(within(t, 5*time.Second), "test"), a.net.LocalPeer())
		return err
	}
	members := []member{{id: b.net.LocalPeer()}}
	if a.gate.admit(members); !a.gate.asks(ma.StringCast("/ip4/127.0.0.1/udp/1/quic-v1")) {
		t.Fatal("the address is known")
	}
	if err := dial(); err != nil {
		t.Errorf("a member at an unknown address: %v", err)
	}
	from := ma.StringCast("/ip4/127.0.0.1/udp/1/quic-v1")
	// The dialling side is done first: closed then, its connection would never reach the other side's gate.
	await(t, within(t, 10*time.Second), "its address is known", func() bool { return a.gate.knows(from) })
	b.net.ClosePeer(a.net.LocalPeer())
	a.gate.mu.RLock()
	known := a.gate.addresses[addressOf(from)]
	a.gate.mu.RUnlock()
	known.SetLimit(0)
	known.SetBurst(0)
	if err := dial(); err == nil || !strings.Contains(explain(err).Error(), "it closed the connection") {
		t.Errorf("a member at an address that has used up its connections: %v", err)
	}
	a.gate.admit(members)
	a.gate.strangers.SetLimit(0)
	a.gate.strangers.SetBurst(0)
	b.net.Backoff().Clear(a.net.LocalPeer()) // of the refused dial
	if err := dial(); err == nil {
		t.Error("one more came from unknown addresses than may")
	}
}

// What anybody on the local network announces is bounded, in peers and in addresses of each.
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

// What the gate remembers of members' addresses is bounded, however many they come from.
func TestAddressesAreBounded(t *testing.T) {
	g := newGater(2, nil)
	g.admit([]member{{id: "a"}})
	for i := range 1000 {
		at := ma.StringCast(fmt.Sprintf("/ip4/10.1.%d.%d/tcp/1", i/250, i%250))
		g.InterceptSecured(network.DirInbound, "a", gateConn{from: "a", at: at})
	}
	if n := len(g.addresses); n != 2*connsPerPeer {
		t.Errorf("%d addresses are kept, must be %d", n, 2*connsPerPeer)
	}
}

// Every step of a connection asks the gate anew: who passes one is not let through the next for that.
func TestGateAtEveryStep(t *testing.T) {
	ids := make([]peer.ID, 4)
	for i := range ids {
		id, err := NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id.id
	}
	listed, revoked, relay, stranger := ids[0], ids[1], ids[2], ids[3]
	at := ma.StringCast("/ip4/192.0.2.1/tcp/4001")
	g := newGater(4, []peer.AddrInfo{{ID: relay}})
	for _, from := range []string{"/ip4/192.0.2.1/tcp/4001", "/ip4/192.0.2.1/udp/4001/quic-v1", "/ip4/192.0.2.1/tcp/4001/p2p/" + relay.String() + "/p2p-circuit"} {
		if g.InterceptAccept(gateConn{at: ma.StringCast(from)}) {
			t.Errorf("a connection from %s is accepted without a session", from)
		}
	}
	members := []member{{id: listed}, {id: revoked}}
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
