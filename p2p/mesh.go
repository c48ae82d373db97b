package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
)

const (
	goodbyeTime = 5 * time.Second // that Close gives its peers to take what was sent
	maxRest     = 32 << 20        // bytes: above the 16 MiB window of yamux and the 10 MB of QUIC

	goodbyeTaken = 1 // the answer to a goodbye
)

// lostCode is the code with which a peer resets its streams when it gives up because it lost the
// member of rank code − lostCode. It lets the others name the one at fault.
const lostCode network.StreamErrorCode = 0x48440000

// Mesh is a comm.Transport of a fixed set of members with a stream between each two. A fault
// ends its link: all later calls that deal with that peer fail with the same *comm.PeerError.
//
// If a peer's connection breaks or it aborts, the session ends at once: every call fails with the
// *comm.PeerError of the failed peer.
type Mesh struct {
	host    *Host
	rank    int
	members []node.Peer
	links   []*link                        // nil at our own rank
	listens *sync.WaitGroup                // what still reads rolls
	culprit atomic.Pointer[comm.PeerError] // the first fault that was found
	over    atomic.Pointer[comm.PeerError] // the loss that ended it
	closed  atomic.Bool
	close   sync.Once
}

var _ comm.Transport = (*Mesh)(nil)

func newSession(h *Host, r *rendezvous) *Mesh {
	s := &Mesh{host: h, rank: r.rank(), members: r.members, links: make([]*link, len(r.members)), listens: &r.listening}
	for i, p := range r.pairs {
		if p != nil {
			s.links[i] = p.link
		}
	}
	return s
}

// noticeEarlier finds the connections that broke before the session could notice.
func (s *Mesh) noticeEarlier() {
	for _, l := range s.links {
		if l != nil && l.stream.Conn().IsClosed() {
			s.lose(l, errBroke)
		}
	}
}

// disconnected notes that a connection has closed, at whatever end.
func (s *Mesh) disconnected(c network.Conn) {
	for _, l := range s.links {
		if l != nil && l.stream.Conn() == c {
			s.lose(l, errBroke)
		}
	}
}

// lose ends a link whose peer is gone without a goodbye, and the session.
func (s *Mesh) lose(l *link, err error) {
	if s.closed.Load() || l.left.Load() {
		return
	}
	e := l.fail(s.blame(l, "session", err), s.reason())
	if errors.Is(e, ErrRevoked) { // this member has shut it out itself
		return
	}
	s.culprit.CompareAndSwap(nil, e)
	if !s.over.CompareAndSwap(nil, e) {
		return
	}
	for _, other := range s.links {
		if other != nil && other != l {
			other.stream.SetDeadline(past) // calls in progress end
		}
	}
}

// Rank is this peer's index in the roster.
func (s *Mesh) Rank() int { return s.rank }

// Size is the number of members, this peer included.
func (s *Mesh) Size() int { return len(s.members) }

// Send sends a frame to the member of rank to. It returns when the transport has taken all of it;
// if the flow-control window is full (at most 16 MiB over TCP, 10 MB over QUIC) it waits for the
// peer. If ctx ends after a part of the frame was sent, the link ends.
func (s *Mesh) Send(ctx context.Context, to int, head, body []byte) error {
	l := s.link(to)
	if err := s.ready(ctx, l, "send"); err != nil {
		return err
	}
	if n, limit := len(head)+len(body), s.host.cfg.MaxFrame; n > limit {
		return fmt.Errorf("a frame to peer %d (%s) must have at most %d bytes (got %d)", to, l.name, limit, n)
	}
	clean, err := l.write(ctx, head, body)
	return s.outcome(ctx, l, "send", clean, err)
}

// Recv takes the next frame from the member of rank from. If ctx ends first, nothing is lost.
func (s *Mesh) Recv(ctx context.Context, from int) ([]byte, error) {
	l := s.link(from)
	if err := s.ready(ctx, l, "recv"); err != nil {
		return nil, err
	}
	frame, clean, err := l.read(ctx, s.host.cfg.MaxFrame)
	return frame, s.outcome(ctx, l, "recv", clean, err)
}

// Free implements comm.Transport.
func (s *Mesh) Free(frame []byte) { s.host.pool.Put(frame) }

func (s *Mesh) link(rank int) *link {
	if rank < 0 || rank >= len(s.links) || rank == s.rank {
		panic(fmt.Sprintf("p2p: no link from rank %d to rank %d of %d", s.rank, rank, len(s.links)))
	}
	return s.links[rank]
}

func (s *Mesh) ready(ctx context.Context, l *link, op string) error {
	if s.closed.Load() {
		return comm.ErrClosed
	}
	if f := s.over.Load(); f != nil {
		return f
	}
	if f := l.fault.Load(); f != nil {
		return f
	}
	if err := ctx.Err(); err != nil {
		return &comm.PeerError{Rank: l.rank, Name: l.name, Op: op, Err: err}
	}
	return nil
}

func (s *Mesh) outcome(ctx context.Context, l *link, op string, clean bool, err error) error {
	if err == nil {
		return nil
	}
	if s.closed.Load() {
		return comm.ErrClosed
	}
	if f := s.over.Load(); f != nil {
		return f
	}
	if ctx.Err() != nil && isTimeout(err) {
		// The caller gave up. That is a fault of the link only if a frame was cut in two.
		e := &comm.PeerError{Rank: l.rank, Name: l.name, Op: op, Err: ctx.Err()}
		if !clean {
			return l.fail(e, s.reason())
		}
		return e
	}
	e := s.blame(l, op, err)
	if !errors.Is(err, comm.ErrRefused) { // else the link still takes why the run ends
		e = l.fail(e, s.reason())
		s.culprit.CompareAndSwap(nil, e)
	}
	return e
}

// reason is the code that informs a peer why its link ends: which member failed, if one did.
func (s *Mesh) reason() network.StreamErrorCode {
	if c := s.culprit.Load(); c != nil {
		return lostCode + network.StreamErrorCode(c.Rank)
	}
	return 0
}

// blame finds the member at fault for an error on l: its peer, or the member that its peer reports as lost.
func (s *Mesh) blame(l *link, op string, err error) *comm.PeerError {
	if cut, ok := errors.AsType[*network.StreamError](err); ok && cut.Remote && cut.ErrorCode >= lostCode {
		if code := cut.ErrorCode - lostCode; code < network.StreamErrorCode(len(s.members)) && int(code) != s.rank &&
			int(code) != l.rank {
			return &comm.PeerError{Rank: int(code), Name: s.members[code].Name, Op: op,
				Err: fmt.Errorf("lost, as peer %d (%s) reports", l.rank, l.name)}
		}
		err = fmt.Errorf("it gave up on this peer: %w", err)
	}
	return &comm.PeerError{Rank: l.rank, Name: l.name, Op: op, Err: err}
}

// Close ends the session. The other members receive all frames that Send has taken if they do so
// within five seconds. Calls in progress fail. If a peer failed, Close only reports to the others which
// one. The host can then Join again.
func (s *Mesh) Close() error {
	s.close.Do(func() {
		s.closed.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeTime)
		culprit := s.culprit.Load()
		var all sync.WaitGroup
		for _, l := range s.links {
			switch {
			case l == nil:
			case culprit != nil:
				l.stream.ResetWithError(s.reason())
				all.Go(func() {
					if l.fault.Load() == nil {
						l.confirm(ctx)
					}
					l.stream.Conn().Close() // so that the others notice at once, on the program's host as well
				})
			default:
				all.Go(func() { l.goodbye(ctx) })
			}
		}
		all.Wait()
		cancel()
		for _, l := range s.links {
			if l != nil {
				l.stream.Reset() // a connection of the program's host stays, and would keep it
			}
		}
		s.host.node.Dismiss(s.members)
		s.listens.Wait()
		s.host.mu.Lock()
		s.host.mesh = nil
		s.host.mu.Unlock()
	})
	return nil
}

// onGoodbye answers a peer that leaves: all it has sent is in our memory now, or no longer wanted.
func (s *Mesh) onGoodbye(b network.Stream) {
	defer b.Close()
	for _, l := range s.links {
		if l == nil || l.stream.Conn() != b.Conn() {
			continue
		}
		if !s.closed.Load() {
			if err := l.drain(); err != nil {
				s.lose(l, err)
			} else {
				l.left.Store(true)
			}
		}
		b.Write([]byte{goodbyeTaken})
	}
}

// WireBytes counts what the session's connections have carried, handshakes included: TCP payload
// (TLS and yamux in it) or QUIC packets. IP, TCP and UDP headers are not in it.
func (s *Mesh) WireBytes() (sent, received int64) {
	for _, l := range s.links {
		if l != nil {
			out, in := node.WireBytes(l.stream.Conn())
			sent, received = sent+out, received+in
		}
	}
	return sent, received
}

// ErrRevoked reports that a peer's membership was revoked.
var ErrRevoked = errors.New("its membership was revoked")

// Revoke shuts out the peer with this ID for as long as the host lives. It closes its connections,
// refuses its handshakes, and fails calls that deal with it with a *comm.PeerError that wraps
// ErrRevoked. The other links go on. A Join that waits for the peer ends.
func (h *Host) Revoke(id string, why string) error {
	p, err := peer.Decode(id)
	if err != nil {
		return fmt.Errorf("revoke: peer ID %q: %w", id, err)
	}
	fault := fmt.Errorf("%w: %s", ErrRevoked, why)
	h.node.Revoke(p, fault)
	joining, session := h.state()
	if joining != nil && rankOf(joining.members, p) >= 0 {
		joining.give(joining.barred())
	}
	if session != nil {
		if rank := rankOf(session.members, p); rank >= 0 && rank != session.rank {
			l := session.links[rank]
			e := l.fail(&comm.PeerError{Rank: rank, Name: l.name, Op: "roster", Err: fault}, 0)
			session.culprit.CompareAndSwap(nil, e)
		}
	}
	h.node.Disconnect(p)
	return nil
}

// barred is the fault of a roster that lists a revoked peer; nil when there is none.
func (r *rendezvous) barred() error {
	for i, m := range r.members {
		if why := r.host.node.Revoked(m.ID); why != nil {
			return fmt.Errorf("roster: %w", &comm.PeerError{Rank: i, Name: m.Name, Op: "join", Err: why})
		}
	}
	return nil
}
