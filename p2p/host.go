// Package p2p carries frames between peers over libp2p: one Host per peer, and one Session per fixed set of members,
// which is a comm.Transport. Only the members of a session may connect, each proves its identity, and both sides
// compare fingerprints before the first byte of data. docs/reference/wire.md gives the bytes.
//
// The host is put together from libp2p's parts: QUIC, TCP and WebSocket with TLS or Noise and yamux, and, where the
// federation runs relays of its own, circuits and hole punching. Nothing leaves but to the addresses that are
// configured: there is no public infrastructure, no port mapping and no telemetry.
package p2p

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
)

// The protocols a member speaks. A number at the end is a version: peers of different versions refuse each other.
const (
	sessionProtocol protocol.ID = "/heddle/session/4"
	refusalProtocol protocol.ID = "/heddle/refusal/1"
	goodbyeProtocol protocol.ID = "/heddle/goodbye/1"
	probeProtocol   protocol.ID = "/heddle/probe/1"
)

// tcpPatience is how many times Config.PeerTimeout yamux waits for an answer to its own probe: on a slow link the answer queues
// behind data. A peer that is gone is noticed sooner, by the kernel; one that is stopped, whose kernel answers for it, is not.
const tcpPatience = 3

// Host is one peer on the network: its identity, its listening sockets and at most one session at a time.
type Host struct {
	cfg      Config
	gate     *gater
	limits   network.ResourceManager
	store    peerstore.Peerstore
	bus      event.Bus
	net      *swarm.Swarm
	upgrader transport.Upgrader
	quic     *quicreuse.ConnManager             // nil: no QUIC
	protos   *mss.MultistreamMuxer[protocol.ID] // that members may open
	relayed  *mss.MultistreamMuxer[protocol.ID] // that relays may open: those of ofRelays
	pool     comm.Pool                          // of received frames
	indirect *indirect                          // nil: no relays
	lan      *lan                               // nil: no search on the local network
	probing  sync.Mutex                         // held while one path is measured, so that another does not disturb it

	mu      sync.Mutex
	joining *rendezvous // while Join runs
	session *Session    // from Join to Session.Close
	closed  bool
	chosen  map[peer.ID]choice // by transport auto
}

// Listen opens the host's sockets. Nobody can connect until Join.
func Listen(cfg Config) (_ *Host, err error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	h.handle(sessionProtocol, func(s network.Stream) {
		joining, session := h.state()
		if joining != nil {
			joining.answer(s)
			return
		}
		if session != nil {
			session.rejoinRequested(s.Conn().RemotePeer())
		}
		s.Reset()
	})
	h.handle(goodbyeProtocol, func(s network.Stream) {
		if _, session := h.state(); session != nil {
			session.onGoodbye(s)
		} else {
			s.Reset()
		}
	})
	h.handle(refusalProtocol, func(s network.Stream) {
		if joining, _ := h.state(); joining != nil {
			joining.refused(s)
		} else {
			s.Reset()
		}
	})
	h.handle(probeProtocol, answerProbe)
	h.net.Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if joining, _ := h.state(); joining != nil {
			joining.disconnected(c)
		}
		if _, session := h.state(); session != nil { // which may have begun meanwhile
			session.disconnected(c)
		}
	}})
	begin := func() {}
	if len(cfg.Relays) > 0 {
		if begin, err = h.useRelays(); err != nil {
			return nil, fmt.Errorf("p2p: relays: %w", err)
		}
	}
	if err = h.listen(); err != nil {
		return nil, err
	}
	begin()
	if cfg.LAN {
		if err = h.searchLAN(); err != nil {
			return nil, fmt.Errorf("p2p: mDNS: %w", err)
		}
	}
	return h, nil
}

// newHost makes a host that does not listen yet and speaks no protocol.
func newHost(cfg Config) (_ *Host, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	quietLibp2p()
	relays, err := cfg.relays()
	if err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg, gate: newGater(cfg.maxPeers(), relays), bus: eventbus.NewBus(), chosen: map[peer.ID]choice{},
		protos: mss.NewMultistreamMuxer[protocol.ID](), relayed: mss.NewMultistreamMuxer[protocol.ID]()}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	if h.limits, err = newLimits(cfg.maxPeers(), cfg.maxFrame()); err != nil {
		return nil, fmt.Errorf("p2p: limits: %w", err)
	}
	if h.store, err = pstoremem.NewPeerstore(); err != nil {
		return nil, fmt.Errorf("p2p: peer store: %w", err)
	}
	key, id := cfg.Identity.key, cfg.Identity.id
	if err = errors.Join(h.store.AddPrivKey(id, key), h.store.AddPubKey(id, key.GetPublic())); err != nil {
		return nil, fmt.Errorf("p2p: peer store: %w", err)
	}
	h.net, err = swarm.NewSwarm(id, h.store, h.bus,
		swarm.WithConnectionGater(h.gate), swarm.WithResourceManager(h.limits),
		// A roster's addresses are few and meant: an address that failed is tried again, never written off.
		swarm.WithUDPBlackHoleSuccessCounter(nil), swarm.WithIPv6BlackHoleSuccessCounter(nil))
	if err != nil {
		return nil, fmt.Errorf("p2p: %w", err)
	}
	if err = h.carriers(); err != nil {
		return nil, fmt.Errorf("p2p: transport %s: %w", cfg.transport(), err)
	}
	h.net.SetStreamHandler(h.onStream)
	return h, nil
}

// listen opens the configured sockets.
func (h *Host) listen() error {
	for _, s := range h.cfg.Listen {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return fmt.Errorf("p2p: listen: %w", err)
		}
		bare, _ := peer.SplitAddr(a)
		if err := h.net.AddListenAddr(bare); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return fmt.Errorf("p2p: listen on %s: the port is in use by another program or peer; choose another one, or 0 for any: %w", s, err)
			}
			return fmt.Errorf("p2p: listen on %s: %w", s, err)
		}
	}
	return nil
}

// handle answers streams of a protocol.
func (h *Host) handle(p protocol.ID, serve func(network.Stream)) {
	handler := func(_ protocol.ID, s io.ReadWriteCloser) error {
		serve(s.(network.Stream))
		return nil
	}
	h.protos.AddHandler(p, handler)
	if ofRelays[p] {
		h.relayed.AddHandler(p, handler)
	}
}

func (h *Host) state() (*rendezvous, *Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joining, h.session
}

var errHostClosed = errors.New("p2p: join: the host is closed")

// ID is the host's peer ID.
func (h *Host) ID() string { return h.cfg.Identity.PeerID() }

// Addrs lists the addresses the host listens on, each with /p2p/ID, ready to be put in a roster.
func (h *Host) Addrs() []string {
	addrs := h.listening()
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
	if h.lan != nil {
		errs = append(errs, h.lan.Close())
	}
	if h.indirect != nil {
		h.indirect.close()
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

// onStream serves a stream that a member or a relay has opened: the gate lets nobody else come this far. It asks once
// more, for a member may have been revoked since.
func (h *Host) onStream(s network.Stream) {
	if !h.gate.mayOpen(s.Conn().RemotePeer()) {
		s.Reset()
		return
	}
	s.SetDeadline(time.Now().Add(handshakeTime))
	protos := h.protos
	if h.gate.relays[s.Conn().RemotePeer()] {
		protos = h.relayed
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
