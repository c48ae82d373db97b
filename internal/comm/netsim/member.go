package netsim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-gnn/heddle/comm"
)

// errPeerClosed is the cause of calls that deal with a member that has closed its transport.
var errPeerClosed = errors.New("closed by the peer")

// member is one end of the network's links.
type member struct {
	net                 *Network
	rank                int
	uplink              *uplink
	mu                  sync.Mutex
	links               map[int]*link // to members that one end has dealt with
	closeOnce, loseOnce sync.Once
	closed, lost        chan struct{}
}

// Close ends the member's own calls. Peers still receive what it had sent.
func (m *member) Close() error {
	m.closeOnce.Do(func() { close(m.closed) })
	return nil
}

// Free implements comm.Transport.
func (m *member) Free(frame []byte) { m.net.pool.Put(frame) }

// Send copies the frame and puts the copy into the link's queue, waiting for space.
func (m *member) Send(ctx context.Context, to int, head, body []byte) error {
	peer := m.peer(to)
	l := m.net.link(m.rank, to)
	kept := joined(&m.net.pool, head, body)
	for {
		if err := m.fault(ctx, peer, "send"); err != nil {
			return err
		}
		if closed(peer.closed) {
			return &comm.PeerError{Rank: to, Op: "send", Err: errPeerClosed}
		}
		if l.push(kept) {
			return nil
		}
		select {
		case <-l.room:
		case <-ctx.Done():
		case <-m.closed:
		case <-m.lost:
		case <-peer.closed:
		case <-peer.lost:
		}
	}
}

// Recv takes the next frame of the link once it has arrived.
func (m *member) Recv(ctx context.Context, from int) ([]byte, error) {
	peer := m.peer(from)
	l := m.net.link(from, m.rank)
	for {
		if err := m.fault(ctx, peer, "recv"); err != nil {
			return nil, err
		}
		leaving := peer.closed
		ended := closed(leaving) // looked at before the queue: what was sent before Close is in it
		frame, due := l.pop(false)
		if frame != nil {
			return frame, nil
		}
		if ended {
			if due == 0 {
				return nil, &comm.PeerError{Rank: from, Op: "recv", Err: errPeerClosed}
			}
			leaving = nil // it is known, and must not wake this loop again
		}
		var arrival <-chan time.Time
		if 0 < due && due < never {
			arrival = time.After(due)
		}
		select {
		case <-l.arrived:
		case <-arrival:
		case <-ctx.Done():
		case <-m.closed:
		case <-m.lost:
		case <-leaving:
		case <-peer.lost:
		}
	}
}

func (m *member) peer(q int) *member {
	if q == m.rank || q < 0 || q >= len(m.net.members) {
		panic(fmt.Sprintf("netsim: member %d of %d sends to or receives from %d", m.rank, len(m.net.members), q))
	}
	return m.net.members[q]
}

// fault is why a call of m that deals with peer cannot go on.
func (m *member) fault(ctx context.Context, peer *member, op string) error {
	switch {
	case closed(m.closed):
		return comm.ErrClosed
	case closed(m.lost):
		return &comm.PeerError{Rank: m.rank, Op: op, Err: ErrLost}
	case closed(peer.lost):
		return &comm.PeerError{Rank: peer.rank, Op: op, Err: ErrLost}
	}
	return ctx.Err()
}
