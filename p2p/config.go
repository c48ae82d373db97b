package p2p

import (
	"errors"
	"fmt"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// Bounds and defaults of Config.
const (
	defaultMaxFrame = 64 << 20
	limitMaxFrame   = 1 << 30
	defaultMaxPeers = 64
	limitMaxPeers   = 4096
)

// Config says how a Host is reached. The zero value of each field but Identity is usable.
type Config struct {
	Identity  Identity // this peer's key; required
	Listen    []string // multiaddresses to listen on, port 0 for any; none: this peer only dials out
	Transport string   // "quic" (default; UDP, TLS 1.3 inside) or "tcp" (TLS 1.3 and yamux)
	MaxFrame  int      // bytes, largest frame sent or taken; 0 = 64 MiB, at most 1 GiB; equal on all peers
	MaxPeers  int      // largest roster, sizes the limits on connections and memory; 0 = 64, at most 4096

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
	known := c.transport() == "quic" || c.transport() == "tcp"
	if !known {
		errs = append(errs, fmt.Errorf("transport %q, want quic or tcp", c.Transport))
	}
	if c.MaxFrame < 0 || c.MaxFrame > limitMaxFrame {
		errs = append(errs, fmt.Errorf("MaxFrame: %d bytes, want 0 to %d", c.MaxFrame, limitMaxFrame))
	}
	if c.MaxPeers < 0 || c.MaxPeers > limitMaxPeers {
		errs = append(errs, fmt.Errorf("MaxPeers: %d, want 0 to %d", c.MaxPeers, limitMaxPeers))
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

func (c Config) sample() string {
	if c.transport() == "tcp" {
		return "/ip4/127.0.0.1/tcp/0"
	}
	return "/ip4/127.0.0.1/udp/0/quic-v1"
}

// carries says whether the chosen transport speaks at address a: /…/tcp/N or /…/udp/N/quic-v1, with or without /p2p/ID.
func (c Config) carries(a ma.Multiaddr) bool {
	var last ma.Component
	ma.ForEach(a, func(p ma.Component) bool {
		if p.Protocol().Code != ma.P_P2P {
			last = p
		}
		return true
	})
	if c.transport() == "tcp" {
		return last.Protocol().Code == ma.P_TCP
	}
	return last.Protocol().Code == ma.P_QUIC_V1
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
