package p2p

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

// The first message on a session's stream, before any frame, is a roll each way: for each rank the
// attempt that the sender has met, a little-endian uint64, 0 for none.
const attemptBytes = 8

var errBroke = errors.New("the connection to it broke")

func (r *rendezvous) alive(p *pair) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.link != nil && !p.link.stream.Conn().IsClosed()
}

func (r *rendezvous) failed(p *pair, err error) {
	r.mu.Lock()
	p.last = err
	r.mu.Unlock()
}

// linked takes a stream on which both sides have agreed.
func (r *rendezvous) linked(s network.Stream, p *pair, attempt uint64) {
	s.SetDeadline(time.Time{})
	l := newLink(p.rank, p.member.Name, paced(s, r.host.cfg.MaxRate), &r.host.pool)
	r.mu.Lock()
	if r.over || s.Conn().IsClosed() {
		r.mu.Unlock()
		s.Reset()
		return
	}
	old := p.link
	dropped := r.drop(r.assembly.link(p.rank, attempt))
	p.link, p.last = l, nil
	r.listening.Go(func() { r.listen(p, l) })
	r.mu.Unlock()
	r.host.node.Watch(s.Conn(), l.silent)
	if old != nil {
		old.stream.Reset()
	}
	r.leave(dropped)
}

// drop takes links from their pairs. The caller has locked mu, and then calls leave without it.
func (r *rendezvous) drop(ranks []int) (links []*link) {
	for _, q := range ranks {
		if p := r.pairs[q]; p.link != nil {
			links = append(links, p.link)
			p.link = nil
		}
	}
	return links
}

// leave closes links so that their other ends notice, and lets wait look again.
func (r *rendezvous) leave(links []*link) {
	for _, l := range links {
		l.stream.Reset()
		l.stream.Conn().Close()
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// lost notes that a link has ended.
func (r *rendezvous) lost(p *pair, l *link, err error) {
	r.mu.Lock()
	if r.over || p.link != l {
		r.mu.Unlock()
		return
	}
	p.link, p.last = nil, node.Explain(err)
	dropped := append(r.drop(r.assembly.lose(p.rank)), l)
	r.mu.Unlock()
	r.leave(dropped)
}

// disconnected notes that a connection has closed, at whatever end.
func (r *rendezvous) disconnected(c network.Conn) {
	for _, p := range r.pairs {
		if p == nil {
			continue
		}
		r.mu.Lock()
		l := p.link
		r.mu.Unlock()
		if l != nil && l.stream.Conn() == c {
			r.lost(p, l, errBroke)
		}
	}
}

// listen reads the roll of a link's peer, which comes before the session begins.
func (r *rendezvous) listen(p *pair, l *link) {
	b := make([]byte, attemptBytes*len(r.members))
	if _, err := io.ReadFull(l.stream, b); err != nil {
		r.lost(p, l, err)
		return
	}
	roll := make([]uint64, len(r.members))
	for q := range roll {
		roll[q] = binary.LittleEndian.Uint64(b[attemptBytes*q:])
	}
	r.mu.Lock()
	if p.link == l {
		r.assembly.rolls[p.rank] = roll
	}
	r.mu.Unlock()
	r.leave(nil)
}

// settled reports to the others which members this one has met, once it has met all, and reports whether the session
// may begin: all members agree.
func (r *rendezvous) settled() bool {
	r.mu.Lock()
	roll, links := r.assembly.tell(), r.links()
	r.mu.Unlock()
	r.say(roll, links)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = r.assembly.agreed()
	return r.over
}

// links lists what links there are. The caller has locked mu.
func (r *rendezvous) links() (out []*link) {
	for _, p := range r.pairs {
		if p != nil && p.link != nil {
			out = append(out, p.link)
		}
	}
	return out
}

// say sends a roll, unless it is nil. If it cannot be sent the link ends, which listen notices.
func (r *rendezvous) say(roll []uint64, links []*link) {
	if roll == nil {
		return
	}
	var b []byte
	for _, attempt := range roll {
		b = binary.LittleEndian.AppendUint64(b, attempt)
	}
	var all sync.WaitGroup
	for _, l := range links {
		all.Go(func() {
			l.stream.SetWriteDeadline(time.Now().Add(node.HandshakeTime))
			if _, err := l.stream.Write(b); err != nil {
				l.stream.Reset()
				return
			}
			l.stream.SetWriteDeadline(time.Time{})
		})
	}
	all.Wait()
}
