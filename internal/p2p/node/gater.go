package node

import (
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/time/rate"
)

var errTooMany = errors.New("too many connection attempts")

// gater admits connections from and to the members of the session, and to the relays; without a
// session, none. Strangers share a limit on handshakes that does not count against members.
type gater struct {
	relays map[peer.ID]bool // set before the network starts
	peers  int              // MaxPeers
	guests bool             // anybody may connect who proves a key
	opens  *rate.Limiter    // of the streams of all of them

	mu        sync.RWMutex
	members   map[peer.ID]*rate.Limiter // of the streams that each opens
	size      int                       // of the roster
	revoked   map[peer.ID]error         // for as long as the host lives
	addresses map[string]*rate.Limiter  // of the connections from each address at which a member is known
	strangers *rate.Limiter             // of all others
	closing   bool                      // nothing is dialled any more
	dialled   time.Time                 // when an address was last allowed to be dialled
}

func newGater(peers int, relays []peer.AddrInfo) *gater {
	g := &gater{peers: peers, relays: map[peer.ID]bool{}, revoked: map[peer.ID]error{},
		strangers: rate.NewLimiter(strangersRate, strangersBurst)}
	for _, r := range relays {
		g.relays[r.ID] = true
	}
	g.admit(nil)
	return g
}

// invite lets guests in, from now on.
func (g *gater) invite() {
	g.guests, g.opens, g.strangers = true, rate.NewLimiter(guestsRate, guestsBurst),
		rate.NewLimiter(guestsRate, guestsBurst)
}

// admit replaces the members.
func (g *gater) admit(members []Peer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members, g.addresses, g.size = make(map[peer.ID]*rate.Limiter, len(members)), map[string]*rate.Limiter{},
		len(members)
	for _, m := range members {
		if g.revoked[m.ID] != nil {
			continue
		}
		g.members[m.ID] = rate.NewLimiter(streamsRate, streamsBurst)
		for _, a := range m.Addrs {
			g.learn(a)
		}
	}
}

// learn notes that a member is at a. The caller has locked mu.
func (g *gater) learn(a ma.Multiaddr) {
	ip := addressOf(a)
	if _, known := g.addresses[ip]; ip != "" && !known && len(g.addresses) < connsPerPeer*g.peers {
		// Peers of a site, and strangers, often share one address: a laboratory, a NAT, a machine.
		g.addresses[ip] = rate.NewLimiter(rate.Limit(strangersRate+2*g.size), strangersBurst+8*g.size)
	}
}

// addressOf is the address that a connection counts under: IPv4 whole, of IPv6 a site's /56.
func addressOf(a ma.Multiaddr) string {
	if kindOf(a) == "relay" {
		return ""
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return ""
	}
	if four := ip.To4(); four != nil {
		return string(four)
	}
	return string(ip[:7])
}

// revoke refuses p for as long as the host lives.
func (g *gater) revoke(p peer.ID, why error) {
	g.mu.Lock()
	g.revoked[p] = why
	delete(g.members, p)
	g.mu.Unlock()
}

// why returns why p was revoked, nil if it was not.
func (g *gater) why(p peer.ID) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.revoked[p]
}

func (g *gater) listed(p peer.ID) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.members[p] != nil
}

// mayOpen reports whether p may open one more stream now.
func (g *gater) mayOpen(p peer.ID) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.relays[p] || g.members[p] != nil && g.members[p].Allow() || g.welcomes(p) && g.opens.Allow()
}

// welcomes reports whether p may connect as a guest. The caller has locked mu.
func (g *gater) welcomes(p peer.ID) bool {
	return g.guests && g.members[p] == nil && g.revoked[p] == nil
}

// knows reports whether a member is known to be at a's address.
func (g *gater) knows(a ma.Multiaddr) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.addresses[addressOf(a)] != nil
}

// asks reports whether the sender at a must show that it receives what is sent there: no member is
// known at a, and the limit on strangers is not used up.
func (g *gater) asks(a ma.Multiaddr) bool {
	return !g.knows(a) && g.strangers.Tokens() >= 1
}

// mayConnect reports whether a connection from a may begin a handshake.
func (g *gater) mayConnect(a ma.Multiaddr) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if len(g.members) == 0 && !g.guests {
		return false
	}
	if l := g.addresses[addressOf(a)]; l != nil {
		return l.Allow()
	}
	return g.strangers.Allow()
}

// InterceptPeerDial refuses to dial a peer that is not listed.
func (g *gater) InterceptPeerDial(p peer.ID) bool { return g.relays[p] || g.listed(p) }

// InterceptAddrDial allows every address of a listed peer: configured, or sent by the peer.
func (g *gater) InterceptAddrDial(p peer.ID, _ ma.Multiaddr) bool {
	may := g.InterceptPeerDial(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if may = may && !g.closing; may {
		g.dialled = time.Now()
	}
	return may
}

// dialSettles is how long libp2p has, once an address is allowed, to look up its transport.
const dialSettles = 20 * time.Millisecond

// close allows no address any more, and returns when those that were have found their transports. libp2p's goroutine
// that dials outlives the call that began it, and panics if the transports are closed under it (libp2p/go-libp2p#1545).
func (g *gater) close() {
	g.mu.Lock()
	g.closing = true
	last := g.dialled
	g.mu.Unlock()
	time.Sleep(time.Until(last.Add(dialSettles)))
}

// InterceptAccept saves the cost of a handshake. QUIC calls mayConnect itself, since this is too
// late there. What comes through a relay has cost the handshake with the relay.
func (g *gater) InterceptAccept(c network.ConnMultiaddrs) bool {
	switch from := c.RemoteMultiaddr(); kindOf(from) {
	case "relay", "quic":
		g.mu.RLock()
		defer g.mu.RUnlock()
		return len(g.members) > 0 || g.guests
	default:
		return g.mayConnect(from)
	}
}

// InterceptSecured refuses a proven identity that is not listed, before any stream exists.
func (g *gater) InterceptSecured(d network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	if g.relays[p] {
		return d == network.DirOutbound
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members[p] == nil {
		return g.welcomes(p) && d == network.DirInbound
	}
	g.learn(c.RemoteMultiaddr())
	return true
}

// InterceptUpgraded looks once more: the list may have changed during the handshake.
func (g *gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	if g.InterceptPeerDial(c.RemotePeer()) {
		return true, 0
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.welcomes(c.RemotePeer()) && c.Stat().Direction == network.DirInbound, 0
}
