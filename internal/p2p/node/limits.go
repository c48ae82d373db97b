package node

import (
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// What one member may use. A session needs one connection and one stream; the rest is for crossing
// dials, probes, the goodbye, and windows at their full size.
const (
	connsPerPeer   = 8
	memoryPerPeer  = 64 << 20 // next to one frame
	streamsRate    = 32       // streams that one member may open a second,
	streamsBurst   = 64       // and at once
	acceptTime     = HandshakeTime
	strangersRate  = 8   // handshakes a second with addresses at which no member is known, all together:
	strangersBurst = 32  // each costs about a millisecond of one core
	guestsRate     = 100 // connections, and streams, of all guests together a second,
	guestsBurst    = 1000
	// Connections whose peer ID is not proven yet: a stranger can keep one of these for acceptTime.
	unprovenConns  = strangersBurst + strangersRate*int(acceptTime/time.Second)
	unprovenMemory = 16 << 20
)

// streamsPerPeer leaves space for what a relay carries: two ends of a circuit to each other member.
func streamsPerPeer(peers int) int { return 16 + 4*peers }

// newLimits bounds what the network may use, for `peers` peers and frames of `frame` bytes.
func newLimits(peers, frame int) (network.ResourceManager, error) {
	scope := func(conns, streams int, memory int64) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{
			Conns: rcmgr.LimitVal(conns), ConnsInbound: rcmgr.LimitVal(conns), ConnsOutbound: rcmgr.LimitVal(conns),
			Streams: rcmgr.LimitVal(streams), StreamsInbound: rcmgr.LimitVal(streams),
			StreamsOutbound: rcmgr.LimitVal(streams), FD: rcmgr.LimitVal(conns), Memory: rcmgr.LimitVal64(memory),
		}
	}
	streams, memory := streamsPerPeer(peers), int64(memoryPerPeer+frame)
	perPeer := scope(connsPerPeer, streams, memory)
	all := scope(peers*connsPerPeer+unprovenConns, peers*streams, int64(peers)*memory+unprovenMemory)
	transient := scope(peers*connsPerPeer+unprovenConns, peers*streams, unprovenMemory+int64(peers)<<20)
	cfg := rcmgr.PartialLimitConfig{
		System: all, Transient: transient, PeerDefault: perPeer,
		ProtocolDefault: all, ProtocolPeerDefault: perPeer, ServiceDefault: all, ServicePeerDefault: perPeer,
		Conn: scope(1, streams, memory), Stream: scope(0, 1, memory),
	}.Build(rcmgr.DefaultLimits.Scale(0, 0))
	// How many connections one address may have follows from how often it may connect, which is the
	// gater's business: only that knows at which addresses members are.
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(cfg),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: math.MaxInt}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: math.MaxInt}}),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("0.0.0.0/0"), ConnCount: math.MaxInt}},
			[]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("::/0"), ConnCount: math.MaxInt}}))
}
