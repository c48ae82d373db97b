package p2p

import (
	"net/netip"
	"time"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Config sets how a Host is reached. The zero value of each field but Identity is usable.
type Config struct {
	Identity  identity.Identity // this peer's key; required
	Listen    []string          // multiaddresses to listen on, port 0 for any (empty = this peer only dials out)
	Transport string            // quic, tcp, noise, ws or auto (empty = quic)
	MaxFrame  int               // bytes, largest frame sent or taken; 0 = 64 MiB, at most 1 GiB; equal on all peers
	MaxPeers  int               // largest roster, sizes the limits on connections and memory; 0 = 64, at most 4096

	// PeerTimeout is how long a peer may be silent (power cut, unplugged cable) before it counts as
	// failed; 0 = 10 s, 1 s to 10 min. Keep-alives are sent every half of it: it must be equal on
	// all peers.
	PeerTimeout time.Duration
	MaxRate     int64 // receive rate limit for each member, bytes a second (0 = none)

	// Relays are addresses of the federation's own relays, each with /p2p/ID. They carry the
	// traffic of pairs that cannot connect directly, not even by hole punching.
	Relays []string
	// find members on the local network by mDNS, which shows this peer's ID and addresses to everybody there
	LAN bool

	// Interfaces are the addresses of this machine's network interfaces, if the system does not list them to programs
	// (Android from version 11). If nil, the system is asked.
	Interfaces []netip.Addr

	// Announce are the addresses at which members can reach this host, sent by mDNS and to punch holes (nil = its
	// interfaces').
	Announce []string

	// Host is the program's own, with the key of Identity (nil = a new one). It listens, and is announced, as the
	// program has set it up.
	Host Libp2p
}

// Validate reports all faults at once.
func (c Config) Validate() error { return node.Config(c).Validate() }
