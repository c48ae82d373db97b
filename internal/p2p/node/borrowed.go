package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/heddle-gnn/heddle/p2p/identity"
)

// Borrowed is a libp2p host of the program that embeds the library. Its transports, timeouts, limits and address book
// are the program's. Members are dialled at the roster's addresses and at those that the host knows or finds. Who else
// may connect to it is the program's decision, but only members may open streams of the protocols set here.
type Borrowed struct {
	host host.Host
	cfg  Config
	gate *gater

	mu      sync.Mutex
	closed  bool
	protos  []protocol.ID
	streams map[network.Stream]bool // that handlers serve
	serving sync.WaitGroup
}

// Borrow takes cfg.Host. Close gives it back.
func Borrow(cfg Config) (*Borrowed, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.filled()
	return &Borrowed{host: cfg.Host, cfg: cfg, gate: newGater(cfg.MaxPeers, nil), streams: map[network.Stream]bool{}},
		nil
}

// ID and what follows do what they do for a Node.
func (b *Borrowed) ID() peer.ID                               { return b.host.ID() }
func (b *Borrowed) Network() network.Network                  { return b.host.Network() }
func (b *Borrowed) Config() Config                            { return b.cfg }
func (b *Borrowed) Members(r identity.Roster) ([]Peer, error) { return parse(r, b.cfg.MaxPeers) }
func (b *Borrowed) Revoke(p peer.ID, why error)               { b.gate.revoke(p, why) }
func (b *Borrowed) Revoked(p peer.ID) error                   { return b.gate.why(p) }
func (b *Borrowed) Disconnect(peer.ID)                        {}              // other protocols may use them
func (b *Borrowed) Dials(Peer) bool                           { return true } // the address book may know more
func (b *Borrowed) Relayed() bool                             { return false }
func (b *Borrowed) Watch(network.Conn, func(time.Duration))   {} // the host's timeouts do

// DialRelayed is never called, since the host reaches relays by itself.
func (b *Borrowed) DialRelayed(context.Context, peer.ID) error { return errors.ErrUnsupported }

// FullAddrs lists the host's addresses, each with /p2p/ID.
func (b *Borrowed) FullAddrs() []string { return fullAddrs(b.host) }

// borrowedTag protects connections to members from the host's connection manager.
const borrowedTag = "heddle"

// Admit lets the members open streams, and nobody else.
func (b *Borrowed) Admit(members []Peer) {
	for _, m := range members {
		b.host.ConnManager().Protect(m.ID, borrowedTag)
	}
	b.gate.admit(members)
}

// Dismiss lets nobody open streams. Connections and addresses stay the program's.
func (b *Borrowed) Dismiss(members []Peer) {
	b.gate.admit(nil)
	for _, m := range members {
		b.host.ConnManager().Unprotect(m.ID, borrowedTag)
	}
}

// Dial makes a connection to m, if there is none. A connection through a relay of the host's will do.
func (b *Borrowed) Dial(ctx context.Context, m Peer) error {
	// libp2p's back-off begins at 5 s, and is for peers that nobody waits for.
	if net, ok := b.host.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		net.Backoff().Clear(m.ID)
	}
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "relay"), HandshakeTime)
	defer cancel()
	return b.host.Connect(ctx, peer.AddrInfo{ID: m.ID, Addrs: m.Addrs})
}

// NewStream opens a stream within ctx's deadline, which stays the stream's own.
func (b *Borrowed) NewStream(ctx context.Context, p peer.ID, protos ...protocol.ID) (network.Stream, error) {
	return openStream(ctx, b.host.Network(), p, protos)
}

// SetStreamHandler answers streams of a protocol that members open, until Close.
func (b *Borrowed) SetStreamHandler(p protocol.ID, serve network.StreamHandler) {
	b.mu.Lock()
	b.protos = append(b.protos, p)
	b.mu.Unlock()
	b.host.SetStreamHandler(p, func(s network.Stream) {
		if !b.gate.mayOpen(s.Conn().RemotePeer()) || !b.begin(s) {
			s.Reset()
			return
		}
		defer b.end(s)
		s.SetDeadline(time.Now().Add(HandshakeTime))
		serve(s)
	})
}

// begin counts a stream that is served, unless the host has been given back.
func (b *Borrowed) begin(s network.Stream) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.serving.Add(1)
		b.streams[s] = true
	}
	return !b.closed
}

func (b *Borrowed) end(s network.Stream) {
	b.mu.Lock()
	delete(b.streams, s)
	b.mu.Unlock()
	b.serving.Done()
}

// Close removes the handlers and returns when none runs any more. It closes neither the host nor its connections.
func (b *Borrowed) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, p := range b.protos {
		b.host.RemoveStreamHandler(p)
	}
	for s := range b.streams {
		s.Reset()
	}
	b.mu.Unlock()
	b.serving.Wait()
	return nil
}
