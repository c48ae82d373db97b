package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// leafConfig returns the configuration of a node; one that listens does so on loopback.
func leafConfig(t *testing.T, transport string, listens bool) Config {
	t.Helper()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Identity: id, Transport: transport}
	if listens {
		cfg.Listen = []string{map[string]string{"quic": "/ip4/127.0.0.1/udp/0/quic-v1",
			"tcp": "/ip4/127.0.0.1/tcp/0"}[transport]}
	}
	return cfg
}

// leafFederation is sites that are connected in memory, each with a server for leaves.
type leafFederation struct {
	agreed     leaf.Agreement
	collectors []*leaf.Collector
	servers    []*LeafServer
	roster     identity.Roster
}

// meetLeaves makes a leafFederation whose exchanges close with a given number of leaves. Evidence must be "phone".
func meetLeaves(t *testing.T, transport string, sites, most int) *leafFederation {
	t.Helper()
	f := &leafFederation{agreed: leaf.Agreement{Run: [8]byte{3}, Sites: sites, Least: 2, Most: most}}
	net := netsim.New(sites, netsim.Config{})
	rules := leaf.Rules{Cohorts: []gate.Cohort{{Name: "phone", Most: most}},
		Attest: func(_ context.Context, _ [16]byte, evidence []byte) (gate.Admission, error) {
			if string(evidence) != "phone" {
				return gate.Admission{}, errors.New("no phone")
			}
			return gate.Admission{Cohort: "phone"}, nil
		}}
	for q := range sites {
		g := comm.NewGroup(net.Transport(q), q, sites)
		in, err := leaf.NewIntake(f.agreed, q, rules)
		if err != nil {
			t.Fatal(err)
		}
		c, err := leaf.NewCollector(f.agreed, g, g, in, in.Quorum(most, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		cfg := leafConfig(t, transport, true)
		s, err := ServeLeaves(cfg, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		f.collectors, f.servers = append(f.collectors, c), append(f.servers, s)
		f.roster.Members = append(f.roster.Members,
			identity.Member{Name: fmt.Sprintf("site %d", q), ID: cfg.Identity.PeerID(), Addrs: s.Addrs()})
	}
	return f
}

func leafPart(member int) *comm.Contribution {
	c := &comm.Contribution{Counts: []int64{int64(member), 1}}
	for i := range 300_000 { // several frames
		c.Update = append(c.Update, float32(member*(i%1000)))
	}
	return c
}

// Leaves that nobody lists contribute over the network; what all compute are the sums of all. One that shows other
// evidence is turned away.
func TestLeafSums(t *testing.T) {
	for _, transport := range []string{"quic", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			const sites, phones = 2, 4
			f := meetLeaves(t, transport, sites, phones)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			total := (sites + phones) * (sites + phones - 1) / 2
			check := func(who int, r comm.Reducer) {
				c := leafPart(who)
				said, err := r.Reduce(ctx, c)
				if err != nil || said.Without || !slices.Equal(c.Counts, []int64{int64(total), sites + phones}) ||
					c.Update[7] != float32(7*total) {
					t.Errorf("member %d: %v, without %v, counts %v", who, err, said.Without, c.Counts)
				}
			}
			for q := range sites {
				all.Go(func() { check(q, f.collectors[q]) })
			}
			for p := range phones {
				all.Go(func() {
					link, err := DialLeaf(ctx, leafConfig(t, transport, false), f.roster)
					if err != nil {
						t.Error(err)
						return
					}
					defer link.Close()
					token := leaf.Token{byte(p)}
					up, _, err := leaf.Dial(ctx, link, f.agreed, token, []byte("phone"), nil)
					if err != nil {
						t.Error(err)
						return
					}
					check(sites+p, &leaf.Contributor{Agreement: f.agreed, Token: token, Uplink: up})
				})
			}
			all.Wait()
			link, err := DialLeaf(ctx, leafConfig(t, transport, false), f.roster)
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			if _, _, err := leaf.Dial(ctx, link, f.agreed, leaf.Token{99}, []byte("robot"), nil); !errors.Is(err,
				leaf.ErrNotAdmitted) || !strings.Contains(err.Error(), "no phone") {
				t.Errorf("a robot must be turned away with the reason (got %v)", err)
			}
		})
	}
}

// A site that closes ends what its leaves wait for, and a leaf whose context ends returns.
func TestLeafEnds(t *testing.T) {
	f := meetLeaves(t, "quic", 2, 3)
	link, err := DialLeaf(t.Context(), leafConfig(t, "quic", false), f.roster)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	token := leaf.Token{1}
	up, _, err := leaf.Dial(t.Context(), link, f.agreed, token, []byte("phone"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() {
		_, err := up.Sums(ctx, 0, 0)
		waits <- err
	}()
	go func() {
		_, err := up.Sums(t.Context(), 1, 0)
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	if err := f.servers[1].Close(); err != nil {
		t.Error(err)
	}
	if fault, ok := errors.AsType[*comm.PeerError](<-waits); !ok || fault.Rank != 1 {
		t.Errorf("a wait for a site that has closed must name site 1 (got %v)", fault)
	}
	for _, c := range f.collectors {
		c.Stop(io.EOF)
	}
}

// What no leaf sends ends its connection, whatever it is.
func TestLeafNonsense(t *testing.T) {
	f := meetLeaves(t, "quic", 2, 3)
	for name, b := range map[string][]byte{
		"too long": binary.LittleEndian.AppendUint32(nil, 1<<31),
		"no frame": {1, 0, 0, 0, 9},
		"no hello": {8, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0},
	} {
		link, err := DialLeaf(t.Context(), leafConfig(t, "quic", false), f.roster)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := link.(*leafStreams).all[0].Write(b); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err := link.Recv(ctx, 0); err == nil || ctx.Err() != nil {
			t.Errorf("%s: the site must end the stream (got %v)", name, err)
		}
		cancel()
		link.Close()
	}
}
