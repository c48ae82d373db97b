package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// MostPeers is the largest roster there may be.
const MostPeers = 4096

// Bounds and defaults of Config.
const (
	defaultMaxFrame = 64 << 20
	limitMaxFrame   = 1 << 30
	defaultMaxPeers = 64
	defaultTimeout  = 10 * time.Second
	leastTimeout    = time.Second
	mostTimeout     = 10 * time.Minute
)

// Config sets how a Node is reached: package p2p has the same, with what each field is.
type Config struct {
	Identity    identity.Identity
	Listen      []string
	Transport   string
	MaxFrame    int
	MaxPeers    int
	PeerTimeout time.Duration
	MaxRate     int64
	Relays      []string
	LAN         bool
	Interfaces  []netip.Addr
	Announce    []string
	Host        host.Host
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	c = c.filled()
	var errs []error
	if c.Identity.Key() == nil {
		errs = append(errs, errors.New("identity must be set"))
	}
	known := slices.Contains(transports, c.Transport)
	if !known {
		errs = append(errs, fmt.Errorf("transport must be one of %s (got %q)", strings.Join(transports, ", "),
			c.Transport))
	}
	if c.MaxFrame < 0 || c.MaxFrame > limitMaxFrame {
		errs = append(errs, fmt.Errorf("MaxFrame must be 0 to %d bytes (got %d)", limitMaxFrame, c.MaxFrame))
	}
	if c.MaxPeers < 0 || c.MaxPeers > MostPeers {
		errs = append(errs, fmt.Errorf("MaxPeers must be 0 to %d (got %d)", MostPeers, c.MaxPeers))
	}
	if c.PeerTimeout < leastTimeout || c.PeerTimeout > mostTimeout {
		errs = append(errs, fmt.Errorf("peer_timeout must be %s to %s (got %s)", leastTimeout, mostTimeout,
			c.PeerTimeout))
	}
	if c.MaxRate < 0 {
		errs = append(errs, fmt.Errorf("the limit of what is received must be at least 0 bytes a second (got %d)",
			c.MaxRate))
	}
	if _, err := c.relays(); err != nil {
		errs = append(errs, err)
	}
	if _, err := c.announced(); err != nil {
		errs = append(errs, err)
	}
	if c.Host != nil {
		if c.Host.ID() != c.Identity.ID() {
			errs = append(errs, fmt.Errorf("the libp2p host must have the site's identity %s (got %s)",
				c.Identity.PeerID(), c.Host.ID()))
		}
		if len(c.Listen)+len(c.Announce) > 0 || c.LAN {
			errs = append(errs, errors.New("a libp2p host of the program listens and announces as the program sets it "+
				"up: omit the addresses to listen on and to announce, and LAN"))
		}
	}
	for _, s := range c.Listen {
		switch a, err := ma.NewMultiaddr(s); {
		case err != nil:
			errs = append(errs, fmt.Errorf("an address to listen on must be a multiaddress (got %q): %w", s, err))
		case known && !c.carries(a):
			errs = append(errs, fmt.Errorf("an address to listen on must be one of transport %s, as %s (got %s)",
				c.Transport, c.sample(), s))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("config: %w", errors.Join(errs...))
}

// filled returns c with its defaults.
func (c Config) filled() Config {
	c.Transport = cmp.Or(c.Transport, "quic")
	c.MaxFrame = cmp.Or(c.MaxFrame, defaultMaxFrame)
	c.MaxPeers = cmp.Or(c.MaxPeers, defaultMaxPeers)
	c.PeerTimeout = cmp.Or(c.PeerTimeout, defaultTimeout)
	return c
}

// announced parses Announce.
func (c Config) announced() (all []ma.Multiaddr, err error) {
	for _, s := range c.Announce {
		a, fault := ma.NewMultiaddr(s)
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("an address to announce must be a multiaddress (got %q): %w", s, fault))
			continue
		}
		bare, _ := peer.SplitAddr(a)
		all = append(all, bare)
	}
	return all, err
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
			errs = append(errs, fmt.Errorf("relays must be addresses of transport %s that end in /p2p/ID (got %s)",
				c.Transport, s))
			continue
		}
		addrs = append(addrs, a)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return peer.AddrInfosFromP2pAddrs(addrs...)
}
