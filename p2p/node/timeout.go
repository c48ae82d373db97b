package node

import (
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/quic-go/quic-go"
)

// Watch calls silent, and closes c, when nothing has come over QUIC for Config.PeerTimeout. quic-go notices that at the dialling
// end only: at the listening end its timeout is at least 5 s, and half as long again. Over TCP the kernel watches.
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
