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
	defaultTimeout  = 10 * time.Second
	leastTimeout    = time.Second
	mostTimeout     = 10 * time.Minute
)

// Config says how a Host is reached. The zero value of each field but Identity is usable.
type Config struct {
	Identity  Identity // this peer's key; required
	Listen    []string // multiaddresses to listen on, port 0 for any; none: this peer only dials out
	Transport string   // one of Transports; "" = quic
	MaxFrame  int      // bytes, largest frame sent or taken; 0 = 64 MiB, at most 1 GiB; equal on all peers
	MaxPeers  int      // largest roster, sizes the limits on connections and memory; 0 = 64, at most 4096

	// PeerTimeout is how long nothing may come from a peer (power cut, unplugged cable) before it counts as failed; 0 = 10 s,
	// 1 s to 10 min. It must be equal on all peers, since keep-alives are sent every half of it.
	PeerTimeout time.Duration
	MaxRate     int64 // receive rate limit for each member, bytes a second; 0 = none

	// Relays are addresses of the federation's own relays, each with /p2p/ID. They carry the traffic of pairs that cannot
	// connect directly, after an attempt to punch a hole through their NATs.
	Relays []string
	LAN    bool // find members on the local network by mDNS, which shows this peer's ID and addresses to everybody there

	// Waiting, when set, is called about once a second for each member that has not joined yet, with its name, the time since
	// Join began, and the last error in reaching it (nil when there was none). Calls do not overlap.
	Waiting func(name string, since time.Duration, last error)
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.Identity.key == nil {
		errs = append(errs, errors.New("identity must be set"))
	}
	known := slices.Contains(Transports, c.transport())
	if !known {
		errs = append(errs, fmt.Errorf("transport must be one of %s (got %q)", strings.Join(Transports, ", "), c.Transport))
	}
	if c.MaxFrame < 0 || c.MaxFrame > limitMaxFrame {
		errs = append(errs, fmt.Errorf("MaxFrame must be 0 to %d bytes (got %d)", limitMaxFrame, c.MaxFrame))
	}
	if c.MaxPeers < 0 || c.MaxPeers > limitMaxPeers {
		errs = append(errs, fmt.Errorf("MaxPeers must be 0 to %d (got %d)", limitMaxPeers, c.MaxPeers))
	}
	if c.PeerTimeout != 0 && (c.PeerTimeout < leastTimeout || c.PeerTimeout > mostTimeout) {
		errs = append(errs, fmt.Errorf("peer_timeout must be %s to %s (got %s)", leastTimeout, mostTimeout, c.PeerTimeout))
	}
	if c.MaxRate < 0 {
		errs = append(errs, fmt.Errorf("MaxRate must be at least 0 bytes a second (got %d)", c.MaxRate))
	}
	if _, err := c.relays(); err != nil {
		errs = append(errs, err)
	}
	for _, s := range c.Listen {
		switch a, err := ma.NewMultiaddr(s); {
		case err != nil:
			errs = append(errs, fmt.Errorf("Listen: %w", err))
		case known && !c.carries(a):
			errs = append(errs, fmt.Errorf("Listen must be an address of transport %s, as %s (got %s)", c.transport(), c.sample(), s))
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

func (c Config) peerTimeout() time.Duration {
	if c.PeerTimeout == 0 {
		return defaultTimeout
	}
	return c.PeerTimeout
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
			errs = append(errs, fmt.Errorf("relays must be addresses of transport %s that end in /p2p/ID (got %s)", c.transport(), s))
			continue
		}
		addrs = append(addrs, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return peer.AddrInfosFromP2pAddrs(addrs...)
}
