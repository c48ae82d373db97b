package heddle_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/rng"
	"github.com/heddle-gnn/heddle/train"
)

// doors returns a plan with a member for each name, which has no address, and their sites.
func doors(t *testing.T, method string, names ...string) (heddle.Plan, []heddle.Site) {
	t.Helper()
	p := heddle.Defaults(method, "")
	if g := p.Gradient(); g != nil {
		g.Rounds = 20
	}
	sites, members := make([]heddle.Site, len(names)), make([]string, len(names))
	for k, name := range names {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		members[k] = name + "=" + id.PeerID()
		sites[k].Identity, sites[k].Wait = id, time.Minute
	}
	if err := p.AddMembers(members, 0); err != nil {
		t.Fatal(err)
	}
	parts, err := heddle.Split(dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: len(names)}, rng.New(1)), p)
	if err != nil {
		t.Fatal(err)
	}
	for k := range sites {
		sites[k].Shard = parts[k]
	}
	return p, sites
}

// joinAll joins as all sites at once.
func joinAll(ctx context.Context, p heddle.Plan, sites []heddle.Site) ([]*heddle.Result, []error) {
	results, errs := make([]*heddle.Result, len(sites)), make([]error, len(sites))
	var all sync.WaitGroup
	for k, s := range sites {
		all.Go(func() { results[k], errs[k] = heddle.Join(ctx, p, s) })
	}
	all.Wait()
	return results, errs
}

// newHost makes a libp2p host, as libp2p.New does with the options for key, QUIC and loopback. That function itself
// would bring the modules of all other transports.
func newHost(key crypto.PrivKey) (host.Host, error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	store, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.AddPrivKey(id, key), store.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, err
	}
	bus := eventbus.NewBus()
	net, err := swarm.NewSwarm(id, store, bus)
	if err != nil {
		return nil, err
	}
	conns, err := quicreuse.NewConnManager(quic.StatelessResetKey{}, quic.TokenGeneratorKey{})
	if err != nil {
		return nil, err
	}
	over, err := libp2pquic.NewTransport(key, conns, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	err = errors.Join(net.AddTransport(over), net.Listen(ma.StringCast("/ip4/127.0.0.1/udp/0/quic-v1")))
	if err != nil {
		return nil, err
	}
	h, err := basichost.NewHost(net, &basichost.HostOpts{EventBus: bus})
	if err != nil {
		return nil, err
	}
	h.Start()
	return &quicHost{h, sync.OnceValue(func() error { return errors.Join(h.Close(), conns.Close()) })}, nil
}

// quicHost is a libp2p host that closes its sockets.
type quicHost struct {
	host.Host
	close func() error
}

func (h *quicHost) Close() error { return h.close() }

// ownHosts gives each site a libp2p host, each with the others in its address book.
func ownHosts(t *testing.T, sites []heddle.Site) (all []host.Host) {
	t.Helper()
	for k := range sites {
		h, err := newHost(sites[k].Identity.Key())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		sites[k].Network.Host, all = h, append(all, h)
	}
	for _, h := range all {
		for _, other := range all {
			if h != other {
				h.Peerstore().AddAddrs(other.ID(), other.Addrs(), peerstore.PermanentAddrTTL)
			}
		}
	}
	return all
}

// goroutinesFall fails unless there are at most to goroutines soon.
func goroutinesFall(t *testing.T, to int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > to && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > to {
		b := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, to, b[:runtime.Stack(b, true)])
	}
}

// TestOwnHost: members whose addresses only the hosts of their programs know train over these hosts, twice, with the
// result of a run in memory. The hosts then have their own protocols, their connections, and no goroutine more.
func TestOwnHost(t *testing.T) {
	p, sites := doors(t, "full-batch", "hill", "port", "mill")
	hosts := ownHosts(t, sites)
	protocols := func(h host.Host) []protocol.ID { return slices.Sorted(slices.Values(h.Mux().Protocols())) }
	before := protocols(hosts[0])
	own := 0
	var first float64
	for run := range 2 {
		results, errs := joinAll(t.Context(), p, sites)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if results[0].Test != results[1].Test || results[0].Test < 0.2 || run > 0 && results[0].Test != first {
			t.Errorf("run %d: accuracies %v, %v, %v", run, first, results[0].Test, results[1].Test)
		}
		if first = results[0].Test; run == 0 { // what libp2p itself starts for the connections stays
			time.Sleep(time.Second)
			own = runtime.NumGoroutine()
		}
		for k, h := range hosts {
			if after := protocols(h); !slices.Equal(after, before) {
				t.Errorf("host %d: protocols %v, before the run %v", k, after, before)
			}
			if n := len(h.Network().Peers()); n != 2 {
				t.Errorf("host %d has %d connections, want 2", k, n)
			}
		}
	}
	goroutinesFall(t, own)
}

// TestOwnHostRefused: a host of another key, one that carries a run already, and a host next to addresses to listen on
// are faults of what was given.
func TestOwnHostRefused(t *testing.T) {
	t.Parallel()
	p, sites := doors(t, "", "hill", "port")
	hosts := ownHosts(t, sites)
	for _, c := range []struct {
		change func(*heddle.Site)
		want   string
	}{
		{func(s *heddle.Site) { s.Network.Host = hosts[1] }, "must have the site's identity"},
		{func(s *heddle.Site) { s.Network.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"} }, "omit the addresses"},
		{func(s *heddle.Site) {
			s.Network.Transport = func(context.Context, int, int) (comm.Transport, error) { return nil, nil }
		}, "omit Host"},
	} {
		s := sites[0]
		c.change(&s)
		_, err := heddle.Join(t.Context(), p, s)
		if _, input := errors.AsType[*heddle.InputError](err); !input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, must be an InputError with %q", err, c.want)
		}
	}
	waiting, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { heddle.Join(waiting, p, sites[0]) })
	for len(hosts[0].Mux().Protocols()) < len(hosts[1].Mux().Protocols())+3 {
		time.Sleep(time.Millisecond)
	}
	if _, err := heddle.Join(t.Context(), p, sites[0]); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run at the same host: %v", err)
	}
	stop()
	all.Wait()
}

// TestOwnHostDies: a member whose host dies in a round is named at the others, as is one that is canceled, which leaves
// within 100 ms: in the best of three runs, since other programs may use the processors.
func TestOwnHostDies(t *testing.T) {
	before, best := runtime.NumGoroutine(), time.Hour
	for _, cancels := range []bool{false, true, true, true} {
		if cancels && best <= 100*time.Millisecond {
			continue
		}
		p, sites := doors(t, "full-batch", "hill", "port", "mill")
		p.Gradient().Rounds = 100_000
		hosts := ownHosts(t, sites)
		ctx, cancel := context.WithCancel(t.Context())
		ends := make([]time.Time, 1)
		var once sync.Once
		sites[0].OnEvent = func(e heddle.Event) {
			if e.Kind == train.RoundEnd && e.Done >= 3 {
				once.Do(func() {
					if ends[0] = time.Now(); cancels {
						cancel()
					} else {
						go hosts[2].Close()
					}
				})
			}
		}
		errs := make([]error, 3)
		var all sync.WaitGroup
		var took time.Duration
		for k, s := range sites {
			all.Go(func() {
				c := t.Context()
				if k == 0 {
					c = ctx
				}
				_, errs[k] = heddle.Join(c, p, s)
				if k == 0 {
					took = time.Since(ends[0])
				}
			})
		}
		all.Wait()
		cancel()
		dead := 2
		if cancels {
			dead = 0
			if best = min(best, took); !errors.Is(errs[0], context.Canceled) {
				t.Errorf("canceled: %v, must end with the context's error", errs[0])
			}
		}
		for k, err := range errs {
			// A host closes its connections one after the other: by the last, its member may report another one lost.
			name := p.Members[dead].Name
			if at, ok := errors.AsType[*heddle.PeerError](err); k != dead && (!ok || at.Name != name &&
				(cancels || !strings.HasSuffix(err.Error(), "("+name+") reports"))) {
				t.Errorf("member %d: %v, must be a PeerError that names %s", k, err, p.Members[dead].Name)
			}
		}
		for _, h := range hosts {
			h.Close()
		}
	}
	if best > 100*time.Millisecond {
		t.Errorf("a canceled member left after %v, must be 100 ms at most", best)
	}
	goroutinesFall(t, before)
}

// inMemory connects sites by transports of one network in this process.
func inMemory(sites []heddle.Site) {
	net := netsim.New(len(sites), netsim.Config{})
	for k := range sites {
		sites[k].Network.Transport = func(_ context.Context, rank, size int) (comm.Transport, error) {
			return net.Transport(rank), nil
		}
	}
}

// TestOwnTransport: over a transport of the program, a member with another plan is named at both, one that does not
// come is missing at the others, and one that cannot take part lets the others go.
func TestOwnTransport(t *testing.T) {
	before := runtime.NumGoroutine()
	p, sites := doors(t, "full-batch", "hill", "port", "mill")
	other := p
	other.Seed++
	inMemory(sites)
	errs := make([]error, 3)
	var all sync.WaitGroup
	for k, q := range []heddle.Plan{p, p, other} {
		all.Go(func() { _, errs[k] = heddle.Join(t.Context(), q, sites[k]) })
	}
	all.Wait()
	for k, want := range []string{"mill", "mill", "hill"} {
		at, ok := errors.AsType[*heddle.PeerError](errs[k])
		if !ok || at.Name != want || !strings.Contains(errs[k].Error(), "plan") {
			t.Errorf("member %d: %v, must be a PeerError that names %s and the plan", k, errs[k], want)
		}
	}

	inMemory(sites)
	for k := range sites {
		sites[k].Wait = 3 * time.Second
	}
	_, two := joinAll(t.Context(), p, sites[:2])
	for k, err := range two {
		late, ok := errors.AsType[*heddle.WaitError](err)
		if !ok || !slices.Equal(late.Missing, []string{"mill"}) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("member %d: %v, must be a WaitError: mill is missing", k, err)
		}
	}

	inMemory(sites)
	for k := range sites {
		sites[k].Wait = time.Minute
	}
	sites[2].Gate.Audit = t.TempDir() // a log is a file
	_, errs = joinAll(t.Context(), p, sites)
	for k, err := range errs[:2] {
		if at, ok := errors.AsType[*heddle.PeerError](err); !ok || at.Name != "mill" {
			t.Errorf("member %d: %v, must be a PeerError: mill cannot take part", k, err)
		}
	}
	if _, ok := errors.AsType[*heddle.InputError](errs[2]); !ok {
		t.Errorf("%v, must be an InputError", errs[2])
	}
	goroutinesFall(t, before)
}

// TestWrongKernels: a wrong HEDDLE_KERNELS is a fault of what was given, for a program that embeds the library, too.
func TestWrongKernels(t *testing.T) {
	if os.Getenv("HEDDLE_KERNELS") == "abacus" {
		p, sites := doors(t, "full-batch", "hill", "port")
		g := dataset.Sites(dataset.SitesConfig{Nodes: 300, Sites: 2}, rng.New(1))
		_, trained := heddle.Train(t.Context(), g, p)
		_, joined := heddle.Join(t.Context(), p, sites[0])
		_, predicted := heddle.Predict(nil, g)
		for _, err := range []error{trained, joined, predicted} {
			_, ok := errors.AsType[*heddle.InputError](err)
			if !ok || !strings.Contains(err.Error(), "HEDDLE_KERNELS") {
				t.Errorf("%v, must be an InputError that names HEDDLE_KERNELS", err)
			}
		}
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrongKernels$")
	c.Env = append(os.Environ(), "HEDDLE_KERNELS=abacus")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
