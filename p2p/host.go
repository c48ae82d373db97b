// Package p2p carries frames between peers over libp2p: one Host per peer, and one Session per fixed set of members,
// which is a comm.Transport. Only the members of a session may connect, each proves its identity, and both sides
// compare fingerprints before the first byte of data. docs/wire.md gives the bytes.
//
// The host is put together from libp2p's parts: QUIC, or TCP with TLS and yamux. There is no relay, no discovery, no
// port mapping and no telemetry: nothing leaves but to the addresses in the roster.
package p2p

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
	"github.com/quic-go/quic-go"
)

// The protocols a member speaks. A number at the end is a version: peers of different versions refuse each other.
const (
	sessionProtocol protocol.ID = "/heddle/session/1"
	goodbyeProtocol protocol.ID = "/heddle/goodbye/1"
)

// A peer that vanishes without a word (power cut, unplugged cable) is lost after this long. One whose process dies is
// lost at once over TCP, whose sockets the kernel closes.
const (
	quicIdle    = 20 * time.Second
	tcpProbe    = 10 * time.Second // yamux asks a silent peer for an answer this often,
	tcpPatience = 30 * time.Second // and gives it this long: on a slow link the answer queues behind data
)

// Host is one peer on the network: its identity, its listening sockets and at most one session at a time.
type Host struct {
	cfg    Config
	gate   *gater
	limits network.ResourceManager
	store  peerstore.Peerstore
	net    *swarm.Swarm
	quic   *quicreuse.ConnManager // nil over TCP
	protos *mss.MultistreamMuxer[protocol.ID]
	pool   comm.Pool // of received frames

	mu      sync.Mutex
	joining *rendezvous // while Join runs
	session *Session    // from Join to Session.Close
	closed  bool
}

// Listen opens the host's sockets. Nobody can connect until Join.
func Listen(cfg Config) (_ *Host, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	quietLibp2p()
	h := &Host{cfg: cfg, gate: &gater{}, protos: mss.NewMultistreamMuxer[protocol.ID]()}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	if h.limits, err = newLimits(cfg.maxPeers()); err != nil {
		return nil, fmt.Errorf("p2p: limits: %w", err)
	}
	if h.store, err = pstoremem.NewPeerstore(); err != nil {
		return nil, fmt.Errorf("p2p: peer store: %w", err)
	}
	key, id := cfg.Identity.key, cfg.Identity.id
	if err = errors.Join(h.store.AddPrivKey(id, key), h.store.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, fmt.Errorf("p2p: peer store: %w", err)
	}
	h.net, err = swarm.NewSwarm(id, h.store, eventbus.NewBus(),
		swarm.WithConnectionGater(h.gate), swarm.WithResourceManager(h.limits),
		// A roster's addresses are few and meant: an address that failed is tried again, never written off.
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, fmt.Errorf("p2p: %w", err)
	}
	var carrier transport.Transport
	if cfg.transport() == "tcp" {
		carrier, err = h.newTCP()
	} else {
		carrier, err = h.newQUIC()
	}
	if err == nil {
		err = h.net.AddTransport(carrier)
	}
	if err != nil {
		return nil, fmt.Errorf("p2p: transport %s: %w", cfg.transport(), err)
	}
	h.protos.AddHandler(sessionProtocol, nil)
	h.protos.AddHandler(goodbyeProtocol, nil)
	h.net.SetStreamHandler(h.onStream)
	for _, s := range cfg.Listen {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return nil, fmt.Errorf("p2p: listen: %w", err)
		}
		if err := h.net.AddListenAddr(a); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("p2p: listen on %s: the port is in use by another program or peer: choose another, or 0 for any: %w", s, err)
			}
			return nil, fmt.Errorf("p2p: listen on %s: %w", s, err)
		}
	}
	return h, nil
}

// bulkYamux is libp2p's yamux with patience for slow links; windows begin at 4 MiB, as a
// measured round trip of microseconds would never let them grow, and reach 16 MiB where it is long.
func bulkYamux() *yamux.Transport {
	c := *yamux.DefaultTransport.Config()
	c.InitialStreamWindowSize = 4 << 20
	c.MaxStreamWindowSize = 16 << 20
	c.KeepAliveInterval = tcpProbe
	c.ConnectionWriteTimeout = tcpPatience
	c.MaxIncomingStreams = streamsPerPeer
	return (*yamux.Transport)(&c)
}

func (h *Host) newTCP() (transport.Transport, error) {
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: bulkYamux()}}
	tls, err := libp2ptls.New(libp2ptls.ID, h.cfg.Identity.key, muxers)
	if err != nil {
		return nil, err
	}
	up, err := upgrader.New([]sec.SecureTransport{tls}, muxers, nil, h.limits, h.gate)
	if err != nil {
		return nil, err
	}
	// Without SO_REUSEPORT a second peer on the same port is an error, not a silent half of the connections.
	return tcp.NewTCPTransport(countingUpgrader{up}, h.limits, nil, tcp.DisableReuseport())
}

func (h *Host) newQUIC() (transport.Transport, error) {
	var reset quic.StatelessResetKey
	var token quic.TokenGeneratorKey
	rand.Read(reset[:])
	rand.Read(token[:])
	// The scope is opened before the handshake, so that half-open connections count against the limits too.
	admit := func(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
		from, err := quicreuse.ToQuicMultiaddr(info.RemoteAddr, quic.Version1)
		if err != nil {
			return ctx, err
		}
		scope, err := h.limits.OpenConnection(network.DirInbound, false, from)
		if err != nil {
			return ctx, err
		}
		ctx = network.WithConnManagementScope(ctx, scope)
		context.AfterFunc(ctx, scope.Done)
		return ctx, nil
	}
	var err error
	h.quic, err = quicreuse.NewConnManager(reset, token, quicreuse.ConnContext(admit),
		quicreuse.VerifySourceAddress(func(a net.Addr) bool { return h.limits.VerifySourceAddress(a) }))
	if err != nil {
		return nil, err
	}
	// A connection's idle time-out is the shorter one of its two ends, so setting the dialling end bounds both.
	h.quic.ClientConfig().MaxIdleTimeout = quicIdle
	return libp2pquic.NewTransport(h.cfg.Identity.key, h.quic, nil, h.gate, h.limits)
}

var errHostClosed = errors.New("p2p: join: the host is closed")

// ID is the host's peer ID.
func (h *Host) ID() string { return h.cfg.Identity.PeerID() }

// Addrs lists the addresses the host listens on, each with /p2p/ID, ready to be put in a roster.
func (h *Host) Addrs() []string {
	addrs, err := h.net.InterfaceListenAddresses()
	if err != nil {
		addrs = h.net.ListenAddresses()
	}
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String() + "/p2p/" + h.ID()
	}
	return out
}

// Close ends the session, if any, and closes every socket. It returns when all of the host's goroutines have ended.
func (h *Host) Close() error {
	h.mu.Lock()
	session, joining, again := h.session, h.joining, h.closed
	h.closed = true
	h.mu.Unlock()
	if again {
		return nil
	}
	var errs []error
	if joining != nil {
		joining.give(errHostClosed)
	}
	if session != nil {
		errs = append(errs, session.Close())
	}
	if h.net != nil {
		errs = append(errs, h.net.Close())
	}
	if h.quic != nil {
		errs = append(errs, h.quic.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	if h.limits != nil {
		errs = append(errs, h.limits.Close())
	}
	return errors.Join(errs...)
}

// onStream serves a stream that a member has opened: the gate lets nobody else come this far.
func (h *Host) onStream(s network.Stream) {
	s.SetDeadline(time.Now().Add(handshakeTime))
	proto, _, err := h.protos.Negotiate(s)
	if err == nil {
		err = s.SetProtocol(proto)
	}
	h.mu.Lock()
	joining, session := h.joining, h.session
	h.mu.Unlock()
	switch {
	case err == nil && proto == sessionProtocol && joining != nil:
		joining.answer(s)
	case err == nil && proto == goodbyeProtocol && session != nil:
		session.onGoodbye(s)
	default:
		s.Reset()
	}
}
