package p2p

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// Bounds and defaults of Config.
const (
	defaultMaxFrame = 64 << 20
	limitMaxFrame   = 1 << 30
	defaultMaxPeers = 64
	limitMaxPeers   = 4096
	defaultSilence  = 10 * time.Second
	leastSilence    = time.Second
	mostSilence     = 10 * time.Minute
)

// Config says how a Host is reached. The zero value of each field but Identity is usable.
type Config struct {
	Identity  Identity // this peer's key; required
	Listen    []string // multiaddresses to listen on, port 0 for any; none: this peer only dials out
	Transport string   // one of Transports; "" = quic
	MaxFrame  int      // bytes, largest frame sent or taken; 0 = 64 MiB, at most 1 GiB; equal on all peers
	MaxPeers  int      // largest roster, sizes the limits on connections and memory; 0 = 64, at most 4096

	// Silence is how long a peer may say nothing at all (power cut, unplugged cable) before it is lost; 0 = 10 s, 1 s to
	// 10 min; equal on all peers, for it is half of the time between two signs of life, too.
	Silence time.Duration
	MaxRate int64 // bytes a second taken from one member, whatever it sends; 0 = as they come

	// Relays are addresses of the federation's own relays, each with /p2p/ID. They carry what cannot go directly, after
	// an attempt to open a direct way between two peers behind NATs.
	Relays []string
	LAN    bool // find members on the local network by mDNS, which tells everybody there this peer's ID and addresses

	// Waiting, when set, is called about once a second for each member that has not joined yet: its name, how long
	// it has been waited for, and the last error in reaching it (nil when there was none). One call at a time.
	Waiting func(name string, since time.Duration, last error)
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.Identity.key == nil {
		errs = append(errs, errors.New("identity: missing"))
	}
	known := slices.Contains(Transports, c.transport())
	if !known {
		errs = append(errs, fmt.Errorf("transport %q, want one of %s", c.Transport, strings.Join(Transports, ", ")))
	}
	if c.MaxFrame < 0 || c.MaxFrame > limitMaxFrame {
		errs = append(errs, fmt.Errorf("MaxFrame: %d bytes, want 0 to %d", c.MaxFrame, limitMaxFrame))
	}
	if c.MaxPeers < 0 || c.MaxPeers > limitMaxPeers {
		errs = append(errs, fmt.Errorf("MaxPeers: %d, want 0 to %d", c.MaxPeers, limitMaxPeers))
	}
	if c.Silence != 0 && (c.Silence < leastSilence || c.Silence > mostSilence) {
		errs = append(errs, fmt.Errorf("silence: %s, want %s to %s", c.Silence, leastSilence, mostSilence))
	}
	if c.MaxRate < 0 {
		errs = append(errs, fmt.Errorf("rate: MaxRate is %d bytes a second, want 0 or more", c.MaxRate))
	}
	if _, err := c.relays(); err != nil {
		errs = append(errs, err)
	}
	for _, s := range c.Listen {
		switch a, err := ma.NewMultiaddr(s); {
		case err != nil:
			errs = append(errs, fmt.Errorf("Listen: %w", err))
		case known && !c.carries(a):
			errs = append(errs, fmt.Errorf("Listen: %s is no address for transport %s, want one like %s", s, c.transport(), c.sample()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("p2p: config: %w", errors.Join(errs...))
}

func (c Config) transport() string {
	if c.Transport == "" {
		return "quic"
	}
	return c.Transport
}

func (c Config) maxFrame() int {
	if c.MaxFrame == 0 {
		return defaultMaxFrame
	}
	return c.MaxFrame
}

func (c Config) maxPeers() int {
	if c.MaxPeers == 0 {
		return defaultMaxPeers
	}
	return c.MaxPeers
}

func (c Config) silence() time.Duration {
	if c.Silence == 0 {
		return defaultSilence
	}
	return c.Silence
}

// relays parses Relays.
func (c Config) relays() ([]peer.AddrInfo, error) {
	var errs []error
	var addrs []ma.Multiaddr
	for _, s := range c.Relays {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("relays: %w", err))
			continue
		}
		bare, id := peer.SplitAddr(a)
		if id == "" || bare == nil || !c.carries(bare) {
			errs = append(errs, fmt.Errorf("relays: %s, want an address for transport %s that ends in /p2p/ID", s, c.transport()))
			continue
		}
		addrs = append(addrs, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return peer.AddrInfosFromP2pAddrs(addrs...)
}
