package mobile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/internal/testenv"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// sites are two that collect shares of phones which nobody lists.
type sites struct {
	plan   []byte
	parsed heddle.Plan
	keys   []identity.Identity
	phones gate.Phones
	stores map[string]*memory // by directory of a phone, as a key outlives its process

	dies  string       // event at which the first site is killed, and begun again as in another process (empty = never)
	first atomic.Int32 // how often a site collected the first sum
	lives atomic.Int32 // how often a site was begun
}

// newSites makes a plan for several leaves, whose sums wait for all of them. settings are further experimental ones.
func newSites(t *testing.T, phones int, settings string) *sites {
	t.Helper()
	s := &sites{stores: map[string]*memory{},
		phones: gate.Phones{Stay: patience, Cohorts: []gate.Cohort{{Name: "phones", Most: phones + 2, Rate: 100}},
			Attest: invited}}
	text := fmt.Sprintf("phone_when: always\nclass_means: {phones: %d, experimental: {class_rounds: 2, least_leaves: "+
		"2%s}}\nmembers:\n", phones, settings)
	ports := testenv.FreePorts(t, 4)
	for r := range 2 {
		id, err := identity.New()
		if err != nil {
			t.Fatal(err)
		}
		s.keys = append(s.keys, id)
		text += fmt.Sprintf("- {name: site-%d, id: %s, addresses: [%s], leaf_addresses: [%s]}\n", r, id.PeerID(),
			onPort(ports+2*r), onPort(ports+2*r+1))
	}
	p, err := heddle.ReadPlan([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.plan, s.parsed = []byte(text), *p
	return s
}

// onPort is an address on this machine.
func onPort(port int) string { return fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", port) }

// invited admits phones that show an invitation.
func invited(_ context.Context, _ [16]byte, evidence []byte) (gate.Admission, error) {
	if string(evidence) != "invited" {
		return gate.Admission{}, errors.New("no invitation")
	}
	return gate.Admission{Cohort: "phones"}, nil
}

// train runs both sites in the background, and returns what they end with.
func (s *sites) train(t *testing.T) (models func() []*nn.Model) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	results, errs := make([]*nn.Model, 2), make([]error, 2)
	for r, id := range s.keys {
		g, err := contacts(t, uint64(50+r), 200).snapshot("")
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.IDs {
			g.IDs[i] = fmt.Sprintf("%s of site %d", g.IDs[i], r)
		}
		dir := t.TempDir()
		site := heddle.Site{Identity: id, Wait: patience, Rejoin: patience,
			Phones: &s.phones}
		all.Go(func() {
			process, kill := context.WithCancel(ctx)
			defer kill()
			site.OnEvent = func(e heddle.Event) {
				if strings.HasPrefix(e.Text, "sum 1:") {
					s.first.Add(1)
				}
				if r == 0 && s.dies != "" && strings.HasPrefix(e.Text, s.dies) {
					kill()
				}
			}
			s.lives.Add(1)
			o, err := heddle.JoinGraph(process, s.parsed, site, g, dir)
			if process.Err() != nil && ctx.Err() == nil {
				s.lives.Add(1)
				o, err = heddle.JoinGraph(ctx, s.parsed, site, nil, dir)
			}
			if errs[r] = err; err == nil {
				results[r] = o.Model
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return func() []*nn.Model {
		t.Helper()
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return results
	}
}

// phone opens a device that keeps its runs in dir.
func (s *sites) phone(t *testing.T, dir, evidence string) *Device {
	t.Helper()
	return s.device(t, dir, evidence, contacts(t, 7, 60))
}

// device opens one that has a graph.
func (s *sites) device(t *testing.T, dir, evidence string, g *Graph) *Device {
	t.Helper()
	c := NewConfig(dir)
	c.SetPlan(s.plan)
	c.SetWait(int(patience / time.Second))
	c.SetEvidence([]byte(evidence))
	if s.stores[dir] == nil {
		s.stores[dir] = &memory{}
	}
	d, err := NewDevice(c, s.stores[dir])
	if err == nil {
		err = d.SetGraph(g)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

// TestLeaves: phones that no plan lists end with the model of the sites. A phone that is killed while it waits goes on
// in another process, and the model has the bits of a run without that. One without an invitation is turned away.
func TestLeaves(t *testing.T) {
	t.Parallel()
	var want []float32
	seen, err := contacts(t, 9, 50).snapshot("")
	if err != nil {
		t.Fatal(err)
	}
	for _, kill := range []bool{false, true} {
		s := newSites(t, 2, "")
		models := s.train(t)
		dirs := []string{t.TempDir(), t.TempDir()}
		first, told := s.phone(t, dirs[0], "invited"), newWatcher()
		if err := first.Start(told); err != nil {
			t.Fatal(err)
		}
		if kill {
			robot, refused := s.phone(t, t.TempDir(), "robot"), newWatcher()
			if err := robot.Start(refused); err != nil {
				t.Fatal(err)
			}
			if refused.until(t, Done, Failed); !strings.Contains(fmt.Sprint(refused.faults), "no invitation") {
				t.Errorf("a robot failed with %v, must be for want of an invitation", refused.faults)
			}
			for begun := time.Now(); told.bytes() == 0; time.Sleep(time.Millisecond) {
				if time.Since(begun) > patience {
					t.Fatalf("no share was sent: %v", told.faults)
				}
			}
			first.Stop() // before its first sum has closed, for which the other is needed
			first, told = s.phone(t, dirs[0], "invited"), newWatcher()
			if err := first.Start(told); err != nil {
				t.Fatal(err)
			}
		}
		second, heard := s.phone(t, dirs[1], "invited"), newWatcher()
		if err := second.Start(heard); err != nil {
			t.Fatal(err)
		}
		for _, w := range []*watcher{told, heard} {
			if w.until(t, Done, Failed) == Failed {
				t.Fatalf("a phone failed: %v", w.faults)
			}
		}
		want = sameBits(t, append(models(), modelsOf(t, first, second)...), seen, want, fmt.Sprintf("a kill: %v", kill))
	}
}

// modelsOf returns the models that devices have written.
func modelsOf(t *testing.T, devices ...*Device) (all []*nn.Model) {
	t.Helper()
	for _, d := range devices {
		m, _, err := modelfile.Read(d.model())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// sameBits fails if logits of a model on g differ from want, or from the first if want is nil, and returns them.
func sameBits(t *testing.T, models []*nn.Model, g *graph.Graph, want []float32, with string) []float32 {
	t.Helper()
	for k, m := range models {
		logits, err := infer.Graph(m, g)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = logits.Data
		}
		if !slices.Equal(logits.Data, want) {
			t.Errorf("model %d with %s has other bits than the first, must have the same", k, with)
		}
	}
	return want
}

// TestSiteResumes: a site that is killed while it collects, and begun again, replays the sums that it kept, and
// continues the run: all end with the bits of a run in which nobody failed.
func TestSiteResumes(t *testing.T) {
	t.Parallel()
	var want []float32
	seen, err := contacts(t, 9, 50).snapshot("")
	if err != nil {
		t.Fatal(err)
	}
	for _, dies := range []string{"", "sum 6:"} {
		s := newSites(t, 2, "")
		s.dies = dies
		models := s.train(t)
		var told []*watcher
		var all []*Device
		for range 2 {
			d, w := s.phone(t, t.TempDir(), "invited"), newWatcher()
			if err := d.Start(w); err != nil {
				t.Fatal(err)
			}
			told, all = append(told, w), append(all, d)
		}
		for _, w := range told {
			if w.until(t, Done, Failed) == Failed {
				t.Fatalf("a phone failed: %v", w.faults)
			}
		}
		of := models()
		if n, lives := s.first.Load(), s.lives.Load(); n != 2 || (lives == 3) != (dies != "") {
			t.Errorf("%d sites collected the first sum in %d lives (killed at %q), must be 2 in one more "+
				"life after a kill", n, lives, dies)
		}
		want = sameBits(t, append(of, modelsOf(t, all...)...), seen, want, fmt.Sprintf("a site killed at %q", dies))
	}
}

// TestOneNode: phones are one node each of the graph of two sites. All of them have the same features, so the
// predictions of Device.Own can only come from their neighbours. A phone whose node another one has is turned away.
func TestOneNode(t *testing.T) {
	t.Parallel()
	const phones = 6
	s := newSites(t, phones, ", leaf_edges: true")
	var edges [][2]string
	for p := range phones {
		me := fmt.Sprint("phone ", p)
		if p > 1 {
			edges = append(edges, [2]string{me, fmt.Sprint("phone ", p-2)})
		}
		for k := range 3 { // one of both sites' own nodes, of the phone's group
			edges = append(edges, [2]string{me, fmt.Sprintf("person %d of site %d", 10*p+20*k+p%2, k%2)})
		}
	}
	s.phones.Edges = edges
	s.phones.Attest = func(_ context.Context, _ [16]byte, evidence []byte) (gate.Admission, error) {
		return gate.Admission{Cohort: "phones", Nodes: []string{"phone " + string(evidence)}}, nil
	}
	models := s.train(t)
	node := func() *Graph {
		g, err := NewGraph(4, 2)
		if err == nil {
			_, err = g.AddNode("me")
		}
		if err == nil {
			err = g.SetFeature(0, 2, 0.1)
		}
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	var all []*Device
	var told []*watcher
	for p := range phones {
		all, told = append(all, s.device(t, t.TempDir(), fmt.Sprint(p), node())), append(told, newWatcher())
		if err := all[p].Start(told[p]); err != nil {
			t.Fatal(err)
		}
		if p > 0 {
			continue
		}
		for begun := time.Now(); told[0].bytes() == 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > patience {
				t.Fatalf("no share was sent: %v", told[0].faults)
			}
		}
		twin, refused := s.device(t, t.TempDir(), "0", node()), newWatcher()
		if err := twin.Start(refused); err != nil {
			t.Fatal(err)
		}
		if refused.until(t, Done, Failed); !strings.Contains(fmt.Sprint(refused.faults), "is another member's") {
			t.Errorf("the twin of a phone failed with %v, must be for its node", refused.faults)
		}
	}
	for p, w := range told {
		if w.until(t, Done, Failed) == Failed {
			t.Fatalf("phone %d failed: %v", p, w.faults)
		}
		own, err := all[p].Own()
		if err != nil {
			t.Fatal(err)
		}
		if class, err := own.ClassOf(0); err != nil || class != p%2 || own.Nodes() != 1 {
			t.Errorf("phone %d of %d nodes is of class %d (%v), must be one of class %d", p, own.Nodes(), class, err,
				p%2)
		}
		if w.bytes() > 10_000 {
			t.Errorf("phone %d sent %d bytes, must be a few thousand", p, w.bytes())
		}
	}
	models()
}

func (w *watcher) bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}
