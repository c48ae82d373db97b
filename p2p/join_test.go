package p2p

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
)

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// each runs a test over both transports.
func each(t *testing.T, run func(t *testing.T, transport string)) {
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			run(t, transport)
		})
	}
}

func frames(t *testing.T, a, b *Session) {
	t.Helper()
	ctx := within(t, 10*time.Second)
	for _, pair := range [][2]*Session{{a, b}, {b, a}} {
		if err := pair[0].Send(ctx, pair[1].Rank(), nil, []byte("warp")); err != nil {
			t.Fatal(err)
		}
		if got, err := pair[1].Recv(ctx, pair[0].Rank()); err != nil || string(got) != "warp" {
			t.Fatalf("received %q, %v", got, err)
		}
	}
}

func TestPortInUse(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		h := listen(t, transport)
		taken, _, _ := strings.Cut(h.Addrs()[0], "/p2p/")
		id, err := NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Listen(Config{Identity: id, Transport: transport, Listen: []string{taken}})
		if err == nil || !strings.Contains(err.Error(), taken) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("second host on %s: %v", taken, err)
		}
	})
}

// A mismatch ends Join on both sides at once, and both say who differs in what.
func TestMismatchIsRefusedOnBothSides(t *testing.T) {
	base := Hello{Plan: [32]byte{1}, Partition: [32]byte{2}}
	plan, partition, generation := base, base, base
	plan.Plan[0]++
	partition.Partition[0]++
	generation.Generation++
	for part, other := range map[string]Hello{"plan": plan, "partition": partition, "generation": generation, "roster": base} {
		t.Run(part, func(t *testing.T) {
			each(t, func(t *testing.T, transport string) {
				hs, roster := hosts(t, transport, 2)
				rosters := []Roster{roster, {Members: append([]Member{}, roster.Members...)}}
				if part == "roster" {
					rosters[1].Members[0].Name = "another name"
				}
				start := time.Now()
				_, errs := join(within(t, 20*time.Second), hs, rosters, []Hello{base, other})
				for i, err := range errs {
					m, ok := errors.AsType[*MismatchError](err)
					if !ok || m.Part != part || m.Rank != 1-i || m.Name != rosters[i].Members[1-i].Name || m.Ours == m.Peer {
						t.Errorf("rank %d: error %v, want one that names peer %d and its %s", i, err, 1-i, part)
					}
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("the refusal took %v: it was found by the deadline, not by the hello", took)
				}
			})
		})
	}
}

// A valid libp2p peer that is in no roster gets no connection that lasts and not one byte, whether or not it is let
// past its own gate; nor does a member dial it.
func TestStrangerIsRefused(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		stranger := listen(t, transport)
		ss, errs := join(within(t, 10*time.Second), hs, []Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, err := hs[0].net.DialPeer(within(t, 5*time.Second), stranger.net.LocalPeer()); err == nil {
			t.Error("a member dialled a peer that is not listed")
		}

		victim := hs[1].net.LocalPeer()
		stranger.gate.admit([]member{{id: victim}})
		for _, s := range hs[1].Addrs() {
			a, _ := peer.SplitAddr(ma.StringCast(s))
			stranger.store.AddAddr(victim, a, peerstore.PermanentAddrTTL)
		}
		for range 3 {
			ctx := network.WithForceDirectDial(within(t, 5*time.Second), "test")
			s, err := stranger.net.NewStream(ctx, victim)
			if err != nil {
				continue // refused already in the handshake
			}
			s.SetDeadline(time.Now().Add(5 * time.Second))
			s.Write([]byte("\x13/multistream/1.0.0\n")) // to which a member would answer
			if n, err := io.ReadFull(s, make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
				t.Errorf("the stranger read %d bytes, %v", n, err)
			}
			s.Reset()
		}
		if c := hs[1].net.ConnsToPeer(stranger.net.LocalPeer()); len(c) > 0 {
			t.Errorf("the stranger has a connection: %v", c)
		}
		frames(t, ss[0], ss[1])
	})
}

// Outside a session a host lets nobody in at all.
func TestHostWithoutSessionIsShut(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		_, err := hs[0].Join(within(t, 300*time.Millisecond), roster, Hello{})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "peer 1 (site-1") || !strings.Contains(err.Error(), "has not joined yet") {
			t.Errorf("join without the other: %v", err)
		}
		if n := len(hs[1].net.Conns()); n > 0 {
			t.Errorf("%d connections on the shut host", n)
		}
	})
}

func TestMissingPeerIsNamed(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		hs[2].Close()
		waited := map[string]error{}
		hs[0].cfg.Waiting = func(name string, since time.Duration, last error) { waited[name] = last }
		_, errs := join(within(t, 1300*time.Millisecond), hs[:2], []Roster{roster}, []Hello{{}})
		for i, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "peer 2 (site-2, "+hs[2].ID()) || strings.Contains(err.Error(), "peer 1 (") || strings.Contains(err.Error(), "peer 0 (") {
				t.Errorf("rank %d: %v, want the deadline and peer 2 alone", i, err)
			}
			if transport == "tcp" && !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("rank %d: %v, want the last cause", i, err)
			}
		}
		if _, ok := waited["site-2"]; !ok || len(waited) != 1 {
			t.Errorf("status named %v, want site-2", waited)
		}
	})
}

// A pair meets whichever side can be dialled, and whichever comes first.
func TestRendezvous(t *testing.T) {
	nowhere := map[string]string{"quic": "/ip4/127.0.0.1/udp/9/quic-v1", "tcp": "/ip4/127.0.0.1/tcp/9", "noise": "/ip4/127.0.0.1/tcp/9",
		"ws": "/ip4/127.0.0.1/tcp/9/ws", "auto": "/ip4/127.0.0.1/tcp/9/wss"}
	for name, change := range map[string]func(m []Member, transport string){
		"both":              func([]Member, string) {},
		"higher dials only": func(m []Member, _ string) { m[1].Addrs = nil },
		"lower dials only":  func(m []Member, _ string) { m[0].Addrs = nil },
		"higher out of reach": func(m []Member, transport string) {
			m[1].Addrs = []string{nowhere[transport]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, transport string) {
				hs, roster := hosts(t, transport, 2)
				change(roster.Members, transport)
				ss, errs := join(within(t, 15*time.Second), hs, []Roster{roster}, []Hello{{}})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				frames(t, ss[0], ss[1])
			})
		})
	}
}

func TestLateJoinerAndNextGeneration(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		for generation := range uint64(2) {
			late := hs[int(generation)]
			ss := make([]*Session, len(hs))
			var failed atomic.Int32
			done := make(chan struct{})
			for i, h := range hs {
				go func() {
					if h == late {
						time.Sleep(150 * time.Millisecond)
					}
					var err error
					if ss[i], err = h.Join(within(t, 10*time.Second), roster, Hello{Generation: generation}); err != nil {
						t.Errorf("generation %d, rank %d: %v", generation, i, err)
						failed.Add(1)
					}
					done <- struct{}{}
				}()
			}
			for range hs {
				<-done
			}
			if failed.Load() > 0 {
				return
			}
			if _, err := hs[0].Join(within(t, time.Second), roster, Hello{}); err == nil || !strings.Contains(err.Error(), "in a session already") {
				t.Errorf("second Join: %v", err)
			}
			frames(t, ss[0], ss[1])
			frames(t, ss[1], ss[2])
			for _, s := range ss {
				s.Close()
			}
		}
	})
}

// Two processes with one identity: the session has one of them, and the other is told.
func TestSecondPeerOfOneIdentity(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		twin, err := Listen(hs[0].cfg) // port 0: another port
		if err != nil {
			t.Fatal(err)
		}
		defer twin.Close()
		ss, errs := join(within(t, 10*time.Second), hs, []Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, err := twin.Join(within(t, 600*time.Millisecond), roster, Hello{}); err == nil || !strings.Contains(err.Error(), "peer 1 (site-1") {
			t.Errorf("the twin joined: %v", err)
		}
		frames(t, ss[0], ss[1])
	})
}

func TestNotInRoster(t *testing.T) {
	hs, roster := hosts(t, "tcp", 2)
	if _, err := hs[1].Join(within(t, time.Second), Roster{Members: roster.Members[:1]}, Hello{}); err == nil || !strings.Contains(err.Error(), "is not among the 1 members") {
		t.Errorf("join of a peer that is not listed: %v", err)
	}
}

// A member of another version is refused by the name of the protocol.
func TestOtherVersion(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		hs[1].protos.RemoveHandler(sessionProtocol)
		hs[1].protos.AddHandler("/heddle/session/3", nil)
		hs[1].gate.admit([]member{{id: hs[0].net.LocalPeer()}})
		_, err := hs[0].Join(within(t, time.Second), roster, Hello{})
		if err == nil || !strings.Contains(err.Error(), "does not speak /heddle/session/4") || !strings.Contains(err.Error(), "peer 1 (site-1)") {
			t.Errorf("join of another version: %v", err)
		}
	})
}

func TestCloseEndsJoin(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		time.AfterFunc(50*time.Millisecond, func() { hs[0].Close() })
		if _, err := hs[0].Join(within(t, 20*time.Second), roster, Hello{}); !errors.Is(err, errHostClosed) {
			t.Errorf("join on a host that closes: %v", err)
		}
		if _, err := hs[0].Join(within(t, time.Second), roster, Hello{}); !errors.Is(err, errHostClosed) {
			t.Errorf("join on a closed host: %v", err)
		}
	})
}
