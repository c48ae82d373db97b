package node

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/internal/testenv"
)

// A relay serves members only, at both ends of a circuit.
func TestRelayServesMembersOnly(t *testing.T) {
	g := newGater(4, nil)
	g.admit([]Peer{{ID: "a"}, {ID: "b"}, {ID: "revoked"}})
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

// Only relays are believed about the address of a peer: a member could name somebody else's, so that it is dialled.
func TestObservedAddressesComeFromRelays(t *testing.T) {
	r, nodes, _ := behind(t, "tcp", 2)
	emit, err := nodes[0].bus.Emitter(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		t.Fatal(err)
	}
	defer emit.Close()
	members, relays := ma.StringCast("/ip4/192.0.2.1/tcp/4001"), ma.StringCast("/ip4/192.0.2.2/tcp/4001")
	taken := func(at ma.Multiaddr) bool { return slices.ContainsFunc(nodes[0].indirect.places(), at.Equal) }
	emit.Emit(event.EvtPeerIdentificationCompleted{Peer: nodes[1].ID(),
		Conn: gateConn{from: nodes[1].ID(), at: members}, ObservedAddr: members})
	emit.Emit(event.EvtPeerIdentificationCompleted{Peer: r.node.ID(), Conn: gateConn{from: r.node.ID(), at: relays},
		ObservedAddr: relays})
	await(t, "a relay's word on this peer's address is taken", func() bool { return taken(relays) })
	if taken(members) {
		t.Error("a member's word on this peer's address was taken")
	}
}

// A relay may open streams to a peer only for circuits.
func TestRelayOpensNoSession(t *testing.T) {
	t.Parallel()
	r, nodes, _ := behind(t, "tcp", 1)
	await(t, "the member is connected", func() bool { return r.Connected() > 0 })
	var refused mss.ErrNotSupported[protocol.ID]
	_, err := r.node.NewStream(network.WithNoDial(within(t, patience), "test"), nodes[0].ID(), probeProtocol)
	if !errors.As(err, &refused) {
		t.Errorf("the relay opens a stream of a protocol that is for members: %v", err)
	}
}

// reservations counts the requests that a relay gets.
type reservations struct {
	onlyMembers
	asked *atomic.Int32
}

func (r reservations) AllowReserve(p peer.ID, a ma.Multiaddr) bool {
	r.asked.Add(1)
	return r.onlyMembers.AllowReserve(p, a)
}

// A relay that lost a reservation, but not the connection, gets it again.
func TestReservationIsRenewed(t *testing.T) {
	testenv.OnlyLong(t)
	t.Parallel()
	r, _, _ := behind(t, "tcp", 1)
	// again replaces what serves the relay's members, without their reservations, and counts requests.
	again := func() *atomic.Int32 {
		if err := r.service.Close(); err != nil {
			t.Fatal(err)
		}
		asked := new(atomic.Int32)
		var err error
		if r.service, err = relay.New(r.node,
			relay.WithACL(reservations{onlyMembers{r.node.gate}, asked})); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	for _, what := range []string{"the member reserves", "the member reserves again"} {
		asked := again()
		await(t, what, func() bool { return asked.Load() > 0 })
	}
}
