package mobile

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const settings = "experimental: {peer_timeout: 2s}"

// TestCycles: a device that is started and stopped again and again, at any point of connecting, leaves no goroutine, no
// socket and no file open, and each Stop has ended its run soon. HEDDLE_LONG=1 has 1,000 cycles.
func TestCycles(t *testing.T) {
	goroutines := runtime.NumGoroutine()
	f := newFederation(t, settings)
	cycles := 16
	if os.Getenv("HEDDLE_LONG") != "" {
		cycles = 1000
	}
	g := contacts(t, 0, 20)
	var slowest time.Duration
	cycle := func(i int) {
		d := f.device(t, 0)
		if err := d.SetGraph(g); err != nil {
			t.Fatal(err)
		}
		d.Allow(true, true, true)
		if err := d.Start(newWatcher()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i%8) * time.Millisecond)
		begun := time.Now()
		d.Stop()
		slowest = max(slowest, time.Since(begun))
		d.mu.Lock()
		r := d.run
		d.mu.Unlock()
		select {
		case <-r.ended:
		case <-time.After(patience):
			t.Fatal("the run must end after Stop")
		}
	}
	cycle(0)
	files := openFiles(t)
	for i := range cycles {
		cycle(i)
	}
	t.Logf("%d cycles, slowest Stop %v", cycles, slowest)
	f.closeRelay() // it keeps half-open handshakes for seconds
	for begun := time.Now(); runtime.NumGoroutine() > goroutines+5 ||
		openFiles(t) > files; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("%d goroutines and %d files after %d cycles, before %d and %d", runtime.NumGoroutine(),
				openFiles(t), cycles, goroutines, files)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0 // not Linux
	}
	return len(list)
}

// TestStopInAListener: a listener may stop the device that calls it, and receives that state.
func TestStopInAListener(t *testing.T) {
	f := newFederation(t, settings)
	d, w := f.device(t, 0), newWatcher()
	if err := d.SetGraph(contacts(t, 0, 20)); err != nil {
		t.Fatal(err)
	}
	w.when = func(state string) error {
		if state == Waiting {
			d.Stop()
		}
		return nil
	}
	if err := d.Start(w); err != nil {
		t.Fatal(err)
	}
	w.until(t, Stopped)
	if err := d.Start(w); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("a stopped device must not start (got %v)", err)
	}
}

// TestListenerFails: an error of a listener pauses the run, and the next Start returns it, once.
func TestListenerFails(t *testing.T) {
	f := newFederation(t, settings)
	d, w := f.device(t, 0), newWatcher()
	if err := d.SetGraph(contacts(t, 0, 20)); err != nil {
		t.Fatal(err)
	}
	w.when = func(string) error { return errors.New("the screen is gone") }
	if err := d.Start(w); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); d.State() != Paused; time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("the device is %s, must be paused", d.State())
		}
	}
	if err := d.Start(nil); err == nil || !strings.Contains(err.Error(), "the screen is gone") {
		t.Errorf("the next Start must return the listener's error (got %v)", err)
	}
	if err := d.Start(nil); err != nil {
		t.Error(err)
	}
	if err := d.Start(nil); err == nil || !strings.Contains(err.Error(), "pause it first") {
		t.Errorf("a second Start must be refused (got %v)", err)
	}
}

// TestWindow: a device pauses by itself when its window is over, also while it waits.
func TestWindow(t *testing.T) {
	t.Parallel()
	f := newFederation(t, settings)
	c := NewConfig(t.TempDir())
	c.SetPlan(f.plan)
	c.SetWindow(1)
	d, err := NewDevice(c, f.stores[0])
	if err != nil {
		t.Fatal(err)
	}
	defer d.Stop()
	if err := d.SetGraph(contacts(t, 0, 20)); err != nil {
		t.Fatal(err)
	}
	w := newWatcher()
	if err := d.Start(w); err != nil {
		t.Fatal(err)
	}
	w.until(t, Paused)
}

// TestKeyLost: a directory that comes to another phone without its key is not taken for a new device, unless the app
// says so. Then runs of the old one are gone, and its model is not.
func TestKeyLost(t *testing.T) {
	dir, first := t.TempDir(), &memory{}
	old, err := NewDevice(NewConfig(dir), first)
	if err != nil {
		t.Fatal(err)
	}
	run, model := filepath.Join(dir, "run-0"), filepath.Join(dir, "model.safetensors")
	if err := errors.Join(os.Mkdir(run, 0o700), os.WriteFile(model, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	other := &memory{}
	if _, err := NewDevice(NewConfig(t.TempDir()), other); err != nil {
		t.Fatal(err)
	}
	c, store := NewConfig(dir), &memory{}
	for _, s := range []*memory{store, other} {
		if _, err := NewDevice(c, s); err == nil || !strings.HasPrefix(err.Error(), KeyLost) ||
			!strings.Contains(err.Error(), old.ID()) {
			t.Errorf("a lost key must be an error that names the device (got %v)", err)
		}
	}
	if len(store.kept) > 0 {
		t.Error("no key must be made before the app asks for one")
	}
	if again, err := NewDevice(c, first); err != nil || again.ID() != old.ID() {
		t.Errorf("the device must be what it was (got %v)", err)
	}
	c.SetNewKey(true)
	next, err := NewDevice(c, store)
	if err != nil || next.ID() == old.ID() {
		t.Fatalf("the device must have another key (got %v)", err)
	}
	if _, err := os.Stat(run); err == nil {
		t.Error("the runs of the old device must be gone")
	}
	if _, err := os.Stat(model); err != nil {
		t.Error("the model must be kept")
	}
	if again, err := NewDevice(NewConfig(dir), store); err != nil || again.ID() != next.ID() {
		t.Errorf("the new device must stay (got %v)", err)
	}
}

// TestSlowListener: a slow listener delays neither the run nor Stop, and receives all states.
func TestSlowListener(t *testing.T) {
	q := newEvents(newWatcher())
	for range 10 * mostEvents {
		q.add(listenerEvent{what: isRound})
	}
	q.add(listenerEvent{what: isState, text: Done})
	if len(q.list) > mostEvents || q.list[len(q.list)-1].text != Done {
		t.Errorf("%d events wait, the last one of state %q", len(q.list), q.list[len(q.list)-1].text)
	}
	for range 10 * mostEvents {
		q.add(listenerEvent{what: isRound})
	}
	states := 0
	for _, e := range q.list {
		if e.what == isState {
			states++
		}
	}
	if len(q.list) > mostEvents || states != 1 {
		t.Errorf("%d events wait, of which %d are states", len(q.list), states)
	}
}

// TestRefused: an app's mistakes are errors that state what is expected.
func TestRefused(t *testing.T) {
	f := newFederation(t, settings)
	g, err := NewGraph(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	node, err := g.AddNode("a")
	if err != nil {
		t.Fatal(err)
	}
	row := func(x ...float32) (b []byte) {
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	if err := errors.Join(g.SetFeatures(node, row(1, 2)), g.SetLabel(node, 2), g.SetUse(node, "val"),
		g.AddEdge(node, node)); err != nil {
		t.Error(err)
	}
	device := func(change func(*Config), s Store) error {
		c := NewConfig(t.TempDir())
		c.SetPlan(f.plan)
		change(c)
		d, err := NewDevice(c, s)
		if err != nil {
			return err
		}
		defer d.Stop()
		return d.Start(nil)
	}
	stranger := &memory{}
	for _, c := range []struct {
		want string
		err  error
	}{
		{"features must be 1 to 4096", second(NewGraph(0, 2))},
		{"classes must be 2 to 1000", second(NewGraph(2, 1))},
		{`"a" is there already`, second(g.AddNode("a"))},
		{"a node must be 0 to 0 (got 5)", g.AddEdge(0, 5)},
		{"must have 8 bytes", g.SetFeatures(0, row(1))},
		{"must be a finite number", g.SetFeatures(0, row(1, float32(math.NaN())))},
		{"must be a finite number", g.SetFeature(0, 1, math.Inf(1))},
		{"a feature must be 0 to 1", g.SetFeature(0, 2, 1)},
		{"must be −1 to 2", g.SetLabel(0, 3)},
		{"must be train, val, test or none", g.SetUse(0, "training")},
		{"a configuration and a store", second(NewDevice(nil, nil))},
		{"directory must not be empty", device(func(c *Config) { c.directory = "" }, f.stores[0])},
		{"wait must be at least 1", device(func(c *Config) { c.SetWait(0) }, f.stores[0])},
		{"window must be at least 0", device(func(c *Config) { c.SetWindow(-1) }, f.stores[0])},
		{"roundz", device(func(c *Config) { c.SetPlan([]byte("roundz: 3")) }, f.stores[0])},
		{"has no plan", device(func(c *Config) { c.SetPlan(nil) }, f.stores[0])},
		{"has no graph", device(func(*Config) {}, f.stores[0])},
		{"is not among", device(func(*Config) {}, stranger)},
		{"disk", device(func(*Config) {}, brokenStore{})},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("the error must say %q (got %v)", c.want, c.err)
		}
	}
	d := f.device(t, 0)
	if _, err := d.Predict(g); err == nil || !strings.Contains(err.Error(), "has no model yet") {
		t.Errorf("the error is %v, must say that the device has no model yet", err)
	}
	if err := d.SetInterfaces("192.168.1.7/24, fe80::1%wlan0"); err != nil || len(d.interfaces) != 2 {
		t.Errorf("two addresses are %v (%v)", d.interfaces, err)
	}
	if err := d.SetInterfaces("wlan0"); err == nil {
		t.Error("a name is no address")
	}
}

func second[T any](_ T, err error) error { return err }

type brokenStore struct{}

func (brokenStore) Get(string) ([]byte, error) { return nil, nil }
func (brokenStore) Put(string, []byte) error   { return errors.New("the disk is full") }
