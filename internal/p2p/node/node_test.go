package node

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// patience only guards against hanging: how long a busy machine takes is not bounded.
const patience = 2 * time.Minute

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// each runs a test over both usual transports.
func each(t *testing.T, run func(t *testing.T, transport string)) {
	for _, transport := range []string{"quic", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			run(t, transport)
		})
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for ctx := within(t, patience); !done(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

func newIdentity(t testing.TB) identity.Identity {
	t.Helper()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// open opens a node that closes when the test ends.
func open(t testing.TB, cfg Config) *Node { return openFor(t, cfg, false) }

// openFor opens a node, which lets guests in if guests is true.
func openFor(t testing.TB, cfg Config, guests bool) *Node {
	t.Helper()
	n, err := listenFor(cfg, guests)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close node: %v", err)
		}
	})
	return n
}

// listen opens a node on loopback.
func listen(t testing.TB, transport string) *Node {
	t.Helper()
	cfg := Config{Identity: newIdentity(t), Transport: transport, PeerTimeout: patience}
	cfg.Listen = []string{cfg.sample()}
	if transport == "auto" {
		cfg.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/wss"}
	}
	return open(t, cfg)
}

func peerOf(n *Node) Peer { return Peer{ID: n.ID(), Addrs: n.Addrs()} }

// dial makes a connection without regard to libp2p's back-off.
func dial(t testing.TB, from, to *Node) (network.Conn, error) {
	return from.net.DialPeer(network.WithForceDirectDial(within(t, patience), "test"), to.ID())
}

// behind opens a relay on loopback, and n nodes that only it knows how to reach.
func behind(t testing.TB, transport string, n int) (*Relay, []*Node, identity.Roster) {
	t.Helper()
	nodes := make([]*Node, n)
	ids := make([]identity.Identity, n)
	var roster identity.Roster
	for i := range ids {
		ids[i] = newIdentity(t)
		roster.Members = append(roster.Members, identity.Member{Name: fmt.Sprintf("site-%d", i), ID: ids[i].PeerID()})
	}
	cfg := Config{Identity: newIdentity(t), Transport: transport}
	cfg.Listen = []string{cfg.sample()}
	r, err := ListenRelay(cfg, roster, RelayLimits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close relay: %v", err)
		}
	})
	for i := range nodes {
		nodes[i] = open(t, Config{Identity: ids[i], Transport: transport, Relays: r.Addrs()})
	}
	return r, nodes, roster
}

// TestListenAt: a member that is listed by a name listens on every interface with every carrier, and an address that is
// on no interface is refused with what to do.
func TestListenAt(t *testing.T) {
	for transport, tail := range map[string]string{"quic": "/udp/0/quic-v1", "tcp": "/tcp/0", "noise": "/tcp/0",
		"ws": "/tcp/0/wss", "auto": "/udp/0/quic-v1"} {
		for _, host := range []string{"/dns/localhost", "/dns4/no-such-name.invalid"} {
			at := open(t, Config{Identity: newIdentity(t), Transport: transport,
				Listen: []string{host + tail}}).net.ListenAddresses()
			if len(at) == 0 || !strings.HasPrefix(at[0].String(), "/ip4/0.0.0.0/") &&
				!strings.HasPrefix(at[0].String(), "/ip6/::/") {
				t.Errorf("%s: %s is %v, must be every interface", transport, host, at)
			}
		}
		want := "option listen /ip4/0.0.0.0" + tail
		_, err := Listen(Config{Identity: newIdentity(t), Transport: transport,
			Listen: []string{"/ip4/203.0.113.7" + tail}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, must have %q", transport, err, want)
		}
	}
}

// TestNotReached: the error names a name that has no address, and what may keep UDP away.
func TestNotReached(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{"/dns4/no-such-name.invalid/udp/9/quic-v1": "no-such-name.invalid",
		"/ip4/127.0.0.1/udp/9/quic-v1": NoAnswer} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			n := open(t, Config{Identity: newIdentity(t), PeerTimeout: time.Second})
			m := Peer{ID: newIdentity(t).ID(), Addrs: []ma.Multiaddr{ma.StringCast(at)}}
			n.Admit([]Peer{m})
			if err := Explain(n.Dial(within(t, patience), m)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, must contain %q", at, err, want)
			}
		})
	}
}

// TestInterfacesAsTold: if the system lists no interfaces, a node uses the configured addresses, with its ports.
func TestInterfacesAsTold(t *testing.T) {
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	n, err := Listen(Config{Identity: id, Listen: []string{"/ip4/0.0.0.0/udp/0/quic-v1"},
		Interfaces: []netip.Addr{netip.MustParseAddr("192.0.2.7")}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	at := n.Addrs()
	if len(at) != 1 || !strings.HasPrefix(at[0].String(), "/ip4/192.0.2.7/udp/") {
		t.Errorf("the node names %v, must be 192.0.2.7 with its port", at)
	}
}
