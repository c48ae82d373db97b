package p2p

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// gater lets in and out only the members of the current session. Without a session it lets in nobody.
type gater struct {
	mu      sync.RWMutex
	members map[peer.ID]bool
}

func (g *gater) admit(members []member) {
	set := make(map[peer.ID]bool, len(members))
	for _, m := range members {
		set[m.id] = true
	}
	g.mu.Lock()
	g.members = set
	g.mu.Unlock()
}

func (g *gater) listed(p peer.ID) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.members[p]
}

// InterceptPeerDial refuses to dial a peer that is not listed.
func (g *gater) InterceptPeerDial(p peer.ID) bool { return g.listed(p) }

// InterceptAddrDial allows every address: only configured ones are in the peer store.
func (g *gater) InterceptAddrDial(p peer.ID, _ ma.Multiaddr) bool { return g.listed(p) }

// InterceptAccept saves the cost of a handshake while nobody may come in.
func (g *gater) InterceptAccept(network.ConnMultiaddrs) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.members) > 0
}

// InterceptSecured refuses a peer whose proven identity is not listed, before any multiplexer or stream exists.
func (g *gater) InterceptSecured(_ network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	return g.listed(p)
}

// InterceptUpgraded looks once more: the list may have changed during the handshake.
func (g *gater) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	return g.listed(c.RemotePeer()), 0
}
