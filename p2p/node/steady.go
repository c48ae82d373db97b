package node

import (
	"errors"
	"net"
	"syscall"
)

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
