// Package node opens a peer's libp2p node: sockets, a connection gater that admits only members and
// relays, and ways to members: direct, through a relay, or through a hole in a NAT.
//
// A node consists of libp2p's parts: QUIC, TCP and WebSocket with TLS or Noise and yamux; with
// relays also circuits and hole punching. It contacts only configured addresses: no public
// infrastructure, no port mapping, no telemetry.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	mss "github.com/multiformats/go-multistream"
)

// HandshakeTime bounds one attempt at a handshake.
const HandshakeTime = 10 * time.Second

const (
	probeProtocol protocol.ID = "/heddle/probe/1"
	seenProtocol  protocol.ID = "/heddle/seen/1" // each stream is answered by the address that it came from
)

// tcpPatience is how many times Config.PeerTimeout yamux waits for an answer to its probe, which
// queues behind data on a slow link. The kernel notices a dead peer sooner, but not a stopped one.
const tcpPatience = 3

// Node is a libp2p host.Host with only the protocols that a federation needs.
type Node struct {
	cfg      Config
	gate     *gater
	limits   network.ResourceManager
	store    peerstore.Peerstore
	bus      event.Bus
	net      *swarm.Swarm
	upgrader transport.Upgrader
	quic     *quicreuse.ConnManager             // nil = no QUIC
	protos   *mss.MultistreamMuxer[protocol.ID] // that members may open
	relayed  *mss.MultistreamMuxer[protocol.ID] // that relays may open (ofRelays)
	indirect *indirect                          // nil = no relays
	lan      *lan                               // nil = no search on the local network
	probing  sync.Mutex                         // held while one path is measured, so that another does not disturb it

	mu     sync.Mutex
	chosen map[peer.ID]bool // by transport auto
	probed map[peer.ID]int  // how often each has measured a way to here
}

var _ host.Host = (*Node)(nil)

// Listen opens the node's sockets. Nobody can connect until Admit.
func Listen(cfg Config) (*Node, error) { return listenFor(cfg, false) }

// listenFor is Listen. guests lets anybody connect who proves a key, and open a few streams: for a node that serves
// leaves and nothing else. Whom it serves is the business of their protocol.
func listenFor(cfg Config, guests bool) (_ *Node, err error) {
	n, err := newNode(cfg, guests)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if !guests {
		n.answerSurveys()
	}
	begin := func() {}
	if len(cfg.Relays) > 0 {
		if begin, err = n.useRelays(); err != nil {
			return nil, fmt.Errorf("relays: %w", err)
		}
	}
	if err = n.listen(); err != nil {
		return nil, err
	}
	begin()
	if cfg.LAN {
		if err = n.searchLAN(); err != nil {
			return nil, fmt.Errorf("mDNS: %w", err)
		}
	}
	return n, nil
}

// newNode makes a node that does not listen yet and speaks no protocol.
func newNode(cfg Config, guests bool) (_ *Node, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	quietLibp2p()
	relays, err := cfg.relays()
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, gate: newGater(cfg.MaxPeers, relays), bus: eventbus.NewBus(), chosen: map[peer.ID]bool{},
		probed: map[peer.ID]int{},
		protos: mss.NewMultistreamMuxer[protocol.ID](), relayed: mss.NewMultistreamMuxer[protocol.ID]()}
	if guests {
		n.gate.invite()
	}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.limits, err = newLimits(cfg.MaxPeers, cfg.MaxFrame); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if n.store, err = pstoremem.NewPeerstore(); err != nil {
		return nil, fmt.Errorf("peer store: %w", err)
	}
	key, id := cfg.Identity.Key(), cfg.Identity.ID()
	if err = errors.Join(n.store.AddPrivKey(id, key), n.store.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, fmt.Errorf("peer store: %w", err)
	}
	n.net, err = swarm.NewSwarm(id, n.store, n.bus,
		swarm.WithConnectionGater(n.gate), swarm.WithResourceManager(n.limits),
		// A roster's addresses are few and meant: one that failed is tried again.
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, err
	}
	if err = n.carriers(); err != nil {
		return nil, fmt.Errorf("transport %s: %w", cfg.Transport, err)
	}
	n.net.SetStreamHandler(n.onStream)
	return n, nil
}

// listen opens the configured sockets.
func (n *Node) listen() error {
	for _, s := range n.cfg.Listen {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		bare, _ := peer.SplitAddr(a)
		host, rest := ma.SplitFirst(bare)
		any4, any6 := ma.StringCast("/ip4/0.0.0.0").Encapsulate(rest), ma.StringCast("/ip6/::").Encapsulate(rest)
		switch host.Protocol().Code {
		case ma.P_DNS, ma.P_DNS4, ma.P_DNS6:
			// A name may resolve to another address here than at the other members, such as 127.0.1.1 or a service's
			// address.
			err = n.net.AddListenAddr(any4)
			if err6 := n.net.AddListenAddr(any6); err == nil || err6 == nil && !errors.Is(err, syscall.EADDRINUSE) {
				err = nil // one of them is enough
			}
		default:
			err = n.net.AddListenAddr(bare)
		}
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return fmt.Errorf("listen on %s: the port is in use by another program or peer; "+
				"choose another one (option listen, or the plan), or 0 for any: %w", s, err)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return fmt.Errorf("listen on %s: no interface of this machine has this address: if a router, a "+
				"cloud or Docker forwards it, add option listen %s: %w", s, any4, err)
		case err != nil:
			return fmt.Errorf("listen on %s: %w", s, err)
		}
	}
	return nil
}

// ID and what follows are libp2p's host.Host.
func (n *Node) ID() peer.ID                      { return n.cfg.Identity.ID() }
func (n *Node) Peerstore() peerstore.Peerstore   { return n.store }
func (n *Node) Network() network.Network         { return n.net }
func (n *Node) Mux() protocol.Switch             { return n.protos }
func (n *Node) ConnManager() connmgr.ConnManager { return connmgr.NullConnMgr{} }
func (n *Node) EventBus() event.Bus              { return n.bus }

// Config returns what the node was opened with, defaults filled in.
func (n *Node) Config() Config { return n.cfg }

// Addrs lists the addresses that the node announces: Config.Announce, or else the addresses of its interfaces
// at which it listens, circuits left out.
func (n *Node) Addrs() []ma.Multiaddr {
	if all, err := n.cfg.announced(); err == nil && all != nil {
		return all
	}
	addrs, err := n.net.InterfaceListenAddresses()
	if err != nil || n.cfg.Interfaces != nil {
		addrs = n.onInterfaces(n.net.ListenAddresses())
	}
	return slices.DeleteFunc(addrs, func(a ma.Multiaddr) bool { return kindOf(a) == "relay" })
}

// onInterfaces replaces addresses for any interface in addrs by the configured addresses of interfaces.
func (n *Node) onInterfaces(addrs []ma.Multiaddr) []ma.Multiaddr {
	var at []ma.Multiaddr
	for _, ip := range n.cfg.Interfaces {
		one, err := manet.FromIP(ip.AsSlice())
		if err == nil {
			at = append(at, one)
		}
	}
	var out []ma.Multiaddr
	for _, a := range addrs {
		if resolved, err := manet.ResolveUnspecifiedAddress(a, at); err == nil && manet.IsIPUnspecified(a) {
			out = append(out, resolved...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

// FullAddrs lists the node's addresses, each with /p2p/ID, ready to be put in a roster.
func (n *Node) FullAddrs() []string { return fullAddrs(n) }

func fullAddrs(h host.Host) (out []string) {
	for _, a := range h.Addrs() {
		out = append(out, a.String()+"/p2p/"+h.ID().String())
	}
	return out
}

// Connect makes a connection, a direct one if ctx asks for that, even next to one through a relay.
func (n *Node) Connect(ctx context.Context, to peer.AddrInfo) error {
	n.store.AddAddrs(to.ID, to.Addrs, peerstore.TempAddrTTL)
	_, err := n.net.DialPeer(ctx, to.ID)
	return err
}

// NewStream opens a stream within ctx's deadline, which stays the stream's own.
func (n *Node) NewStream(ctx context.Context, p peer.ID, protos ...protocol.ID) (network.Stream, error) {
	return openStream(ctx, n.net, p, protos)
}

// openStream opens a stream of the first of protos that p speaks, or fails. The NewStream of a libp2p host may leave
// that to the first read.
func openStream(ctx context.Context, net network.Network, p peer.ID, protos []protocol.ID) (network.Stream, error) {
	s, err := net.NewStream(ctx, p)
	if err != nil {
		return nil, Explain(err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		s.SetDeadline(deadline)
	}
	unbind := context.AfterFunc(ctx, func() { s.Reset() })
	chosen, err := mss.SelectOneOf(protos, s)
	if err == nil {
		err = s.SetProtocol(chosen)
	}
	if unbind(); err != nil {
		s.Reset()
		return nil, fmt.Errorf("%s: %w", protos, Explain(err))
	}
	return s, nil
}

// SetStreamHandler answers streams of a protocol.
func (n *Node) SetStreamHandler(p protocol.ID, serve network.StreamHandler) {
	handler := func(_ protocol.ID, s io.ReadWriteCloser) error {
		serve(s.(network.Stream))
		return nil
	}
	n.protos.AddHandler(p, handler)
	if ofRelays[p] {
		n.relayed.AddHandler(p, handler)
	}
}

func (n *Node) SetStreamHandlerMatch(p protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	n.protos.AddHandlerWithFunc(p, match, func(p protocol.ID, s io.ReadWriteCloser) error {
		serve(s.(network.Stream))
		return nil
	})
}

func (n *Node) RemoveStreamHandler(p protocol.ID) {
	n.protos.RemoveHandler(p)
	n.relayed.RemoveHandler(p)
}

// Close closes every socket. It returns when all of the node's goroutines have ended.
func (n *Node) Close() error {
	var errs []error
	if n.lan != nil {
		errs = append(errs, n.lan.Close())
	}
	if n.indirect != nil {
		n.indirect.close()
	}
	if n.net != nil {
		n.gate.close()
		errs = append(errs, n.net.Close())
	}
	if n.quic != nil {
		errs = append(errs, n.quic.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	if n.limits != nil {
		errs = append(errs, n.limits.Close())
	}
	return errors.Join(errs...)
}

// onStream serves a stream of a member or relay. It asks the gate again, for revoked members.
func (n *Node) onStream(s network.Stream) {
	if !n.gate.mayOpen(s.Conn().RemotePeer()) {
		s.Reset()
		return
	}
	s.SetDeadline(time.Now().Add(HandshakeTime))
	protos := n.protos
	if n.gate.relays[s.Conn().RemotePeer()] {
		protos = n.relayed
	}
	proto, serve, err := protos.Negotiate(s)
	if err == nil {
		err = s.SetProtocol(proto)
	}
	if err != nil {
		s.Reset()
		return
	}
	serve(proto, s)
}

// libp2p logs to stderr what it takes for errors, such as a listener closed on purpose. Callers get
// errors that matter, so libp2p's lines go to slog's default logger as details.
var quietLibp2p = sync.OnceFunc(func() { gologshim.SetDefaultHandler(detail{}) })

// detail hands records to the default logger's handler at level Debug.
type detail struct{ attrs []slog.Attr }

func (d detail) Enabled(ctx context.Context, _ slog.Level) bool {
	return slog.Default().Enabled(ctx, slog.LevelDebug)
}

func (d detail) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, slog.LevelDebug, r.Message, r.PC)
	out.AddAttrs(d.attrs...)
	r.Attrs(func(a slog.Attr) bool { out.AddAttrs(a); return true })
	return slog.Default().Handler().Handle(ctx, out)
}

func (d detail) WithAttrs(attrs []slog.Attr) slog.Handler {
	return detail{append(d.attrs[:len(d.attrs):len(d.attrs)], attrs...)}
}

func (d detail) WithGroup(string) slog.Handler { return d }
