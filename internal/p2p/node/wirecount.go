package node

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/quic-go/quic-go"
)

// libp2p's bandwidth reporter misses TLS, yamux and QUIC. Here TCP is counted at its socket and QUIC by quic-go's
// statistics: all that the network carried except TCP, UDP and IP headers. Retransmissions do not count: the kernel
// does not report TCP's, so QUIC's are subtracted.

// wire counts the bytes of one TCP connection.
type wire struct{ sent, received atomic.Int64 }

// wireKey finds the counter in a connection's Stat().Extra.
type wireKey struct{}

// countedConn counts below TLS. The upgrader copies what Stat returns into the libp2p connection.
type countedConn struct {
	manet.Conn
	n *wire
}

func counted(c manet.Conn) manet.Conn { return countedConn{Conn: c, n: new(wire)} }

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.sent.Add(int64(n))
	return n, err
}

func (c countedConn) Stat() network.ConnStats {
	var s network.ConnStats
	if below, ok := c.Conn.(network.ConnStat); ok { // a relay's limits are recorded there
		s = below.Stat()
	}
	extra := map[any]any{wireKey{}: c.n}
	maps.Copy(extra, s.Extra)
	s.Extra = extra
	return s
}

// countingUpgrader puts a countedConn under every connection once the TCP transport has set its
// socket's options, and bounds how long sent data may stay unacknowledged.
type countingUpgrader struct {
	transport.Upgrader
	timeout time.Duration
}

func (u countingUpgrader) UpgradeGatedMaListener(t transport.Transport,
	l transport.GatedMaListener) transport.Listener {
	return foundListener{u.Upgrader.UpgradeGatedMaListener(t, countingListener{l, u.timeout})}
}

func (u countingUpgrader) Upgrade(ctx context.Context, t transport.Transport, c manet.Conn, dir network.Direction,
	p peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	boundTimeout(c, u.timeout)
	up, err := u.Upgrader.Upgrade(ctx, t, counted(c), dir, p, scope)
	return found(up), err
}

// foundConn lets As find a connection's counter: the WebSocket transport hides what Stat returns.
type foundConn struct {
	transport.CapableConn
	stat network.ConnStats
}

func found(c transport.CapableConn) transport.CapableConn {
	if s, ok := c.(network.ConnStat); ok {
		return foundConn{c, s.Stat()}
	}
	return c
}

func (c foundConn) Stat() network.ConnStats { return c.stat }

func (c foundConn) As(target any) bool {
	w, asked := target.(**wire)
	n, counts := c.stat.Extra[wireKey{}].(*wire)
	if asked && counts {
		*w = n
		return true
	}
	return c.CapableConn.As(target)
}

type foundListener struct{ transport.Listener }

func (l foundListener) Accept() (transport.CapableConn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return found(c), nil
}

type countingListener struct {
	transport.GatedMaListener
	timeout time.Duration
}

func (l countingListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	c, scope, err := l.GatedMaListener.Accept()
	if err != nil {
		return nil, nil, err
	}
	boundTimeout(c, l.timeout)
	return counted(c), scope, nil
}

// WireBytes reads the counter of a connection, also after it has closed.
func WireBytes(c network.Conn) (sent, received int64) {
	var n *wire
	if c.As(&n) {
		return n.sent.Load(), n.received.Load()
	}
	var q *quic.Conn
	if c.As(&q) {
		s := q.ConnectionStats()
		return int64(s.BytesSent) - int64(s.BytesLost), int64(s.BytesReceived)
	}
	return 0, 0
}
