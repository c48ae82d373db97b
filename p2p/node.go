package p2p

import (
	"context"
	"fmt"
	"io"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
	mss "github.com/multiformats/go-multistream"
)

// node shows a Host to libp2p's own protocols (identify, circuits, hole punching, mDNS) as the host.Host that they ask
// for. libp2p's basic host would bring protocols that are not wanted here.
type node struct {
	connmgr.NullConnMgr
	h *Host
}

var _ host.Host = (*node)(nil)

func (n *node) ID() peer.ID                      { return n.h.net.LocalPeer() }
func (n *node) Peerstore() peerstore.Peerstore   { return n.h.store }
func (n *node) Network() network.Network         { return n.h.net }
func (n *node) Mux() protocol.Switch             { return n.h.protos }
func (n *node) ConnManager() connmgr.ConnManager { return n }
func (n *node) EventBus() event.Bus              { return n.h.bus }
func (n *node) Close() error                     { return nil } // Host.Close is who closes

// Addrs lists the addresses the host listens on, circuits left out.
func (n *node) Addrs() []ma.Multiaddr { return n.h.listening() }

// Connect makes a connection, a direct one where ctx asks for that even if there is one through a relay.
func (n *node) Connect(ctx context.Context, to peer.AddrInfo) error {
	n.h.store.AddAddrs(to.ID, to.Addrs, peerstore.TempAddrTTL)
	_, err := n.h.net.DialPeer(ctx, to.ID)
	return err
}

// NewStream opens a stream within ctx's deadline, which stays the stream's own until its user sets another.
func (n *node) NewStream(ctx context.Context, p peer.ID, protos ...protocol.ID) (network.Stream, error) {
	s, err := n.h.net.NewStream(ctx, p)
	if err != nil {
		return nil, explain(err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		s.SetDeadline(deadline)
	}
	chosen, err := mss.SelectOneOf(protos, s)
	if err == nil {
		err = s.SetProtocol(chosen)
	}
	if err != nil {
		s.Reset()
		return nil, fmt.Errorf("%s: %w", protos, explain(err))
	}
	return s, nil
}

func (n *node) SetStreamHandler(p protocol.ID, serve network.StreamHandler) { n.h.handle(p, serve) }

func (n *node) SetStreamHandlerMatch(p protocol.ID, match func(protocol.ID) bool, serve network.StreamHandler) {
	n.h.protos.AddHandlerWithFunc(p, match, func(p protocol.ID, s io.ReadWriteCloser) error {
		serve(s.(network.Stream))
		return nil
	})
}

func (n *node) RemoveStreamHandler(p protocol.ID) {
	n.h.protos.RemoveHandler(p)
	n.h.relayed.RemoveHandler(p)
}
