// Package p2p carries frames between peers over libp2p: one Host per peer, and one Mesh, a
// comm.Transport, per fixed set of members. Only members may connect, each proves its identity, and
// both sides compare fingerprints before any data. docs/reference/wire.md gives the bytes.
package p2p

import (
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
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

	node *node.Node
	cfg  node.Config
	pool comm.SpareFrames // of received frames

	mu      sync.Mutex
	joining *rendezvous // while Join runs
	mesh    *Mesh       // from Join to Mesh.Close
	closed  bool
}

// Missing is a member that Join waits for.
type Missing struct {
	Rank      int
	Connected bool  // but it has not met all members yet
	Last      error // in reaching it (nil = none)
}

// Listen opens the host's sockets. Nobody can connect until Join.
func Listen(cfg node.Config) (*Host, error) {
	n, err := node.Listen(cfg)
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
	n.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) {
		if joining, _ := h.state(); joining != nil {
			joining.disconnected(c)
		}
		if _, session := h.state(); session != nil { // which may have begun meanwhile
			session.disconnected(c)
		}
	}})
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

// Close ends the session, if any, closes every socket, and returns when the host's goroutines have
// ended.
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
	return h.node.Close()
}
