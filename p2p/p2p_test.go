package p2p

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/commtest"
)

// transports are those that every test runs over; carrier_test.go has the others.
var transports = []string{"quic", "tcp"}

// listen opens a host on loopback that closes when the test ends.
func listen(t testing.TB, transport string) *Host {
	t.Helper()
	id, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Identity: id, Transport: transport}
	cfg.Listen = []string{cfg.sample()}
	if transport == "auto" {
		cfg.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/wss"}
	}
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

func hosts(t testing.TB, transport string, n int) ([]*Host, Roster) {
	t.Helper()
	hs, roster := make([]*Host, n), Roster{}
	for i := range hs {
		hs[i] = listen(t, transport)
		roster.Members = append(roster.Members, Member{Name: fmt.Sprintf("site-%d", i), ID: hs[i].ID(), Addrs: hs[i].Addrs()})
	}
	return hs, roster
}

// join lets every host join at once, with the hello that it is given.
func join(ctx context.Context, hs []*Host, rosters []Roster, hellos []Hello) ([]*Session, []error) {
	ss, errs := make([]*Session, len(hs)), make([]error, len(hs))
	var all sync.WaitGroup
	for i, h := range hs {
		all.Go(func() { ss[i], errs[i] = h.Join(ctx, rosters[i%len(rosters)], hellos[i%len(hellos)]) })
	}
	all.Wait()
	return ss, errs
}

// sessions opens a session of n hosts.
func sessions(t testing.TB, transport string, n int) []*Session {
	t.Helper()
	hs, roster := hosts(t, transport, n)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ss, errs := join(ctx, hs, []Roster{roster}, []Hello{{Plan: [32]byte{1}}})
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
	return ss
}

func TestConformance(t *testing.T) {
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
