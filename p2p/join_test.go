package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
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

func frames(t *testing.T, a, b *Mesh) {
	t.Helper()
	ctx := within(t, patience)
	for _, pair := range [][2]*Mesh{{a, b}, {b, a}} {
		if err := pair[0].Send(ctx, pair[1].Rank(), nil, []byte("warp")); err != nil {
			t.Fatal(err)
		}
		if got, err := pair[1].Recv(ctx, pair[0].Rank()); err != nil || string(got) != "warp" {
			t.Fatalf("received %q, %v", got, err)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		h := listen(t, transport)
		taken, _, _ := strings.Cut(h.Addrs()[0], "/p2p/")
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Listen(Config{Identity: id, Transport: transport, Listen: []string{taken}})
		if err == nil || !strings.Contains(err.Error(), taken) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("second host on %s: %v", taken, err)
		}
	})
}

// A mismatch ends Join on both sides at once, and both errors name who differs in what.
func TestMismatchIsRefusedOnBothSides(t *testing.T) {
	base := Hello{Plan: [32]byte{1}, Partition: [32]byte{2}}
	plan, partition, generation := base, base, base
	plan.Plan[0]++
	partition.Partition[0]++
	generation.Generation++
	for part, other := range map[string]Hello{"plan": plan, "partition": partition, "generation": generation,
		"roster": base} {
		t.Run(part, func(t *testing.T) {
			each(t, func(t *testing.T, transport string) {
				hs, roster := hosts(t, transport, 2)
				rosters := []identity.Roster{roster, {Members: append([]identity.Member{}, roster.Members...)}}
				if part == "roster" {
					rosters[1].Members[0].Name = "another name"
				}
				_, errs := join(within(t, patience), hs, rosters, []Hello{base, other})
				for i, err := range errs {
					m, ok := errors.AsType[*MemberMismatchError](err)
					if !ok || m.Part != part || m.Rank != 1-i || m.Name != rosters[i].Members[1-i].Name ||
						m.Ours == m.Peer {
						t.Errorf("rank %d: error %v, must be one that names peer %d and its %s", i, err, 1-i, part)
					}
				}
			})
		})
	}
}

// A valid libp2p peer that is in no roster gets no lasting connection and not one byte, whether or not its own gate
// admits it; nor does a member dial it.
func TestStrangerIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		stranger := listen(t, transport)
		ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, err := hs[0].node.Network().DialPeer(within(t, patience), stranger.node.ID()); err == nil {
			t.Error("a member dialled a peer that is not listed")
		}

		victim := hs[1].node.ID()
		stranger.node.Admit([]node.Peer{{ID: victim, Addrs: hs[1].node.(*node.Node).Addrs()}})
		for range 3 {
			ctx := network.WithForceDirectDial(within(t, patience), "test")
			s, err := stranger.node.Network().NewStream(ctx, victim)
			if err != nil {
				continue // refused already in the handshake
			}
			s.SetDeadline(time.Now().Add(patience))
			s.Write([]byte("\x13/multistream/1.0.0\n")) // to which a member would answer
			if n, err := io.ReadFull(s, make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
				t.Errorf("the stranger read %d bytes, %v", n, err)
			}
			s.Reset()
		}
		if c := hs[1].node.Network().ConnsToPeer(stranger.node.ID()); len(c) > 0 {
			t.Errorf("the stranger has a connection: %v", c)
		}
		frames(t, ss[0], ss[1])
	})
}

// joinUntil joins until Waiting reports what done waits for, and returns Join's error.
func joinUntil(t *testing.T, h *Host, roster identity.Roster, done func(name string, last error) bool) error {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	h.Waiting = func(missing []Missing, _ time.Duration) {
		for _, m := range missing {
			if done(roster.Members[m.Rank].Name, m.Last) {
				cancel()
			}
		}
	}
	_, err := h.Join(ctx, roster, Hello{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it never came about: %v", err)
	}
	return err
}

// Outside a session a host lets nobody in at all.
func TestHostWithoutSessionIsShut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		shut := func(last error) bool { return last != nil && strings.Contains(last.Error(), "has not joined yet") }
		err := joinUntil(t, hs[0], roster, func(_ string, last error) bool { return shut(last) })
		if !shut(err) || !strings.Contains(err.Error(), "peer 1 (site-1") {
			t.Errorf("join without the other: %v", err)
		}
		if n := len(hs[1].node.Network().Conns()); n > 0 {
			t.Errorf("%d connections on the shut host", n)
		}
	})
}

// nowhere are addresses at which nobody listens.
var nowhere = map[string]string{"quic": "/ip4/127.0.0.1/udp/9/quic-v1", "tcp": "/ip4/127.0.0.1/tcp/9"}

// A peer that waits for a member learns its name, and why it was not reached.
func TestMissingPeerIsNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		for rank := range 2 { // in separate sessions: a member that gives up first is missing, too
			hs, roster := hosts(t, transport, 3)
			roster.Members[2].Addrs = []string{nowhere[transport]}
			t.Run(fmt.Sprint("rank ", rank), func(t *testing.T) {
				t.Parallel()
				hs[2].Close()
				other := make(chan error, 1)
				ctx, cancel := context.WithCancel(within(t, patience))
				go func() {
					_, err := hs[1-rank].Join(ctx, roster, Hello{})
					other <- err
				}()
				err := joinUntil(t, hs[rank], roster, func(name string, last error) bool {
					joining, _ := hs[rank].state()
					joining.mu.Lock()
					defer joining.mu.Unlock()
					return name == "site-2" && last != nil && joining.assembly.met() == 2
				})
				cancel()
				<-other
				if !strings.Contains(err.Error(), "peer 2 (site-2, "+hs[2].ID()) ||
					strings.Contains(err.Error(), "peer 1 (") || strings.Contains(err.Error(), "peer 0 (") {
					t.Errorf("rank %d: %v, must name peer 2 alone", rank, err)
				}
				if transport == "tcp" && !strings.Contains(err.Error(), "connection refused") {
					t.Errorf("rank %d: %v, must have the last cause", rank, err)
				}
			})
		}
	})
}

// A pair meets whichever side can be dialled, and whichever comes first.
func TestRendezvous(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m []identity.Member, transport string){
		"both":              func([]identity.Member, string) {},
		"higher dials only": func(m []identity.Member, _ string) { m[1].Addrs = nil },
		"lower dials only":  func(m []identity.Member, _ string) { m[0].Addrs = nil },
		"higher out of reach": func(m []identity.Member, transport string) {
			m[1].Addrs = []string{nowhere[transport]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, transport string) {
				hs, roster := hosts(t, transport, 2)
				change(roster.Members, transport)
				ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				frames(t, ss[0], ss[1])
			})
		})
	}
}

func TestLateJoinerAndNextGeneration(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 3)
		for generation := range uint64(2) {
			late := hs[int(generation)]
			ss := make([]*Mesh, len(hs))
			var failed atomic.Int32
			done := make(chan struct{})
			for i, h := range hs {
				go func() {
					if h == late {
						time.Sleep(150 * time.Millisecond)
					}
					var err error
					if ss[i], err = h.Join(within(t, patience), roster, Hello{Generation: generation}); err != nil {
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
			if _, err := hs[0].Join(within(t, patience), roster, Hello{}); err == nil ||
				!strings.Contains(err.Error(), "in a session already") {
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

// Two processes with one identity: the session has one of them, and the other gets an error.
func TestSecondPeerOfOneIdentity(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		twin, err := Listen(Config(hs[0].cfg)) // port 0: another port
		if err != nil {
			t.Fatal(err)
		}
		defer twin.Close()
		ss, errs := join(within(t, patience), hs, []identity.Roster{roster}, []Hello{{}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if _, err := twin.Join(within(t, 600*time.Millisecond), roster, Hello{}); err == nil ||
			!strings.Contains(err.Error(), "peer 1 (site-1") {
			t.Errorf("the twin joined: %v", err)
		}
		frames(t, ss[0], ss[1])
	})
}

func TestNotInRoster(t *testing.T) {
	hs, roster := hosts(t, "tcp", 2)
	if _, err := hs[1].Join(within(t, patience), identity.Roster{Members: roster.Members[:1]}, Hello{}); err == nil ||
		!strings.Contains(err.Error(), "is not among the 1 members") {
		t.Errorf("join of a peer that is not listed: %v", err)
	}
}

// Both sides of two versions name both, at once.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		hs[1].node.(*node.Node).RemoveStreamHandler(sessionProtocol)
		hs[1].node.SetStreamHandler("/heddle/session/4", func(s network.Stream) {
			s.Read(make([]byte, 1)) // a hello
			s.Reset()
		})
		older := make(chan error, 1)
		go func() {
			withoutAddress := identity.Roster{Members: slices.Clone(roster.Members)}
			withoutAddress.Members[0].Addrs = nil // it does not dial a version that it does not speak
			_, err := hs[1].Join(within(t, patience), withoutAddress, Hello{})
			older <- err
		}()
		begun := time.Now()
		_, err := hs[0].Join(within(t, patience), roster, Hello{})
		const here = "peer 1 (site-1) speaks /heddle/session/4, ours is /heddle/session/5: upgrade"
		if err == nil || !strings.Contains(err.Error(), here) {
			t.Errorf("join of another version: %v, must have %q", err, here)
		}
		const there = "peer 0 (site-0) speaks /heddle/session/5, ours is /heddle/session/4: upgrade"
		if err := <-older; err == nil || !strings.Contains(err.Error(), there) {
			t.Errorf("join of the older version: %v, must have %q", err, there)
		}
		if took := time.Since(begun); took > patience/2 {
			t.Errorf("both must end at once (took %s)", took)
		}
	})
}

func TestCloseEndsJoin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, transport string) {
		hs, roster := hosts(t, transport, 2)
		time.AfterFunc(50*time.Millisecond, func() { hs[0].Close() })
		if _, err := hs[0].Join(within(t, patience), roster, Hello{}); !errors.Is(err, errHostClosed) {
			t.Errorf("join on a host that closes: %v", err)
		}
		if _, err := hs[0].Join(within(t, patience), roster, Hello{}); !errors.Is(err, errHostClosed) {
			t.Errorf("join on a closed host: %v", err)
		}
	})
}
