// Package p2p carries frames between peers over libp2p: one Host per peer, and one Mesh, a
// comm.Transport, per fixed set of members. Only members may connect, each proves its identity, and
// both sides compare fingerprints before any data. docs/reference/wire.md gives the bytes.
package p2p

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

// The protocols a member speaks, each with a version: peers of different versions refuse each
// other.
const (
	sessionProtocol protocol.ID = "/heddle/session/5"
	refusalProtocol protocol.ID = "/heddle/refusal/1"
	goodbyeProtocol protocol.ID = "/heddle/goodbye/1"
)

// Host is one peer on the network: its libp2p node and at most one session at a time.
type Host struct {
	// Waiting, if set, is called about once a second while Join waits. Calls do not overlap.
	Waiting func(missing []Missing, since time.Duration)

	node base
	cfg  node.Config
	pool comm.SpareFrames // of received frames

	notified *network.NotifyBundle // of closed connections

	mu      sync.Mutex
	joining *rendezvous // while Join runs
	mesh    *Mesh       // from Join to Mesh.Close
	closed  bool
}

// base is the node under a Host: its own, or a libp2p host of the program.
type base interface {
	ID() peer.ID
	FullAddrs() []string
	Network() network.Network
	Config() node.Config
	Members(identity.Roster) ([]node.Peer, error)
	Admit([]node.Peer)
	Dismiss([]node.Peer)
	Revoke(p peer.ID, why error)
	Revoked(peer.ID) error
	Disconnect(peer.ID)
	Dials(node.Peer) bool
	Dial(context.Context, node.Peer) error
	Relayed() bool
	DialRelayed(context.Context, peer.ID) error
	NewStream(context.Context, peer.ID, ...protocol.ID) (network.Stream, error)
	SetStreamHandler(protocol.ID, network.StreamHandler)
	Watch(c network.Conn, silent func(time.Duration))
	Close() error
}

// Libp2p is a libp2p host of the program that embeds the library.
type Libp2p = host.Host

// baseOf takes the host of the program, or opens the sockets of a new one.
func baseOf(cfg node.Config) (base, error) {
	if cfg.Host == nil {
		return node.Listen(cfg)
	}
	if slices.Contains(cfg.Host.Mux().Protocols(), sessionProtocol) {
		return nil, errors.New("the libp2p host carries another run already: one host carries one at a time")
	}
	return node.Borrow(cfg)
}

// Missing is a member that Join waits for.
type Missing struct {
	Rank      int
	Connected bool  // but it has not met all members yet
	Last      error // in reaching it (nil = none)
}

// Listen opens the host's sockets, or takes cfg.Host. Nobody can open a session until Join.
func Listen(cfg Config) (*Host, error) {
	n, err := baseOf(node.Config(cfg))
	if err != nil {
		return nil, err
	}
	h := &Host{node: n, cfg: n.Config()}
	n.SetStreamHandler(sessionProtocol, func(s network.Stream) {
		if joining, _ := h.state(); joining != nil {
			joining.answer(s)
			return
		}
		s.Reset()
	})
	n.SetStreamHandler(goodbyeProtocol, func(s network.Stream) {
		if _, session := h.state(); session != nil {
			session.onGoodbye(s)
		} else {
			s.Reset()
		}
	})
	n.SetStreamHandler(refusalProtocol, func(s network.Stream) {
		if joining, _ := h.state(); joining != nil {
			joining.refused(s)
		} else {
			s.Reset()
		}
	})
	h.notified = &network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if joining, _ := h.state(); joining != nil {
			joining.disconnected(c)
		}
		if _, session := h.state(); session != nil { // which may have begun meanwhile
			session.disconnected(c)
		}
	}}
	n.Network().Notify(h.notified)
	return h, nil
}

func (h *Host) state() (*rendezvous, *Mesh) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.joining, h.mesh
}

var errHostClosed = errors.New("join: the host is closed")

// ID is the host's peer ID.
func (h *Host) ID() string { return h.node.ID().String() }

// Addrs lists the addresses the host listens on, each with /p2p/ID, ready to be put in a roster.
func (h *Host) Addrs() []string { return h.node.FullAddrs() }

// Close ends the session, if any, closes every socket, and returns when the host's goroutines have ended. A libp2p
// host of the program stays open, without the protocols of a session.
func (h *Host) Close() error {
	h.mu.Lock()
	session, joining, again := h.mesh, h.joining, h.closed
	h.closed = true
	h.mu.Unlock()
	if again {
		return nil
	}
	if joining != nil {
		joining.give(errHostClosed)
	}
	if session != nil {
		session.Close()
	}
	h.node.Network().StopNotify(h.notified)
	return h.node.Close()
}
