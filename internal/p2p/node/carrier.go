package node

import (
	"context"
	"crypto/rand"
	"errors"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"
)

// transports are QUIC over UDP; TCP with TLS 1.3, or with Noise where middleboxes break TLS;
// WebSocket for networks that allow only web traffic; and auto: the one that measures fastest for
// each peer.
var transports = []string{"quic", "tcp", "noise", "ws", "auto"}

// kindOf is the carrier of an address, with or without /p2p/ID: quic, tcp, ws, relay, or "".
func kindOf(a ma.Multiaddr) string {
	var last ma.Component
	circuit := false
	ma.ForEach(a, func(p ma.Component) bool {
		circuit = circuit || p.Protocol().Code == ma.P_CIRCUIT
		if p.Protocol().Code != ma.P_P2P {
			last = p
		}
		return true
	})
	switch code := last.Protocol().Code; {
	case circuit:
		return "relay"
	case code == ma.P_QUIC_V1:
		return "quic"
	case code == ma.P_TCP:
		return "tcp"
	case code == ma.P_WS || code == ma.P_WSS:
		return "ws"
	}
	return ""
}

// carries reports whether the chosen transport speaks at address a.
func (c Config) carries(a ma.Multiaddr) bool {
	kind := kindOf(a)
	switch t := c.Transport; t {
	case "auto":
		return kind == "quic" || kind == "tcp" || kind == "ws"
	case "noise":
		return kind == "tcp"
	default:
		return kind == t
	}
}

// sample is an address that the chosen transport can listen on.
func (c Config) sample() string {
	switch c.Transport {
	case "tcp", "noise":
		return "/ip4/127.0.0.1/tcp/0"
	case "ws":
		return "/ip4/127.0.0.1/tcp/0/ws"
	}
	return "/ip4/127.0.0.1/udp/0/quic-v1"
}

// anywhere are addresses on every interface and any port.
func (c Config) anywhere() []string {
	switch c.Transport {
	case "tcp", "noise":
		return []string{"/ip4/0.0.0.0/tcp/0"}
	case "ws":
		return nil
	case "auto":
		return []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0"}
	}
	return []string{"/ip4/0.0.0.0/udp/0/quic-v1"}
}

// carriers gives the node the transports that its configuration names.
func (n *Node) carriers() error {
	t := n.cfg.Transport
	var all []transport.Transport
	add := func(c transport.Transport, err error) error {
		all = append(all, c)
		return err
	}
	up, err := n.newUpgrader()
	if err != nil {
		return err
	}
	n.upgrader = countingUpgrader{Upgrader: up, timeout: n.cfg.PeerTimeout}
	if t == "quic" || t == "auto" {
		err = errors.Join(err, add(n.newQUIC()))
	}
	if t == "tcp" || t == "noise" || t == "auto" {
		var options []tcp.Option
		if len(n.cfg.Relays) == 0 {
			// Without SO_REUSEPORT a second peer on the same port is an error, not a silent half of
			// the connections. A hole is punched from the port that listens, and so needs it.
			options = append(options, tcp.DisableReuseport())
		}
		err = errors.Join(err, add(tcp.NewTCPTransport(n.upgrader, n.limits, nil, options...)))
	}
	if t == "ws" || t == "auto" && hasWebSocket {
		err = errors.Join(err, add(n.newWebSocket()))
	}
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := n.net.AddTransport(c); err != nil {
			return err
		}
	}
	return nil
}

// bulkYamux is libp2p's yamux with patience for slow links; windows begin at 4 MiB, as a
// measured round trip of microseconds would never let them grow, and reach 16 MiB if it is long.
func (n *Node) bulkYamux() *yamux.Transport {
	c := *yamux.DefaultTransport.Config()
	c.InitialStreamWindowSize = 4 << 20
	c.MaxStreamWindowSize = 16 << 20
	c.KeepAliveInterval = n.cfg.PeerTimeout / 2
	c.ConnectionWriteTimeout = tcpPatience * n.cfg.PeerTimeout
	c.MaxIncomingStreams = uint32(streamsPerPeer(n.cfg.MaxPeers))
	return (*yamux.Transport)(&c)
}

// newUpgrader makes sockets authenticated connections of many streams. QUIC needs none.
func (n *Node) newUpgrader() (transport.Upgrader, error) {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: n.bulkYamux()}}
	plain, err := noise.New(noise.ID, n.cfg.Identity.Key(), muxers)
	if err != nil {
		return nil, err
	}
	offers := []sec.SecureTransport{plain}
	if n.cfg.Transport != "noise" {
		tls, err := libp2ptls.New(libp2ptls.ID, n.cfg.Identity.Key(), muxers)
		if err != nil {
			return nil, err
		}
		offers = []sec.SecureTransport{tls, plain}
	}
	return upgrader.New(offers, muxers, nil, n.limits, n.gate, upgrader.WithAcceptTimeout(acceptTime))
}

func (n *Node) newQUIC() (transport.Transport, error) {
	var reset quic.StatelessResetKey
	var token quic.TokenGeneratorKey
	rand.Read(reset[:])
	rand.Read(token[:])
	var err error
	n.quic, err = quicreuse.NewConnManager(reset, token, quicreuse.OverrideListenUDP(listenSteady),
		quicreuse.ConnContext(n.admitQUIC),
		// A stranger must prove that it receives at its address before it costs more than a packet.
		// If too many have come, one packet refuses it that is shorter than its own.
		quicreuse.VerifySourceAddress(func(a net.Addr) bool {
			from, err := quicreuse.ToQuicMultiaddr(a, quic.Version1)
			return err != nil || n.gate.asks(from)
		}))
	if err != nil {
		return nil, err
	}
	// The idle timeout of a connection is the shorter one of its two ends, so the dialling end's timeout bounds both.
	// quic-go sends a keep-alive every half of it.
	n.quic.ClientConfig().MaxIdleTimeout = n.cfg.PeerTimeout
	return libp2pquic.NewTransport(n.cfg.Identity.Key(), n.quic, nil, n.gate, n.limits)
}

// admitQUIC asks gate and limits before the handshake, so that half-open connections count too.
func (n *Node) admitQUIC(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	from, err := quicreuse.ToQuicMultiaddr(info.RemoteAddr, quic.Version1)
	if err != nil {
		return ctx, err
	}
	if !info.AddrVerified && !n.gate.knows(from) || !n.gate.mayConnect(from) {
		return ctx, errTooMany
	}
	scope, err := n.limits.OpenConnection(network.DirInbound, false, from)
	if err != nil {
		return ctx, err
	}
	ctx = network.WithConnManagementScope(ctx, scope)
	context.AfterFunc(ctx, scope.Done)
	return ctx, nil
}
