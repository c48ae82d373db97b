package node

import (
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
)

// lanService is the name under which peers announce themselves by mDNS (RFC 6762).
const lanService = "_heddle._udp"

// lan remembers who announced itself on the local network.
type lan struct {
	store peerstore.Peerstore
	mdns.Service

	mu    sync.Mutex
	found map[peer.ID]peer.AddrInfo
}

// maxFound bounds what announcements may cost: anybody on the local network can send them.
const maxFound = 4 * MostPeers

func (n *Node) searchLAN() error {
	n.lan = &lan{store: n.store, found: map[peer.ID]peer.AddrInfo{}}
	n.lan.Service = mdns.NewMdnsService(n, lanService, n.lan)
	return n.lan.Start()
}

// HandlePeerFound implements mdns.Notifee. An announcement proves nothing: the handshake does.
func (l *lan) HandlePeerFound(p peer.AddrInfo) {
	if len(p.Addrs) > maxConfigured {
		p.Addrs = p.Addrs[:maxConfigured]
	}
	l.mu.Lock()
	if _, again := l.found[p.ID]; again || len(l.found) < maxFound {
		l.found[p.ID] = p
	}
	l.mu.Unlock()
}

// maxConfigured bounds the addresses that are tried of one peer.
const maxConfigured = 16

// place adds what is known of p to the addresses that are dialled.
func (l *lan) place(p peer.ID) {
	l.mu.Lock()
	at := slices.Clone(l.found[p].Addrs)
	l.mu.Unlock()
	l.store.AddAddrs(p, at, peerstore.TempAddrTTL)
}
