package mobile

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/disk"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/identity"
	"github.com/heddle-gnn/heddle/train"
)

// The states of a device.
const (
	Idle       = "idle"       // it has not been started
	Waiting    = "waiting"    // for the conditions in the plan's phone_when
	Connecting = "connecting" // to the other members
	Training   = "training"   // in a session with the others
	Paused     = "paused"     // by Pause, by the window's end or by an error of the listener; Start goes on
	Failed     = "failed"     // for the reason that OnError received; Start tries again
	Done       = "done"       // the model is final: Predict uses it
	Stopped    = "stopped"    // for good; the last state that a listener receives
)

// stopTime is how long Pause and Stop wait for a run to close its sockets. A slower run closes them later by itself,
// and the next Start waits for it.
const stopTime = 900 * time.Millisecond

// errWindow ends a session whose window is over, errConditions one if the phone is busy.
var (
	errWindow     = errors.New("the window is over")
	errConditions = errors.New("the phone is in use")
	errPaused     = errors.New("paused")
)

// Device is one member of a federation, in an app. Its methods may be called from any thread, and
// from a Listener.
type Device struct {
	config Config
	plan   *heddle.Plan // (nil = none)
	id     identity.Identity

	mu         sync.Mutex
	state      string
	graph      *graph.Graph
	interfaces []netip.Addr
	allowed    func(string) bool // by the last call of Allow
	changed    chan struct{}     // closed when allowed changes
	run        *run              // the latest (nil = none, or its end is known)
}

// run is what goes on between Start and Pause.
type run struct {
	ctx    context.Context
	stop   context.CancelCauseFunc
	ended  chan struct{} // closed when only the delivery of events is left of it
	events *events
}

// NewDevice opens the device whose key is in the store, and makes the key at the first time.
func NewDevice(c *Config, s Store) (*Device, error) {
	if c == nil || s == nil {
		return nil, errors.New("a device needs a configuration and a store")
	}
	p, err := c.read()
	if err != nil {
		return nil, err
	}
	if err := c.update(time.Now()); err != nil {
		return nil, fmt.Errorf("roster: %w", err)
	}
	d := &Device{config: *c, plan: p, state: Idle, interfaces: c.interfaces, changed: make(chan struct{}),
		allowed: func(string) bool { return false }}
	if d.id, err = c.identity(s); err != nil {
		return nil, err
	}
	return d, nil
}

// ID returns the device's peer ID, as a plan lists it.
func (d *Device) ID() string { return d.id.PeerID() }

// State returns the device's state.
func (d *Device) State() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// SetGraph takes a copy of the graph that the next run trains on. A run that has begun keeps the one
// that it began with, however often it is paused; a leaf keeps none, and is given it in each process.
func (d *Device) SetGraph(g *Graph) error {
	if g == nil {
		return errors.New("the graph must not be null")
	}
	own, err := g.snapshot(d.id.PeerID())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.graph = own
	return nil
}

// SetInterfaces sets the IP addresses of the phone, separated by commas, from the next session on. Android hides them
// from libraries from version 11 on. With an empty text the device asks the system.
func (d *Device) SetInterfaces(text string) error {
	all, err := addresses(text)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.interfaces = all
	return nil
}

// Allow reports what the phone is doing: whether it is charging, whether its network is unmetered, and
// whether nobody uses it. While this is less than the plan's phone_when the device waits, without a
// connection and without timers. Before the first call nothing is allowed.
func (d *Device) Allow(charging, unmetered, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.allowed = func(what string) bool {
		switch what {
		case "charging":
			return charging
		case "unmetered":
			return unmetered
		}
		return idle
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// mayRun reports whether the plan lets the device take part now, and a channel that is closed when
// the answer may change.
func (d *Device) mayRun() (bool, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	may := true
	if d.plan.PhoneWhen != "always" {
		for what := range strings.SplitSeq(d.plan.PhoneWhen, "+") {
			may = may && d.allowed(what)
		}
	}
	return may, d.changed
}

// Start begins the run of the plan, or goes on with it, and returns at once. The listener may be
// null. A run that is done is reported at once as done.
func (d *Device) Start(l Listener) error {
	r, err := d.begin(l)
	if err != nil {
		return err
	}
	go r.events.deliver(func() { r.stop(errPaused) })
	go func() {
		defer close(r.ended)
		defer r.events.close()
		defer r.stop(nil)
		if d.config.window > 0 {
			window := time.AfterFunc(d.config.window, func() { r.stop(errWindow) })
			defer window.Stop()
		}
		d.work(r)
	}()
	return nil
}

// begin makes the next run, once the last one has ended.
func (d *Device) begin(l Listener) (*run, error) {
	if err := d.rest(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == Stopped:
		return nil, errors.New("the device has been stopped: make another one")
	case d.run != nil:
		return nil, errStarted
	case d.plan == nil:
		return nil, errors.New("the device has no plan: Config.SetPlan sets one")
	}
	if _, err := d.plan.Rank(d.id.PeerID()); err != nil && d.plan.ClassMeans.Leaves == 0 {
		return nil, err
	}
	if err := d.admits(time.Now()); err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.place("graph")); d.graph == nil && (d.isLeaf() || err != nil) && !d.done() {
		return nil, errors.New("the device has no graph: SetGraph sets one")
	}
	d.run = &run{ended: make(chan struct{}), events: newEvents(l)}
	d.run.ctx, d.run.stop = context.WithCancelCause(context.Background())
	return d.run, nil
}

// isLeaf reports whether the plan has the device as a leaf.
func (d *Device) isLeaf() bool {
	_, err := d.plan.Rank(d.id.PeerID())
	return err != nil && d.plan.ClassMeans.Leaves > 0
}

var errStarted = errors.New("the device has been started already: pause it first")

// rest returns when the last run, if any, has ended, with the error of its listener.
func (d *Device) rest() error {
	d.mu.Lock()
	last := d.run
	d.mu.Unlock()
	if last == nil {
		return nil
	}
	if last.ctx.Err() == nil {
		return errStarted
	}
	select {
	case <-last.ended:
	case <-time.After(stopTime):
		return errors.New("the last run has not ended yet: try again")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run != last {
		return errStarted
	}
	d.run = nil
	if err := last.events.fault(); err != nil {
		return fmt.Errorf("the listener ended the last run: %w", err)
	}
	return nil
}

// place returns a path in the directory of the run of this plan.
func (d *Device) place(name string) string {
	sum := sha256.Sum256(d.config.plan)
	return filepath.Join(d.config.directory, "run-"+hex.EncodeToString(sum[:8]), name)
}

// done reports whether the run of this plan is.
func (d *Device) done() bool {
	_, err := os.Stat(d.place("done"))
	return err == nil
}

// enter changes the state, unless the device has been stopped, and notifies the listener.
func (d *Device) enter(r *run, state, detail string) {
	d.mu.Lock()
	if d.state == state && detail == "" || d.state == Stopped {
		d.mu.Unlock()
		return
	}
	d.state = state
	d.mu.Unlock()
	r.events.add(listenerEvent{what: isState, text: state, detail: detail})
}

// work takes part in sessions while it may, until the model is final or ctx ends.
func (d *Device) work(r *run) {
	ctx := r.ctx
	if d.done() {
		d.enter(r, Done, "")
		return
	}
	for {
		for {
			may, changed := d.mayRun()
			if may {
				break
			}
			d.enter(r, Waiting, "for "+d.plan.PhoneWhen)
			select {
			case <-ctx.Done():
				d.enter(r, Paused, context.Cause(ctx).Error())
				return
			case <-changed:
			}
		}
		err := d.session(r)
		switch cause := context.Cause(ctx); {
		case err == nil:
			d.enter(r, Done, "")
			return
		case cause != nil:
			d.enter(r, Paused, cause.Error())
			return
		case errors.Is(err, errConditions):
			continue
		}
		r.events.add(listenerEvent{what: isError, text: kindOf(err), detail: err.Error()})
		d.enter(r, Failed, err.Error())
		return
	}
}

// kindOf returns the kind of an error for Listener.OnError.
func kindOf(err error) string {
	var ours *heddle.InputError
	var theirs *comm.PeerError
	switch {
	case errors.As(err, &ours):
		return "input"
	case errors.As(err, &theirs):
		return "peer"
	}
	return "run"
}

// session takes part until the model is final and written, or the conditions are not met any more.
func (d *Device) session(r *run) error {
	d.enter(r, Connecting, "")
	ctx, cancel := context.WithCancelCause(r.ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			may, changed := d.mayRun()
			if !may {
				cancel(errConditions)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	defer watch.Wait()
	defer cancel(nil)
	d.mu.Lock()
	own, at := d.graph, d.interfaces
	d.mu.Unlock()
	limitMemory(own)
	if err := os.MkdirAll(d.place(""), 0o700); err != nil {
		return err
	}
	site := heddle.Site{Identity: d.id, Wait: d.config.wait, Rejoin: d.config.wait, OnModel: d.keep,
		Network: p2p.Network{Listen: d.config.listen, LAN: d.config.lan, Interfaces: at},
		Gate:    gate.Files{Evidence: d.config.evidence}, OnEvent: func(e heddle.Event) { d.heard(r, e) }}
	if d.config.lan && len(site.Network.Listen) == 0 {
		site.Network.Listen = []string{"/ip4/0.0.0.0/udp/0/quic-v1"}
	}
	if _, err := heddle.JoinGraph(ctx, *d.plan, site, own, d.place("")); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return d.finish()
}

// finish marks the run as done. What it needed to go on is removed, and so is what is left of other
// plans.
func (d *Device) finish() error {
	debug.FreeOSMemory() // the next session may be a day away
	if err := os.WriteFile(d.place("done"), nil, 0o600); err != nil {
		return err
	}
	return errors.Join(removeRuns(d.config.directory, filepath.Dir(d.place("done"))), os.RemoveAll(d.place("state")),
		os.RemoveAll(d.place("graph")))
}

// removeRuns removes the runs in a device's directory but one.
func removeRuns(directory, but string) error {
	runs, err := filepath.Glob(filepath.Join(directory, "run-*"))
	errs := []error{err}
	for _, dir := range runs {
		if dir != but {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// model is the file of the model of the last run that was done.
func (d *Device) model() string { return filepath.Join(d.config.directory, "model.safetensors") }

// keep writes a final model, and its logits for own nodes.
func (d *Device) keep(o *heddle.Result) error {
	own := o.Own[0].Logits
	b := binary.LittleEndian.AppendUint32(nil, uint32(own.Cols))
	for i := range own.Rows {
		b = append(b, comm.FloatBytes(own.Row(i))...)
	}
	if err := o.Save(d.model()); err != nil {
		return err
	}
	return disk.WriteFile(disk.OS{}, filepath.Join(d.config.directory, ownNote), 0o600, b)
}

// ownNote is the file of the logits of own nodes: the number of classes, 4 bytes, and rows of float32,
// little endian.
const ownNote = "own"

// heard passes an event on to the listener.
func (d *Device) heard(r *run, e heddle.Event) {
	switch e.Kind {
	case train.Connection:
		if len(e.Members) > 1 {
			d.enter(r, Training, "")
		} else if e.Text != "" {
			d.enter(r, Connecting, e.Text)
		}
	case train.RoundEnd:
		r.events.add(listenerEvent{what: isRound, done: e.Done, total: e.Total, loss: e.ValLoss, metric: e.Val})
		r.events.add(listenerEvent{what: isBytes, sent: e.Sent.Total()})
	case train.Warning:
		d.enter(r, d.State(), e.Text)
	case train.Trace:
		if n := e.Sent.Total(); n > 0 {
			r.events.add(listenerEvent{what: isBytes, sent: n})
		}
	}
}

// Pause ends the session, within a second. What the run has reached is on the disk: Start goes on
// from there, in this process or another.
func (d *Device) Pause() {
	d.mu.Lock()
	r := d.run
	d.mu.Unlock()
	if r == nil {
		return
	}
	r.stop(errPaused)
	select {
	case <-r.ended:
	case <-time.After(stopTime):
	}
}

// Stop ends the session as Pause does, and the device with it.
func (d *Device) Stop() {
	d.mu.Lock()
	r, again := d.run, d.state == Stopped
	d.state = Stopped
	d.mu.Unlock()
	if r != nil && !again {
		r.events.add(listenerEvent{what: isState, text: Stopped})
	}
	d.Pause()
}

// Predictions are a model's predictions for the nodes of a graph.
type Predictions struct{ of heddle.Predictions }

// Predict computes, without any network, predictions of the last model that was done for all nodes of
// a graph, by its features and edges.
func (d *Device) Predict(g *Graph) (*Predictions, error) {
	if g == nil {
		return nil, errors.New("the graph must not be null")
	}
	own, err := g.snapshot(d.id.PeerID())
	if err != nil {
		return nil, err
	}
	m, card, err := d.read()
	if err != nil {
		return nil, err
	}
	all, err := heddle.Predict(m, own)
	if err != nil {
		return nil, err
	}
	return &Predictions{all.By(card)}, nil
}

// Own returns the predictions of the last run that was done for the nodes of the device's own graph,
// in the order in which they were added. They were computed with the rows of neighbours at other
// members, which Predict does not have.
func (d *Device) Own() (*Predictions, error) {
	m, card, err := d.read()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.config.directory, ownNote)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) == 0 || (len(b)-4)%int(4*binary.LittleEndian.Uint32(b)) != 0 {
		return nil, fmt.Errorf("%s must have whole rows (got %d bytes)", path, len(b))
	}
	cols := int(binary.LittleEndian.Uint32(b))
	logits := mat.New((len(b)-4)/(4*cols), cols)
	for k := range logits.Data {
		logits.Data[k] = math.Float32frombits(binary.LittleEndian.Uint32(b[4+4*k:]))
	}
	return &Predictions{heddle.Predictions{Logits: logits}.Of(m).By(card)}, nil
}

// read reads the last model that was done.
func (d *Device) read() (*nn.Model, modelfile.Card, error) {
	m, card, err := modelfile.Read(d.model())
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("the device has no model yet (a run writes one when it ends)")
	}
	return m, card, err
}

// Nodes returns how many nodes the predictions are for.
func (p *Predictions) Nodes() int { return p.of.Logits.Rows }

// ClassOf returns the class predicted for a node.
func (p *Predictions) ClassOf(node int) (int, error) {
	if err := hasNode(node, p.Nodes()); err != nil {
		return 0, err
	}
	return p.of.Classes(node)[0], nil
}

// Probability returns a node's probability of a class, in [0, 1].
func (p *Predictions) Probability(node, class int) (float64, error) {
	if err := hasNode(node, p.Nodes()); err != nil {
		return 0, err
	}
	if class < 0 || class >= p.of.Logits.Cols {
		return 0, fmt.Errorf("a class must be 0 to %d (got %d)", p.of.Logits.Cols-1, class)
	}
	return p.of.Probabilities(node)[class], nil
}
