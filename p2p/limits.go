package p2p

import (
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// What one member may use. A session needs one connection and one stream; the rest is for dials that cross, for
// the stream that says goodbye, and for windows that grow to their full size.
const (
	connsPerPeer   = 4
	streamsPerPeer = 16
	memoryPerPeer  = 64 << 20
	// Connections whose peer ID is not proven yet: a stranger can hold one of these for the length of a handshake.
	unprovenConns  = 64
	unprovenMemory = 16 << 20
)

// newLimits bounds what the network may take of this process, for at most peers members.
func newLimits(peers int) (network.ResourceManager, error) {
	scope := func(conns, streams int, memory int64) rcmgr.ResourceLimits {
		return rcmgr.ResourceLimits{
			Conns: rcmgr.LimitVal(conns), ConnsInbound: rcmgr.LimitVal(conns), ConnsOutbound: rcmgr.LimitVal(conns),
			Streams: rcmgr.LimitVal(streams), StreamsInbound: rcmgr.LimitVal(streams), StreamsOutbound: rcmgr.LimitVal(streams),
			FD: rcmgr.LimitVal(conns), Memory: rcmgr.LimitVal64(memory),
		}
	}
	perPeer := scope(connsPerPeer, streamsPerPeer, memoryPerPeer)
	all := scope(peers*connsPerPeer+unprovenConns, peers*streamsPerPeer, int64(peers)*memoryPerPeer+unprovenMemory)
	transient := scope(unprovenConns, peers*streamsPerPeer, unprovenMemory+int64(peers)<<20)
	cfg := rcmgr.PartialLimitConfig{
		System: all, Transient: transient, PeerDefault: perPeer,
		ProtocolDefault: all, ProtocolPeerDefault: perPeer, ServiceDefault: all, ServicePeerDefault: perPeer,
		Conn: scope(1, streamsPerPeer, memoryPerPeer), Stream: scope(0, 1, memoryPerPeer),
	}.Build(rcmgr.DefaultLimits.Scale(0, 0))
	// A site's peers often share one address (a laboratory, a NAT, this machine), so an address may hold as many
	// connections as the roster has members, and no fewer than the handshakes it may have open.
	perIP := peers*connsPerPeer + unprovenConns
	// Every member may try again each second (retryMost) from one address; a flood from there goes no faster.
	attempts := rate.Limit{RPS: float64(2 * peers), Burst: perIP}
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(cfg),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithNetworkPrefixLimit(
			[]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("127.0.0.0/8"), ConnCount: math.MaxInt}},
			[]rcmgr.NetworkPrefixLimit{{Network: netip.MustParsePrefix("::1/128"), ConnCount: math.MaxInt}}),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: perIP}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: perIP}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{
				{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")}},
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: attempts}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: attempts}},
				GracePeriod:      time.Minute,
			}}))
}
