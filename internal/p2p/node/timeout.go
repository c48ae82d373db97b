package node

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/quic-go/quic-go"
)

// Watch calls silent, and closes c, when nothing has come over QUIC for Config.PeerTimeout. At the
// listening end quic-go itself would wait at least 7.5 s. Over TCP the kernel watches.
func (n *Node) Watch(c network.Conn, silent func(time.Duration)) {
	var q *quic.Conn
	if !c.As(&q) {
		return
	}
	timeout, last, at := n.cfg.PeerTimeout, uint64(0), time.Now()
	var look func()
	look = func() {
		if c.IsClosed() {
			return
		}
		if n := q.ConnectionStats().PacketsReceived; n != last {
			last, at = n, time.Now()
		} else if time.Since(at) >= timeout {
			silent(timeout)
			c.Close()
			return
		}
		time.AfterFunc(timeout/4, look)
	}
	look()
}

// steadyUDP treats a packet without a route as lost. A machine that changes networks has no route
// for a moment, and quic-go would close every connection; so they survive up to Config.PeerTimeout.
type steadyUDP struct{ *net.UDPConn }

func listenSteady(network string, at *net.UDPAddr) (net.PacketConn, error) {
	c, err := net.ListenUDP(network, at)
	if err != nil {
		return nil, err
	}
	return steadyUDP{c}, nil
}

// WriteMsgUDP is what quic-go sends with.
func (c steadyUDP) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = c.UDPConn.WriteMsgUDP(b, oob, to)
	for _, passing := range noRoute {
		if errors.Is(err, passing) {
			return len(b), len(oob), nil
		}
	}
	return n, oobn, err
}

var noRoute = [...]syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EADDRNOTAVAIL, syscall.ENETDOWN}
