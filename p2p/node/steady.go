package node

import (
	"errors"
	"net"
	"syscall"
)

// steadyUDP takes a packet that the network does not accept for one that got lost. While a machine changes networks it
// has no route for a moment, and quic-go would give up every connection; so they outlive that, up to Config.PeerTimeout.
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
