// Package mobile is the library that an app on a phone embeds: gomobile makes Java, Kotlin,
// Objective-C and Swift classes of it. A Device takes part in a federation with a small graph of its
// own: as a peer like any other if the plan lists its ID, and else as a leaf if the plan has leaves.
// A leaf sends shares of its numbers to the plan's sites, which admit it by what SetEvidence has, and
// has no connection to other phones.
//
// The app keeps three things: a directory, a Store that guards the device's key, and the plan, from a source that it
// trusts. It reports to the device what the phone is doing (Allow); the plan sets when that suffices (phone_when). A
// run lasts over many windows in which the system lets the app work: Start continues where the last window ended, also
// after the process was killed.
//
//	graph → Device.SetGraph → Start … Pause … Start → Predict
//
// Only types that gobind carries are exported: no slices but []byte, no maps, at most one result and
// an error. No type has the name of the package. A device dials out only, to the relays and
// addresses of the plan.
//
// No Android or iOS kernel has run this package: its tests run on Linux, for amd64 inside a JVM and
// for arm64 under qemu (docs/tutorials/phones.md).
package mobile

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/internal/disclosure"
	"github.com/heddle-gnn/heddle/internal/leaf"
)

// Listener receives what a device does. The library calls its methods one at a time, on its own thread; they may
// call the device. An error (in Java an exception) ends the run as Pause does; the next Start returns it.
type Listener interface {
	// OnState receives each new state, as Device.State returns it, and a sentence for people or an empty text. Each
	// warning repeats the present state.
	OnState(state, detail string) error
	// OnRound is called after a round: done of at most total rounds are over. loss and metric are over the validation
	// labels of all members, or NaN.
	OnRound(done, total int, loss, metric float64) error
	// OnBytes receives the bytes that this device has sent for the run, without headers.
	OnBytes(sent int64) error
	// OnError receives why a run failed: kind is "input" for a fault of plan or graph, "peer" for a fault of another
	// member, else "run".
	OnError(kind, text string) error
}

// Store guards what only this device may read: on Android a file that a key of the Keystore
// encrypts, on iOS the Keychain.
type Store interface {
	// Get returns what Put kept under a key, and nothing (null, or no bytes) if there is none or it can never be read
	// again. It fails if it cannot be read now.
	Get(key string) ([]byte, error)
	// Put returns when the value is on the disk.
	Put(key string, value []byte) error
}

// Config configures how a Device takes part. It may be changed until NewDevice.
type Config struct {
	directory   string
	plan        []byte
	interfaces  []netip.Addr
	listen      []string // (empty, not nil = the device only dials out)
	lan         bool
	evidence    []byte
	roster      []byte
	fingerprint string // of the first roster
	newKey      bool
	window      time.Duration
	wait        time.Duration
}

// Defaults of a Config.
const (
	defaultWindow = 9 * time.Minute // the systems give ten minutes; the last one is for leaving
	defaultWait   = 5 * time.Minute
)

// NewConfig returns the configuration of a device that keeps its runs in directory. No other device or app may use it.
func NewConfig(directory string) *Config {
	return &Config{directory: directory, listen: []string{}, window: defaultWindow, wait: defaultWait}
}

// SetPlan sets the plan file (YAML), the same as at all other members. A device without one can only
// return its ID and predict.
func (c *Config) SetPlan(text []byte) { c.plan = []byte(string(text)) }

// SetLAN makes the device search its local network for other members by mDNS, and listen there: this
// shows its ID and addresses to everybody on it. On Android 11 and later the system refuses what the
// search needs, and Start fails.
func (c *Config) SetLAN(on bool) { c.lan = on }

// SetEvidence sets what a leaf shows the sites to be admitted: an invitation, or the verdict of the platform (Play
// Integrity, App Attest), as their rules ask; at most 64 KiB.
func (c *Config) SetEvidence(evidence []byte) { c.evidence = []byte(string(evidence)) }

// SetListen makes the device listen on a multiaddress, as /ip4/0.0.0.0/udp/4001/quic-v1. With an empty address, the
// default, it only dials out.
func (c *Config) SetListen(address string) {
	c.listen = []string{}
	if address != "" {
		c.listen = []string{address}
	}
}

// SetWindow sets how many seconds after Start the device pauses by itself (0 = never). The default is
// nine minutes, as WorkManager and BGProcessingTask end work after ten.
func (c *Config) SetWindow(seconds int) { c.window = time.Duration(seconds) * time.Second }

// SetWait sets for how many seconds the device waits for other members, at the start and when one
// has failed. The default is five minutes.
func (c *Config) SetWait(seconds int) { c.wait = time.Duration(seconds) * time.Second }

// read returns the plan, nil if there is none, and all faults of c.
func (c *Config) read() (*heddle.Plan, error) {
	var errs []error
	if c.directory == "" {
		errs = append(errs, errors.New("the directory must not be empty"))
	}
	if c.window < 0 {
		errs = append(errs, fmt.Errorf("the window must be at least 0 seconds (got %d)", c.window/time.Second))
	}
	if c.wait <= 0 {
		errs = append(errs, fmt.Errorf("the wait must be at least 1 second (got %d)", c.wait/time.Second))
	}
	if len(c.evidence) > leaf.MostEvidence {
		errs = append(errs, fmt.Errorf("the evidence must have at most %d bytes (got %d)", leaf.MostEvidence,
			len(c.evidence)))
	}
	var p *heddle.Plan
	if len(c.plan) > 0 {
		var err error
		if p, err = heddle.ReadPlan(c.plan, nil, nil); err == nil {
			err = disclosure.CheckMembers(*p)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// addresses reads IP addresses with commas, spaces or lines between; a zone or a length of prefix is
// left out.
func addresses(text string) (all []netip.Addr, err error) {
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		bare, _, _ := strings.Cut(one, "/")
		a, err := netip.ParseAddr(bare)
		if err != nil {
			return nil, fmt.Errorf("interfaces must be IP addresses with commas between (got %q)", one)
		}
		all = append(all, a.WithZone(""))
	}
	return all, nil
}
