package p2p

import (
	"fmt"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/heddle-gnn/heddle/comm"
)

// watch ends a link over QUIC on which nothing has come for Config.PeerTimeout. quic-go does so at the dialling end only: at
// the listening end its timeout is at least 5 s, and half as long again. Over TCP the kernel watches.
func (h *Host) watch(l *link) {
	var q *quic.Conn
	c, timeout := l.stream.Conn(), h.cfg.peerTimeout()
	if !c.As(&q) {
		return
	}
	last, at := uint64(0), time.Now()
	var look func()
	look = func() {
		if c.IsClosed() {
			return
		}
		if n := q.ConnectionStats().PacketsReceived; n != last {
			last, at = n, time.Now()
		} else if time.Since(at) >= timeout {
			l.fail(&comm.PeerError{Rank: l.rank, Name: l.name, Op: "recv", Err: fmt.Errorf("peer timeout: nothing has come from it for %s", timeout)}, 0)
			c.Close()
			return
		}
		time.AfterFunc(timeout/4, look)
	}
	look()
}
