package p2p

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	mss "github.com/multiformats/go-multistream"
)

const (
	handshakeTime = 10 * time.Second        // for one attempt: dial, TLS, hello and verdict
	retryFirst    = 50 * time.Millisecond   // wait after the first failed attempt; doubles up to retryMost
	retryMost     = time.Second             //
	secondDialler = 1500 * time.Millisecond // how long the higher rank waits to be dialled before it dials too
	statusEvery   = time.Second
)

// rendezvous is one Join in progress: a stream to every other member, whoever dials.
//
// The lower rank of a pair dials. The higher one dials too where the lower has no address for it, or does not get
// through. Of streams that cross, the lower rank chooses one.
type rendezvous struct {
	host    *Host
	members []member
	ours    greeting
	start   time.Time
	came    time.Time // when the last one came: who has long been waiting does not leave out who comes next
	quorum  *quorum   // nil: all members
	pairs   []*pair
	fatal   chan error    // capacity 1: a mismatch, which no retry mends
	changed chan struct{} // capacity 1: a pair has been linked
}

// pair is what one Join knows of one other member.
type pair struct {
	rank   int
	member member

	relayed  bool       // the higher rank has left it to the lower to come through a relay first; of dial alone
	choosing sync.Mutex // held by the lower rank from verdict to acknowledgement

	mu   sync.Mutex
	link *link
	over bool  // the session has begun: without this pair, where there is no link
	last error // of the last failed attempt
}

func (p *pair) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link != nil && !p.link.stream.Conn().IsClosed()
}

func (p *pair) failed(err error) {
	p.mu.Lock()
	p.last = err
	p.mu.Unlock()
}

// Join meets all other members of the roster and returns when a stream to each is agreed on. This host's rank is its
// index in the roster. It retries until ctx ends; the error then names who was missing and why. A member that speaks
// another protocol version, or whose hello differs, ends it at once with an error that says which part (MismatchError).
// A host has one session at a time.
func (h *Host) Join(ctx context.Context, roster Roster, hello Hello) (*Session, error) {
	return h.join(ctx, roster, hello, nil)
}

func (h *Host) join(ctx context.Context, roster Roster, hello Hello, q *quorum) (*Session, error) {
	members, err := roster.parse(h.cfg.maxPeers())
	if err != nil {
		return nil, err
	}
	rank := rankOf(members, h.cfg.Identity.id)
	if rank < 0 {
		return nil, fmt.Errorf("p2p: roster: this peer (%s) is not among the %d members", h.ID(), len(members))
	}
	r := &rendezvous{
		host: h, members: members, start: time.Now(), came: time.Now(), quorum: q,
		ours:  greeting{Hello: hello, rank: uint32(rank), size: uint32(len(members)), roster: fingerprint(members)},
		pairs: make([]*pair, len(members)), fatal: make(chan error, 1), changed: make(chan struct{}, 1),
	}
	for i, m := range members {
		if i != rank {
			r.pairs[i] = &pair{rank: i, member: m}
		}
	}
	if err := errors.Join(r.barred(), r.begin()); err != nil {
		return nil, err
	}
	dialCtx, stop := context.WithCancel(ctx)
	var dialling sync.WaitGroup
	for _, p := range r.pairs {
		if p != nil && (len(p.member.addrs) > 0 || h.indirect != nil || h.lan != nil) {
			dialling.Go(func() { r.dial(dialCtx, p) })
		}
	}
	err = r.wait(ctx)
	stop()
	dialling.Wait()
	return r.end(err)
}

func (r *rendezvous) rank() int { return int(r.ours.rank) }

func (r *rendezvous) begin() error {
	h := r.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHostClosed
	}
	if h.joining != nil || h.session != nil {
		return errors.New("p2p: join: the host is in a session already: close it first")
	}
	for _, p := range r.pairs {
		if p == nil {
			continue
		}
		for _, a := range p.member.addrs {
			if h.cfg.carries(a) {
				h.store.AddAddr(p.member.id, a, peerstore.PermanentAddrTTL)
			}
		}
	}
	h.joining = r
	h.gate.admit(r.members)
	return nil
}

// wait returns nil once every pair is linked, or as many as there must be.
func (r *rendezvous) wait(ctx context.Context) error {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		missing := r.missing()
		if r.enough(len(missing)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return r.absent(context.Cause(ctx), missing)
		case err := <-r.fatal:
			return err
		case <-r.changed:
			r.came = time.Now()
		case <-tick.C:
			if r.host.cfg.Waiting == nil {
				continue
			}
			for _, p := range missing {
				p.mu.Lock()
				last := p.last
				p.mu.Unlock()
				r.host.cfg.Waiting(p.member.name, time.Since(r.start), last)
			}
		}
	}
}

func (r *rendezvous) missing() []*pair {
	var out []*pair
	for _, p := range r.pairs {
		if p != nil && !p.alive() {
			out = append(out, p)
		}
	}
	return out
}

func (r *rendezvous) absent(cause error, missing []*pair) error {
	var b strings.Builder
	for i, p := range missing {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "peer %d (%s, %s): ", p.rank, p.member.name, p.member.id)
		p.mu.Lock()
		switch {
		case p.last != nil:
			b.WriteString(p.last.Error())
		case len(p.member.addrs) == 0:
			b.WriteString("did not connect, and the roster has no address to reach it")
		default:
			b.WriteString("did not answer")
		}
		p.mu.Unlock()
	}
	return fmt.Errorf("p2p: join: %w after %s waiting for %d of %d peers: %s",
		cause, time.Since(r.start).Round(time.Millisecond), len(missing), len(r.members)-1, b.String())
}

// end turns the rendezvous into a session, or undoes it.
func (r *rendezvous) end(err error) (*Session, error) {
	h := r.host
	h.mu.Lock()
	h.joining = nil
	if err == nil && h.closed {
		err = errHostClosed
	}
	var s *Session
	if err == nil {
		s = newSession(h, r)
		h.session = s
	}
	h.mu.Unlock()
	if err != nil {
		h.dismiss(r.members)
		return nil, err
	}
	return s, nil
}

// dismiss shuts the gate and forgets and disconnects the members.
func (h *Host) dismiss(members []member) {
	h.gate.admit(nil)
	for _, m := range members {
		if m.id != h.cfg.Identity.id {
			h.store.ClearAddrs(m.id)
			h.net.ClosePeer(m.id)
		}
	}
}

// dial keeps trying to link p until ctx ends, and again where a link broke while others are still awaited.
func (r *rendezvous) dial(ctx context.Context, p *pair) {
	backoff := retryFirst
	if r.rank() > p.rank && len(r.members[r.rank()].addrs) > 0 {
		// Many handshakes at once take their time: who dials too early makes more of them.
		sleep(ctx, secondDialler*time.Duration(1+len(r.members)/8))
	}
	for ctx.Err() == nil {
		if p.alive() {
			sleep(ctx, retryMost)
			continue
		}
		if err := r.attempt(ctx, p); err != nil && ctx.Err() == nil {
			p.failed(err)
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
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (r *rendezvous) attempt(ctx context.Context, p *pair) error {
	if err := r.reach(ctx, p); err != nil {
		return explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	s, err := r.host.net.NewStream(network.WithNoDial(network.WithAllowLimitedConn(ctx, "relay"), "reached"), p.member.id)
	if err != nil {
		return explain(err)
	}
	deadline, _ := ctx.Deadline()
	s.SetDeadline(deadline)
	unbind := context.AfterFunc(ctx, func() { s.Reset() })
	err = s.SetProtocol(sessionProtocol)
	if err == nil {
		err = mss.SelectProtoOrFail(sessionProtocol, s)
	}
	if _, wrong := errors.AsType[mss.ErrNotSupported[protocol.ID]](err); wrong {
		err = fmt.Errorf("p2p: peer %d (%s) does not speak %s: it runs another version of this program", p.rank, p.member.name, sessionProtocol)
		r.give(err)
	}
	if err == nil {
		err = r.shake(s, p, true, unbind)
	}
	unbind()
	if err != nil {
		s.Reset()
	}
	return explain(err)
}

// reach makes a connection to p, where there is none: directly, or else through a relay.
func (r *rendezvous) reach(ctx context.Context, p *pair) error {
	h, id := r.host, p.member.id
	if h.direct(id) {
		return nil
	}
	if h.lan != nil {
		h.lan.place(id)
	}
	if h.cfg.transport() == "auto" {
		h.choose(ctx, id)
	}
	patience := handshakeTime
	if h.indirect != nil {
		patience = directFirst
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A direct dial is forced to pass over libp2p's own back-off, which begins at 5 s.
	_, err := h.net.DialPeer(network.WithForceDirectDial(first, "roster"), id)
	if err == nil {
		return nil
	}
	h.forget(id)
	for _, a := range p.member.addrs { // those that choose had put aside
		if h.cfg.carries(a) {
			h.store.AddAddr(id, a, peerstore.PermanentAddrTTL)
		}
	}
	if h.indirect == nil || ctx.Err() != nil {
		return err
	}
	if r.rank() > p.rank && !p.relayed {
		// The lower rank is to come through a relay, so that one hole is punched at a time.
		p.relayed = true
		sleep(ctx, secondDialler)
		return err
	}
	if relayed := h.indirect.reach(ctx, id); relayed != nil {
		return errors.Join(explain(err), explain(relayed))
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
		if !p.alive() {
			p.failed(explain(err))
		}
	}
}
