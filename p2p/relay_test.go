package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// behind opens a relay on loopback, and n hosts that only it knows how to reach.
func behind(t testing.TB, transport string, n int, l RelayLimits) (*Relay, []*Host, Roster) {
	t.Helper()
	ids := make([]Identity, n+1)
	var roster Roster
	for i := range ids {
		var err error
		if ids[i], err = NewIdentity(); err != nil {
			t.Fatal(err)
		}
		if i < n {
			roster.Members = append(roster.Members, Member{Name: fmt.Sprintf("site-%d", i), ID: ids[i].PeerID()})
		}
	}
	cfg := Config{Identity: ids[n], Transport: transport}
	cfg.Listen = []string{cfg.sample()}
	r, err := ListenRelay(cfg, roster, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close relay: %v", err)
		}
	})
	hs := make([]*Host, n)
	for i := range hs {
		if hs[i], err = Listen(Config{Identity: ids[i], Transport: transport, Relays: r.Addrs()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := hs[i].Close(); err != nil {
				t.Errorf("close host: %v", err)
			}
		})
	}
	return r, hs, roster
}

// A relay serves members only, at both ends of a circuit.
func TestRelayServesMembersOnly(t *testing.T) {
	g := newGater(4, nil)
	g.admit([]member{{id: "a"}, {id: "b"}, {id: "revoked"}})
	g.revoke("revoked", errors.New("serial 2"))
	acl := onlyMembers{g}
	for p, want := range map[peer.ID]bool{"a": true, "stranger": false, "revoked": false} {
		if got := acl.AllowReserve(p, nil); got != want {
			t.Errorf("%s may reserve: %t", string(p), got)
		}
		if got := acl.AllowConnect(p, nil, "b"); got != want {
			t.Errorf("%s may connect to a member: %t", string(p), got)
		}
		if got := acl.AllowConnect("b", nil, p); got != want {
			t.Errorf("a member may connect to %s: %t", string(p), got)
		}
	}
}

// Peers of which none can be dialled meet through the federation's relay. Over WebSocket no hole can be punched, and the
// relay carries the session: more than libp2p's 128 KiB.
func TestRelayedSession(t *testing.T) {
	t.Parallel()
	_, hs, roster := behind(t, "ws", 3, RelayLimits{})
	ss, errs := join(within(t, 30*time.Second), hs, []Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("heddle"), 1<<20)
	ctx := within(t, 20*time.Second)
	go ss[0].Send(ctx, 2, want, nil)
	if got, err := ss[2].Recv(ctx, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("received %d bytes, %v", len(got), err)
	}
	for rank, p := range ss[0].Paths() {
		if rank > 0 && p.Via != "relay" {
			t.Errorf("peer %d is reached by %+v, want a relay", rank, p)
		}
	}
	frames(t, ss[1], ss[2])
}

// A way between two peers that the relay brought together becomes a direct one before the session begins on it.
func TestRelayedBecomesDirect(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		_, hs, roster := behind(t, transport, 2, RelayLimits{})
		ss, errs := join(within(t, 30*time.Second), hs, []Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		frames(t, ss[0], ss[1])
		for _, p := range []Path{ss[0].Paths()[1], ss[1].Paths()[0]} {
			if p.Via != transport {
				t.Errorf("the path is %+v, want a direct one", p)
			}
		}
	})
}

// A relay is there for members only, and a member that is none any more is disconnected.
func TestRelayIsForMembers(t *testing.T) {
	t.Parallel()
	r, hs, roster := behind(t, "tcp", 2, RelayLimits{})
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := Listen(Config{Identity: id, Transport: "tcp", Relays: r.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	ss, errs := join(within(t, 30*time.Second), hs, []Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if c := r.host.net.ConnsToPeer(stranger.net.LocalPeer()); len(c) > 0 {
		t.Errorf("a stranger is connected to the relay: %v", c)
	}
	if n := r.Connected(); n != 2 {
		t.Errorf("%d members at the relay, want 2", n)
	}
	for _, s := range ss {
		s.Close()
	}
	if err := r.Admit(Roster{Members: roster.Members[:1]}); err != nil {
		t.Fatal(err)
	}
	if c := r.host.net.ConnsToPeer(hs[1].net.LocalPeer()); len(c) > 0 {
		t.Errorf("a former member is connected to the relay: %v", c)
	}
}

// Only relays are believed in under which address they see a peer: a member could name somebody else's, to be dialled.
func TestObservedAddressesComeFromRelays(t *testing.T) {
	r, hs, roster := behind(t, "tcp", 2, RelayLimits{})
	h := hs[0]
	emit, err := h.bus.Emitter(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		t.Fatal(err)
	}
	defer emit.Close()
	at := ma.StringCast("/ip4/192.0.2.1/tcp/4001")
	seen := func() bool { return slices.ContainsFunc(h.indirect.places(), at.Equal) }
	member, err := peer.Decode(roster.Members[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []peer.ID{member, r.host.net.LocalPeer()} {
		if seen() {
			t.Error("a member's word on this peer's address was taken")
		}
		emit.Emit(event.EvtPeerIdentificationCompleted{Peer: from, Conn: gateConn{from: from, at: at}, ObservedAddr: at})
	}
	await(t, within(t, 10*time.Second), "a relay's word on this peer's address is taken", seen)
}

// A relay may address a peer about circuits, and about nothing else.
func TestRelayOpensNoSession(t *testing.T) {
	t.Parallel()
	r, hs, _ := behind(t, "tcp", 1, RelayLimits{})
	deadline := time.Now().Add(10 * time.Second)
	for r.Connected() == 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	n := &node{h: r.host}
	if _, err := n.NewStream(network.WithNoDial(within(t, 5*time.Second), "test"), hs[0].net.LocalPeer(), probeProtocol); err == nil {
		t.Error("the relay opened a stream of a protocol that is for members")
	}
}

// Where a relay is told to bound circuits, one that is used up ends, with the peer's name.
func TestRelayLimit(t *testing.T) {
	t.Parallel()
	_, hs, roster := behind(t, "ws", 2, RelayLimits{Bytes: 1 << 20})
	ss, errs := join(within(t, 30*time.Second), hs, []Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	frames(t, ss[0], ss[1])
	ctx := within(t, 10*time.Second)
	go ss[0].Send(ctx, 1, make([]byte, 4<<20), nil)
	if _, err := ss[1].Recv(ctx, 0); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "site-0") {
		t.Errorf("4 MiB over a circuit of 1 MiB: %v", err)
	}
}
