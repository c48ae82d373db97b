package node

import (
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
