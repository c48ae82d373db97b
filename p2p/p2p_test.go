package p2p

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// transports are those that every test runs over; carrier_test.go has the others.
var transports = []string{"quic", "tcp"}

// patience only guards against hanging: how long a busy machine takes is not bounded.
const patience = 2 * time.Minute

const maxFrame = 64 << 20 // Config's default

// config is the configuration of a host on loopback. Most tests are not about silent peers.
func config(t testing.TB, transport string) Config {
	t.Helper()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string][]string{"quic": {"/ip4/127.0.0.1/udp/0/quic-v1"}, "tcp": {"/ip4/127.0.0.1/tcp/0"},
		"noise": {"/ip4/127.0.0.1/tcp/0"}, "ws": {"/ip4/127.0.0.1/tcp/0/ws"},
		"auto": {"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/wss"}}
	return Config{Identity: id, Transport: transport, Listen: at[transport], PeerTimeout: patience}
}

// open opens a host that closes when the test ends.
func open(t testing.TB, cfg Config) *Host {
	t.Helper()
	h, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close host: %v", err)
		}
	})
	return h
}

func listen(t testing.TB, transport string) *Host {
	t.Helper()
	return open(t, config(t, transport))
}

func hosts(t testing.TB, transport string, n int) ([]*Host, identity.Roster) {
	t.Helper()
	hs, roster := make([]*Host, n), identity.Roster{}
	for i := range hs {
		hs[i] = listen(t, transport)
		roster.Members = append(roster.Members,
			identity.Member{Name: fmt.Sprintf("site-%d", i), ID: hs[i].ID(), Addrs: hs[i].Addrs()})
	}
	return hs, roster
}

// join lets every host join at once, with the hello that it is given.
func join(ctx context.Context, hs []*Host, rosters []identity.Roster, hellos []Hello) ([]*Mesh, []error) {
	ss, errs := make([]*Mesh, len(hs)), make([]error, len(hs))
	var all sync.WaitGroup
	for i, h := range hs {
		all.Go(func() { ss[i], errs[i] = h.Join(ctx, rosters[i%len(rosters)], hellos[i%len(hellos)]) })
	}
	all.Wait()
	return ss, errs
}

// sessions opens a session of n hosts.
func sessions(t testing.TB, transport string, n int) []*Mesh {
	t.Helper()
	hs, roster := hosts(t, transport, n)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ss, errs := join(ctx, hs, []identity.Roster{roster}, []Hello{{Plan: [32]byte{1}}})
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	return ss
}

// via is the carrier of a session's connection to the member of a rank.
func via(s *Mesh, rank int) string {
	at := s.links[rank].stream.Conn().RemoteMultiaddr().String()
	for _, carrier := range [][2]string{{"p2p-circuit", "relay"}, {"/quic", "quic"}, {"/ws", "ws"}, {"/tcp", "tcp"}} {
		if strings.Contains(at, carrier[0]) {
			return carrier[1]
		}
	}
	return at
}

func TestConformance(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		commtest.Conformance(t, func(t *testing.T, size int) []comm.Transport {
			var out []comm.Transport
			for _, s := range sessions(t, transport, size) {
				out = append(out, s)
			}
			return out
		})
	})
}
