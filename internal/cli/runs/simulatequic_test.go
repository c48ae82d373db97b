package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// delayed is a transport whose frames arrive as late as the model says: what it sends by netsim, what it receives here.
type delayed struct {
	comm.Transport
	link netsim.Model
}

func (d delayed) Recv(ctx context.Context, from int) ([]byte, error) {
	b, err := d.Transport.Recv(ctx, from)
	if err == nil {
		busy, flight := d.link.Delivery(len(b), 0)
		time.Sleep(busy + flight)
	}
	return b, err
}

// listens returns the configuration of a node on loopback; one without addresses only dials.
func listens(t *testing.T, at ...string) node.Config {
	t.Helper()
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	return node.Config{Identity: id, Listen: at}
}

// Phones that meet sites over QUIC on loopback, behind slow links, take as long as in the simulation, to a tenth, in
// the median of three runs: members sleep for most of the time, and so a busy machine changes it little.
func TestTimeOverQUIC(t *testing.T) {
	if testing.Short() || os.Getenv("HEDDLE_LONG") == "" {
		t.Skip("SKIPPED: takes half a minute; HEDDLE_LONG=1 runs it")
	}
	const sites, phones, runs = 3, 24, 3
	link := netsim.Model{Latency: 150 * time.Millisecond, Rate: 1e6}
	m := generated(sites, phones, 0.3, 1)
	c, err := (&command{settings: settings{seed: 1}, rounds: 2, hops: 2, target: "labels"}).config(m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := simulate(t.Context(), c, m,
		settings{trace: "always", deadline: time.Hour, quorum: 1, least: 2, participation: 1, seed: 1, links: &link})
	if err != nil {
		t.Fatal(err)
	}
	var took []float64
	for range runs {
		took = append(took, overQUIC(t, c, m, link).Seconds())
	}
	t.Logf("simulated %.3f s, over QUIC %.3f s", o.Seconds, took)
	slices.Sort(took)
	if median := took[runs/2]; math.Abs(o.Seconds-median) > median/10 {
		t.Errorf("simulated time is %.3f s, must be the median, %.3f s, to a tenth", o.Seconds, median)
	}
}

// overQUIC runs the federation of m over QUIC, and returns how long it took once all were connected.
func overQUIC(t *testing.T, c classmeans.Config, m members, link netsim.Model) time.Duration {
	sites, phones := len(m.sites), len(m.phones)
	a := leaf.Agreement{Sites: sites, Least: 2, Most: phones}
	rules := leaf.Rules{Cohorts: []gate.Cohort{{Name: "phones", Most: phones}},
		Attest: func(context.Context, [16]byte, []byte) (gate.Admission, error) {
			return gate.Admission{Cohort: "phones"}, nil
		}}
	net := netsim.New(sites, netsim.Config{Links: netsim.Table{All: link}})
	groups, collectors := make([]*comm.Group, sites), make([]*leaf.Collector, sites)
	var keyed sync.WaitGroup
	for q := range sites {
		keyed.Go(func() {
			groups[q] = comm.NewGroup(net.Transport(q), q, sites)
			masked, err := secagg.New(t.Context(), secagg.KeyTerms{Least: 2}, groups[q])
			in, failed := leaf.NewIntake(a, q, rules)
			if err = errors.Join(err, failed); err == nil {
				collectors[q], err = leaf.NewCollector(a, groups[q], masked, in, in.Quorum(phones, time.Hour))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	keyed.Wait()
	var roster identity.Roster
	for q, s := range collectors {
		cfg := listens(t, "/ip4/127.0.0.1/udp/0/quic-v1")
		server, err := node.ServeLeaves(cfg, s)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		roster.Members = append(roster.Members, identity.Member{Name: fmt.Sprintf("site %d", q),
			ID:    cfg.Identity.PeerID(),
			Addrs: server.Addrs()})
	}
	uplinks := make([]comm.Transport, phones)
	for p := range uplinks {
		quic, err := node.DialLeaf(t.Context(), listens(t), roster)
		if err != nil {
			t.Fatal(err)
		}
		uplinks[p] = delayed{netsim.Over(quic, sites, sites+1, netsim.Table{All: link}, uint64(p)), link}
		defer uplinks[p].Close()
	}
	start := time.Now()
	var run sync.WaitGroup
	for r, s := range append(m.sites[:sites:sites], m.phones...) {
		trainer, err := classmeans.New(c, s)
		if err != nil {
			t.Fatal(err)
		}
		trainer.Leaves = true
		run.Go(func() {
			if r < sites {
				if err := trainer.Run(t.Context(), groups[r], collectors[r]); err != nil {
					t.Error(err)
				}
				return
			}
			who := newPhone(r-sites, s, 1, "always").token
			up, _, err := leaf.Dial(t.Context(), uplinks[r-sites], a, who, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			g := comm.NewGroup(netsim.New(1, netsim.Config{}).Transport(0), 0, 1)
			if err := trainer.Run(t.Context(), g, &leaf.Contributor{Agreement: a, Token: who, Uplink: up}); err != nil {
				t.Error(err)
			}
		})
	}
	run.Wait()
	took := time.Since(start)
	for _, s := range collectors {
		s.Stop(io.EOF)
	}
	return took
}
