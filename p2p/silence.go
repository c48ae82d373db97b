package p2p

import (
	"fmt"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/heddle-gnn/heddle/comm"
)

// watch ends a link over QUIC on which nothing has come for Config.Silence. The dialling end has this of quic-go, whose
// listening end goes by no less than 5 s, and half of it again. Over TCP the kernel watches.
func (h *Host) watch(l *link) {
	var q *quic.Conn
	c, silence := l.stream.Conn(), h.cfg.silence()
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
		} else if time.Since(at) >= silence {
			l.fail(&comm.PeerError{Rank: l.rank, Name: l.name, Op: "recv", Err: fmt.Errorf("nothing has come from it for %s", silence)}, 0)
			c.Close()
			return
		}
		time.AfterFunc(silence/4, look)
	}
	look()
}
