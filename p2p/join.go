package p2p

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	mss "github.com/multiformats/go-multistream"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/internal/p2p/node"
	"github.com/heddle-gnn/heddle/p2p/identity"
)

const (
	retryFirst    = 50 * time.Millisecond   // wait after the first failed attempt; doubles up to retryMost
	retryMost     = time.Second             //
	linkedWait    = 100 * time.Millisecond  // between two looks whether a link is still there
	secondDialler = 1500 * time.Millisecond // how long the higher rank waits to be dialled before it dials too
	statusEvery   = time.Second
)

// rendezvous is one Join in progress: a stream to every other member; either end dials.
//
// The lower rank of a pair dials. The higher one also dials if the lower has no address for it or does not get through.
// If both dial at once, the lower rank chooses a stream.
type rendezvous struct {
	host      *Host
	members   []node.Peer
	ours      greeting
	start     time.Time
	pairs     []*pair
	fatal     chan error    // capacity 1: a mismatch, which no retry mends
	changed   chan struct{} // capacity 1: something has happened to a link
	listening sync.WaitGroup

	mu       sync.Mutex // of what follows, and of link and last of each pair
	assembly assembly
	over     bool // the session has begun, or the attempt has failed: no more links
}

// pair is what one Join knows of one other member.
type pair struct {
	rank   int
	member node.Peer

	relayed  bool        // the higher rank has left it to the lower to come through a relay first; only for dial
	choosing sync.Mutex  // held by the lower rank from verdict to acknowledgement
	informed atomic.Bool // it knows why the attempt has failed

	link *link
	last error // of the last failed attempt
}

// Join connects to all other members of the roster and returns when each pair has agreed on a
// stream. This host's rank is its index in the roster. Join retries until ctx ends; the error then
// names the missing members and why. If a member has another protocol version or hello, Join ends
// at once at all members with a MemberMismatchError. A host has one session at a time.
func (h *Host) Join(ctx context.Context, roster identity.Roster, hello Hello) (*Mesh, error) {
	members, err := h.node.Members(roster)
	if err != nil {
		return nil, err
	}
	rank := rankOf(members, h.node.ID())
	if rank < 0 {
		return nil, fmt.Errorf("roster: this peer (%s) is not among the %d members", h.ID(), len(members))
	}
	if len(hello.PlanText) > maxPlanText {
		return nil, fmt.Errorf("hello: the plan must have at most %d bytes (got %d)", maxPlanText,
			len(hello.PlanText))
	}
	r := newRendezvous(h, members, rank, hello)
	if err := errors.Join(r.barred(), r.begin()); err != nil {
		return nil, err
	}
	dialCtx, stop := context.WithCancel(ctx)
	var dialling sync.WaitGroup
	for _, p := range r.pairs {
		if p != nil && h.node.Dials(p.member) {
			dialling.Go(func() { r.dial(dialCtx, p) })
		}
	}
	if err = r.wait(ctx); err != nil {
		r.spread(ctx, err)
	}
	stop()
	dialling.Wait()
	return r.end(err)
}

func newRendezvous(h *Host, members []node.Peer, rank int, hello Hello) *rendezvous {
	attempt := newAttempt()
	r := &rendezvous{
		host: h, members: members, start: time.Now(),
		ours: greeting{Hello: hello, rank: uint32(rank), size: uint32(len(members)), roster: fingerprint(members),
			attempt: attempt},
		pairs: make([]*pair, len(members)), fatal: make(chan error, 1), changed: make(chan struct{}, 1),
		assembly: newAssembly(rank, len(members), attempt),
	}
	for i, m := range members {
		if i != rank {
			r.pairs[i] = &pair{rank: i, member: m}
		}
	}
	return r
}

// newAttempt returns a random number for an attempt to join.
func newAttempt() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return max(binary.LittleEndian.Uint64(b[:]), 1)
}

func (r *rendezvous) rank() int { return int(r.ours.rank) }

func (r *rendezvous) begin() error {
	h := r.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHostClosed
	}
	if h.joining != nil || h.mesh != nil {
		return errors.New("join: the host is in a session already: close it first")
	}
	h.joining = r
	h.node.Admit(r.members)
	return nil
}

// wait returns nil once the session may begin.
func (r *rendezvous) wait(ctx context.Context) error {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for !r.settled() {
		select {
		case <-ctx.Done():
			return r.absent(context.Cause(ctx))
		case err := <-r.fatal:
			return err
		case <-r.changed:
		case <-tick.C:
			if r.host.Waiting == nil {
				continue
			}
			var all []Missing
			for _, p := range r.missing() {
				all = append(all, p.Missing)
			}
			r.host.Waiting(all, time.Since(r.start))
		}
	}
	return nil
}

// waited is a member that a Join waits for.
type waited struct {
	node.Peer
	Missing
}

// missing lists the members without a stream, or else those that have not met the same members.
func (r *rendezvous) missing() (out []waited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, linked := range []bool{false, true} {
		for _, p := range r.pairs {
			if p != nil && (p.link != nil) == linked && !(linked && r.assembly.confirms(p.rank)) {
				out = append(out, waited{p.member, Missing{p.rank, linked, p.last}})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

func (r *rendezvous) absent(cause error) error {
	missing := r.missing()
	why, names := make([]string, len(missing)), make([]string, len(missing))
	for i, p := range missing {
		last := "did not answer"
		names[i] = p.Name
		switch {
		case p.Last != nil:
			last = p.Last.Error()
		case p.Connected:
			last = "is connected, but has not met all members"
		case len(p.Addrs) == 0:
			last = "did not connect, and the roster has no address to reach it"
		case r.host.cfg.Transport == "quic":
			last = fmt.Sprintf("%s: %s", p.Addrs[0], node.NoAnswer)
		}
		why[i] = fmt.Sprintf("peer %d (%s, %s): %s", p.Rank, p.Name, p.ID, last)
	}
	return &comm.WaitError{Missing: names, Err: fmt.Errorf("join: %w after %s waiting for %d of %d peers: %s",
		cause, time.Since(r.start).Round(time.Millisecond), len(missing), len(r.members)-1, strings.Join(why, "; "))}
}

// end turns the rendezvous into a session, or undoes it.
func (r *rendezvous) end(err error) (*Mesh, error) {
	h := r.host
	if err != nil {
		r.mu.Lock()
		r.over = true
		links := r.links()
		r.mu.Unlock()
		r.leave(links)
	}
	h.mu.Lock()
	h.joining = nil
	if err == nil && h.closed {
		err = errHostClosed
	}
	var s *Mesh
	if err == nil {
		s = newSession(h, r)
		h.mesh = s
	}
	h.mu.Unlock()
	if err != nil {
		h.node.Dismiss(r.members)
		r.listening.Wait()
		return nil, err
	}
	s.noticeEarlier()
	return s, nil
}

// dial keeps linking p until ctx ends, also after a link broke while others are missing.
func (r *rendezvous) dial(ctx context.Context, p *pair) {
	backoff := retryFirst
	if r.rank() > p.rank && len(r.members[r.rank()].Addrs) > 0 {
		// Many handshakes at once are slow, and a member that dials too early adds more of them.
		sleep(ctx, secondDialler*time.Duration(1+len(r.members)/8))
	}
	for ctx.Err() == nil {
		if r.alive(p) {
			sleep(ctx, linkedWait)
			backoff = retryFirst
			continue
		}
		if err := r.attempt(ctx, p); err != nil && ctx.Err() == nil {
			r.failed(p, err)
			if errors.Is(err, syscall.EMFILE) { // it would come again
				r.give(err)
			}
		}
		sleep(ctx, backoff)
		backoff = min(2*backoff, retryMost)
	}
}

// give ends the rendezvous with an error that no retry mends.
func (r *rendezvous) give(err error) {
	select {
	case r.fatal <- err:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *rendezvous) attempt(ctx context.Context, p *pair) error {
	if err := r.reach(ctx, p); err != nil {
		return node.Explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, node.HandshakeTime)
	defer cancel()
	s, err := r.host.node.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, "relay"), "reached"),
		p.member.ID, sessionProtocol)
	if _, wrong := errors.AsType[mss.ErrNotSupported[protocol.ID]](err); wrong {
		if m := r.otherVersion(ctx, p); m != nil {
			r.giveUp(m)
			return m
		}
		err = errors.New("it has not begun to join") // its host is the program's, which takes the protocol later
	}
	if err != nil {
		return err
	}
	unbind := context.AfterFunc(ctx, func() { s.Reset() })
	err = r.shake(s, p, true, unbind)
	if unbind(); err != nil {
		s.Reset()
	}
	return node.Explain(err)
}

// mostVersion is the last version of the session's protocol that is asked for.
const mostVersion = 32

// otherVersion is the error of a member that speaks another version of the session's protocol, which it asks for; nil
// if the member speaks none.
func (r *rendezvous) otherVersion(ctx context.Context, p *pair) *MemberMismatchError {
	var others []protocol.ID
	for v := range mostVersion {
		if one := protocol.ID(fmt.Sprintf("/heddle/session/%d", v+1)); one != sessionProtocol {
			others = append(others, one)
		}
	}
	s, err := r.host.node.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, "relay"), "reached"),
		p.member.ID, others...)
	if err != nil {
		return nil
	}
	defer s.Reset()
	return &MemberMismatchError{Rank: p.rank, Name: p.member.Name, Part: partVersion, Ours: string(sessionProtocol),
		Peer: string(s.Protocol())}
}

// reach makes a connection to p, if there is none: directly, or else through a relay.
func (r *rendezvous) reach(ctx context.Context, p *pair) error {
	n := r.host.node
	err := n.Dial(ctx, p.member)
	if err == nil || !n.Relayed() || ctx.Err() != nil {
		return err
	}
	if r.rank() > p.rank && !p.relayed {
		// The lower rank is to come through a relay, so that one hole is punched at a time.
		p.relayed = true
		sleep(ctx, secondDialler)
		return err
	}
	if relayed := n.DialRelayed(ctx, p.member.ID); relayed != nil {
		return errors.Join(node.Explain(err), node.Explain(relayed))
	}
	return nil
}

// answer serves a session stream that a member opened.
func (r *rendezvous) answer(s network.Stream) {
	rank := rankOf(r.members, s.Conn().RemotePeer())
	if rank < 0 || r.pairs[rank] == nil {
		s.Reset()
		return
	}
	p := r.pairs[rank]
	if err := r.shake(s, p, false, func() bool { return true }); err != nil {
		s.Reset()
		if !r.alive(p) {
			r.failed(p, node.Explain(err))
		}
	}
}

func rankOf(members []node.Peer, id peer.ID) int {
	return slices.IndexFunc(members, func(m node.Peer) bool { return m.ID == id })
}
