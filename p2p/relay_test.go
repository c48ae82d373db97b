package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// behind opens a relay on loopback, and n hosts that only it knows how to reach.
func behind(t testing.TB, transport string, n int, l node.RelayLimits) (*node.Relay, []*Host, identity.Roster) {
	t.Helper()
	ids := make([]identity.Identity, n)
	var roster identity.Roster
	for i := range ids {
		var err error
		if ids[i], err = identity.New(); err != nil {
			t.Fatal(err)
		}
		roster.Members = append(roster.Members, identity.Member{Name: fmt.Sprintf("site-%d", i), ID: ids[i].PeerID()})
	}
	cfg := config(t, transport)
	r, err := node.ListenRelay(node.Config(cfg), roster, l)
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
		hs[i] = open(t, Config{Identity: ids[i], Transport: transport, Relays: r.Addrs(), PeerTimeout: patience})
	}
	return r, hs, roster
}

// Peers that cannot be dialled meet through the federation's relay. Over WebSocket no hole can be punched, and the
// relay carries the session: more than libp2p's 128 KiB.
func TestRelayedSession(t *testing.T) {
	t.Parallel()
	_, hs, roster := behind(t, "ws", 3, node.RelayLimits{})
	ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("heddle"), 1<<20)
	ctx := within(t, patience)
	go ss[0].Send(ctx, 2, want, nil)
	if got, err := ss[2].Recv(ctx, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("received %d bytes, %v", len(got), err)
	}
	for rank := 1; rank < 3; rank++ {
		if by := via(ss[0], rank); by != "relay" {
			t.Errorf("peer %d is reached by %s, must be by a relay", rank, by)
		}
	}
	frames(t, ss[1], ss[2])
}

// A way between two peers that the relay brought together becomes a direct one before the session
// begins on it. There is a bound on how long that may take, which a busy machine can miss: then the
// relay carries that session.
func TestRelayedBecomesDirect(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		_, hs, roster := behind(t, transport, 2, node.RelayLimits{})
		ctx := within(t, patience)
		for generation := uint64(0); ; generation++ {
			ss, errs := join(ctx, hs, []identity.Roster{roster}, []Hello{{Generation: generation}})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			frames(t, ss[0], ss[1])
			by := via(ss[0], 1)
			if by == transport && via(ss[1], 0) == transport {
				return
			}
			t.Logf("generation %d: by %s", generation, by)
			for _, s := range ss {
				s.Close()
			}
		}
	})
}

// A relay serves only members, and disconnects a former member.
func TestRelayIsForMembers(t *testing.T) {
	t.Parallel()
	r, hs, roster := behind(t, "tcp", 2, node.RelayLimits{})
	cfg := config(t, "tcp")
	cfg.Listen, cfg.Relays = nil, r.Addrs()
	stranger := open(t, cfg)
	ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	await(t, within(t, patience), "both members are at the relay", func() bool { return r.Connected() == 2 })
	if c := hs[0].node.Network().ConnsToPeer(stranger.node.ID()); len(c) > 0 {
		t.Errorf("a stranger is connected to a member: %v", c)
	}
	for _, s := range ss {
		s.Close()
	}
	if err := r.Admit(identity.Roster{Members: roster.Members[:1]}); err != nil {
		t.Fatal(err)
	}
	if n := r.Connected(); n > 1 {
		t.Errorf("%d members are connected to the relay of one", n)
	}
}

// If a relay bounds circuits, one that is used up ends, with the peer's name.
func TestRelayLimit(t *testing.T) {
	t.Parallel()
	_, hs, roster := behind(t, "ws", 2, node.RelayLimits{Bytes: 1 << 20})
	ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	frames(t, ss[0], ss[1])
	ctx := within(t, patience)
	go ss[0].Send(ctx, 1, make([]byte, 4<<20), nil)
	if _, err := ss[1].Recv(ctx, 0); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "site-0") {
		t.Errorf("4 MiB over a circuit of 1 MiB: %v", err)
	}
}
