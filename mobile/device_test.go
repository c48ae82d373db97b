package mobile

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/rng"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // most tests wait for peers and limits
	testenv.MainWithoutLeaks(m)
}

// patience only guards against hanging.
const patience = time.Minute

// memory is a Store as an app has one.
type memory struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (m *memory) Get(key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[key], nil
}

func (m *memory) Put(key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string][]byte{}
	}
	m.kept[key] = value
	return nil
}

// watcher is a listener that passes on what it receives.
type watcher struct {
	states chan string
	when   func(state string) error // may be nil

	mu     sync.Mutex
	rounds int
	sent   int64
	faults []string
}

func newWatcher() *watcher { return &watcher{states: make(chan string, 1000)} }

func (w *watcher) OnState(state, detail string) error {
	w.states <- state
	if w.when != nil {
		return w.when(state)
	}
	return nil
}

func (w *watcher) OnRound(done, total int, loss, metric float64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds = max(w.rounds, done)
	return nil
}

func (w *watcher) OnBytes(sent int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = max(w.sent, sent)
	return nil
}

func (w *watcher) OnError(kind, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, kind+": "+text)
	return nil
}

// until returns when the listener receives one of the states, which it returns.
func (w *watcher) until(t *testing.T, states ...string) string {
	t.Helper()
	limit := time.After(patience)
	var seen []string
	for {
		select {
		case s := <-w.states:
			seen = append(seen, s)
			for _, want := range states {
				if s == want {
					return s
				}
			}
		case <-limit:
			t.Fatalf("the device never was %v: it was %v, with errors %v", states, seen, w.faults)
		}
	}
}

// federation is two phones, a site and a relay, on loopback.
type federation struct {
	plan   []byte
	parsed heddle.Plan
	stores []*memory
	dirs   []string
	site   heddle.Site
	own    *Graph // of the site

	closeRelay func()
}

func newFederation(t *testing.T, settings string) *federation {
	t.Helper()
	f := &federation{}
	var members []identity.Member
	for range 2 {
		s := &memory{}
		d, err := NewDevice(NewConfig(t.TempDir()), s)
		if err != nil {
			t.Fatal(err)
		}
		f.stores, f.dirs = append(f.stores, s), append(f.dirs, t.TempDir())
		members = append(members, identity.Member{Name: fmt.Sprintf("phone-%d", len(members)), ID: d.ID()})
	}
	id, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	at := onPort(testenv.FreePorts(t, 1))
	members = append(members, identity.Member{Name: "site", ID: id.PeerID(), Addrs: []string{at}})
	relayID, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := node.ListenRelay(node.Config{Identity: relayID, Listen: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}},
		identity.Roster{Members: members}, node.RelayLimits{})
	if err != nil {
		t.Fatal(err)
	}
	f.closeRelay = sync.OnceFunc(func() { relay.Close() })
	t.Cleanup(f.closeRelay)
	text := settings + "\nrelays: [" + strings.Join(relay.Addrs(), ", ") + "]\nmembers:\n"
	for _, m := range members {
		text += fmt.Sprintf("- name: %s\n  id: %s\n  addresses: [%s]\n", m.Name, m.ID, strings.Join(m.Addrs, ", "))
	}
	p, err := heddle.ReadPlan([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.plan, f.parsed = []byte(text), *p
	f.site = heddle.Site{Identity: id, Wait: patience, Rejoin: patience}
	f.own = contacts(t, 2, 400)
	return f
}

// contacts makes a graph of two groups of people, who mostly know their own; features and labels
// follow the group.
func contacts(t *testing.T, seed uint64, n int) *Graph {
	t.Helper()
	g, err := NewGraph(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	key := rng.New(seed)
	for i := range n {
		node, err := g.AddNode(fmt.Sprint("person ", i))
		if err != nil {
			t.Fatal(err)
		}
		group := i % 2
		noise := float64(key.Uint64(uint64(i))%1000)/1000 - 0.5
		err = errors.Join(g.SetFeature(node, group, 1), g.SetFeature(node, 2, noise),
			g.SetFeature(node, 3, float64(group)+3*noise), g.SetLabel(node, group))
		for k := range uint64(3) {
			other := int(key.Fold(k).Uint64(uint64(i)) % uint64(i+1))
			if other%2 != group && k > 0 {
				other = max(other-1, 0)
			}
			if err == nil {
				err = g.AddEdge(node, other)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// device opens phone r, as a new process would.
func (f *federation) device(t *testing.T, r int) *Device {
	t.Helper()
	c := NewConfig(f.dirs[r])
	c.SetPlan(f.plan)
	c.SetWait(int(patience / time.Second))
	d, err := NewDevice(c, f.stores[r])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

// train runs the site in the background.
func (f *federation) train(t *testing.T) (result func() *heddle.Result) {
	t.Helper()
	g, err := f.own.snapshot("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	var r *heddle.Result
	var all sync.WaitGroup
	all.Go(func() { r, err = heddle.JoinGraph(ctx, f.parsed, f.site, g, dir) })
	t.Cleanup(func() { cancel(); all.Wait() })
	return func() *heddle.Result {
		all.Wait()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// run trains with both phones and returns the model. between is called with f and phone 1 until it is done.
func (f *federation) run(t *testing.T, between func(f *federation, d *Device, w *watcher) (*Device, *watcher)) []byte {
	t.Helper()
	result := f.train(t)
	var phones [2]*Device
	var told [2]*watcher
	for r := range phones {
		phones[r], told[r] = f.device(t, r), newWatcher()
		if err := phones[r].SetGraph(contacts(t, uint64(r), 60)); err != nil {
			t.Fatal(err)
		}
		phones[r].Allow(true, true, false)
		if err := phones[r].Start(told[r]); err != nil {
			t.Fatal(err)
		}
	}
	if between != nil {
		phones[1], told[1] = between(f, phones[1], told[1])
	}
	for r, w := range told {
		if w.until(t, Done, Failed) == Failed {
			t.Fatalf("phone %d failed: %v", r, w.faults)
		}
	}
	result()
	var models [2][]byte
	for r, d := range phones {
		var err error
		if models[r], err = os.ReadFile(d.model()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("the phones end with different models")
	}
	return models[0]
}

// TestPausedAndKilled: a phone that pauses, and one whose process ends at any round, end with the bits of a run that
// nobody interrupted, and predict by them.
func TestPausedAndKilled(t *testing.T) {
	t.Parallel()
	const rounds = "method: layer-wise\nlayer_wise: {model: gcn, encoder: pca:2, hidden: 8, rounds: 50}\n" +
		"experimental: {peer_timeout: 2s}"
	f := newFederation(t, rounds)
	want := f.run(t, nil)
	d := f.device(t, 0)
	g := contacts(t, 9, 100)
	all, err := d.Predict(g)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i := range all.Nodes() {
		class, err := all.ClassOf(i)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := all.Probability(i, class); err != nil || p < 0.5 || p > 1 {
			t.Fatalf("node %d: class %d has probability %v (%v)", i, class, p, err)
		}
		if class == i%2 {
			right++
		}
	}
	if right < 80 {
		t.Errorf("%d of 100 nodes are predicted right", right)
	}
	if err := d.Start(nil); err != nil {
		t.Error(err) // it is done already
	}
	for name, between := range map[string]func(f *federation, d *Device, w *watcher) (*Device, *watcher){
		"paused": func(_ *federation, d *Device, w *watcher) (*Device, *watcher) {
			waitFor(t, w, 8)
			d.Pause()
			w.until(t, Paused)
			next := newWatcher()
			if err := d.Start(next); err != nil {
				t.Fatal(err)
			}
			return d, next
		},
		"killed": func(f *federation, d *Device, w *watcher) (*Device, *watcher) {
			waitFor(t, w, 27) // behind the checkpoint of round 20
			d.Stop()          // a process that is killed writes nothing more either: what it has is its checkpoints
			again, next := f.device(t, 1), newWatcher()
			again.Allow(true, true, true)
			if err := again.Start(next); err != nil {
				t.Fatal(err)
			}
			return again, next
		},
		"in use": func(_ *federation, d *Device, w *watcher) (*Device, *watcher) {
			waitFor(t, w, 3)
			d.Allow(true, false, false)
			w.until(t, Waiting)
			d.Allow(true, true, false)
			return d, w
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := newFederation(t, rounds).run(t, between); !bytes.Equal(got, want) {
				t.Error("the model must be that of a run without interruption")
			}
		})
	}
}

// waitFor returns when the listener has received a number of rounds.
func waitFor(t *testing.T, w *watcher, rounds int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		done := w.rounds
		w.mu.Unlock()
		if done >= rounds {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("%d rounds were done, must be %d; errors: %v", done, rounds, w.faults)
		}
	}
}
