package heddle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/heddle-gnn/heddle/train/session"
)

// Join takes part, as one of p's members, in a run on several machines, and returns when the model
// is final. The identity in s says which member this is. With Site.State or Plan.MinPeers the run
// survives failures of peers. The error is an *InputError if the plan, the shard or the gate is at
// fault, and a *comm.PeerError if another peer is.
func Join(ctx context.Context, p Plan, s Site) (result *Result, err error) {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return nil, err
	}
	if err := p.Seat(s.Shard, rank); err != nil {
		return nil, err
	}
	keeper, err := s.admit(p, time.Now())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keeper.end(err)) }()
	training, stop := context.WithCancel(ctx)
	defer stop()
	keeper.stop = stop
	for _, advice := range p.advise(s.Shard) {
		keeper.warn("%s", advice)
	}
	one := &peer{plan: p, name: p.Members[rank].Name, shard: s.Shard}
	if s.State != "" {
		one.store = &checkpoint.Store{Dir: s.State}
	}
	if err := keeper.recall(s.State); err != nil {
		return nil, err
	}
	result, err = s.attend(training, p, rank, keeper, one)
	return result, explained(p.naming(err))
}

// Seat returns all faults of p and of a shard for the member of that rank.
func (p Plan) Seat(own *shard.Shard, rank int) error {
	if p.Mode == "standalone" {
		return input(errors.New("mode must be retexo or fullbatch to join (got standalone)"))
	}
	if own.Rank != rank || own.Parts != len(p.Members) {
		return input(fmt.Errorf("the shard is part %d of %d, but this peer (%s) is number %d of the %d in the plan", own.Rank, own.Parts, p.Members[rank].Name, rank, len(p.Members)))
	}
	return input(errors.Join(p.Check([]*shard.Shard{own}), p.CheckMembers(), p.Only("join")))
}

// attend takes part in the sessions of a run until its model is final.
func (s Site) attend(ctx context.Context, p Plan, rank int, keeper *gatekeeper, one *peer) (*Result, error) {
	var waiting atomic.Int64 // nanoseconds that others are waited for at the moment
	h, err := keeper.open(ctx, s, p, rank, &waiting)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	hello, err := p.hello(s.Shard)
	if err != nil {
		return nil, err
	}
	m := &session.Member{Rank: rank, Names: p.Names(), MinPeers: p.MinPeers, FailureWait: p.FailureWait, GracePeriod: p.GracePeriod, Progress: cmp.Or(p.ProgressTimeout, 5*time.Minute),
		Wait: s.Wait, Rejoin: s.Rejoin, Checkpoints: one.store, New: one.trainer, Event: keeper.event,
		Fatal: func(err error) bool { return errors.Is(err, p2p.ErrRevoked) }}
	m.Meet = func(ctx context.Context, least int) (*session.Connection, error) {
		if until, ok := ctx.Deadline(); ok {
			waiting.Store(int64(time.Until(until)))
		}
		joined, err := meet(ctx, h, keeper.members(p), hello, p, least)
		if err != nil {
			return nil, err
		}
		l := overNetwork(joined, func() error { return nil }) // the host stays for the next session
		l.Transport = keeper.over(l.Transport, p, rank, joined.Here(), s.Shard)
		return &session.Connection{Transport: l.behind(s.Link, rank, len(p.Members), p.Seed), Here: joined.Here(), Asks: joined.RejoinRequested, Wire: l.wire}, nil
	}
	measured := func(t session.Trainer, u session.Usage) (*Result, error) {
		r, err := one.result(t, u)
		if err == nil {
			r.Members, r.Link = p.Names(), s.Link
		}
		return r, err
	}
	m.Final = func(t session.Trainer, u session.Usage) error {
		r, err := measured(t, u)
		if err != nil || s.OnModel == nil {
			return err
		}
		return s.OnModel(r)
	}
	t, usage, err := m.Run(ctx)
	if err != nil {
		return nil, err
	}
	return measured(t, usage) // with what happened since the model was final
}

// meet joins a session of all members, or where a plan goes on without failed ones of at least so
// many.
func meet(ctx context.Context, h *p2p.Host, roster node.Roster, hello p2p.Hello, p Plan, least int) (*p2p.Session, error) {
	if p.MinPeers > 0 {
		return h.JoinSome(ctx, roster, hello, least, p.FailureWait)
	}
	return h.Join(ctx, roster, hello)
}

// open opens a site's host for a run, and lets it follow the roster until ctx ends. waiting has the
// nanoseconds that others are waited for.
func (k *gatekeeper) open(ctx context.Context, s Site, p Plan, rank int, waiting *atomic.Int64) (*p2p.Host, error) {
	network := k.host(s, p, rank)
	if err := network.Validate(); err != nil {
		return nil, input(err)
	}
	h, err := p2p.Listen(network)
	if err != nil {
		return nil, err
	}
	h.Waiting = func(name string, since time.Duration, last error) {
		if int(since.Seconds())%5 == 0 {
			more := ""
			if last != nil {
				more = fmt.Sprintf(" (last error: %v)", last)
			}
			k.note("waiting for %s (%.10s…): %s of %s%s", name, p.IDOf(name), since.Round(time.Second), time.Duration(waiting.Load()).Round(time.Second), more)
		}
	}
	go k.revoke(ctx, p, s.Identity.PeerID(), h)
	return h, nil
}

// host is what plan, policy and the site itself say of its host. Where several limit a rate the
// least holds.
func (k *gatekeeper) host(s Site, p Plan, rank int) node.Config {
	at := s.Listen
	if at == nil {
		at = k.members(p).Members[rank].Addrs
	}
	limit := s.ReceiveLimit
	if k.policy != nil && k.policy.ReceiveLimit > 0 && (limit == 0 || k.policy.ReceiveLimit < limit) {
		limit = k.policy.ReceiveLimit
	}
	return node.Config{Identity: s.Identity, Listen: at, Transport: p.Carrier, MaxPeers: len(p.Members), LAN: s.LAN, PeerTimeout: p.PeerTimeout, MaxRate: limit,
		Relays: slices.Concat(p.Relays, k.roster.RelayAddresses(time.Now()))}
}

// Session connects a plan's members for something other than training.
type Session struct {
	Group  *comm.Group
	Rank   int
	keeper *gatekeeper
}

// Record adds to the site's audit log, if it keeps one.
func (s *Session) Record(r admission.Record) { s.keeper.record(r) }

// Left records in the audit log the bytes that have left this site since the last record. what says
// for which purpose.
func (s *Session) Left(what string) { s.keeper.left(s.Group.Bytes(), what, 0) }

// Meet connects the members of p and calls do at each of them, for something other than training.
// All must call Meet with the same plan file and the same purpose in what. An error of do is
// returned as an *InputError, unless a peer failed or ctx has ended.
func Meet(ctx context.Context, p Plan, s Site, what string, do func(context.Context, *Session) error) (err error) {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return err
	}
	keeper, err := s.admit(p, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keeper.end(err)) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keeper.stop = stop
	var waiting atomic.Int64
	waiting.Store(int64(s.Wait))
	h, err := keeper.open(ctx, s, p, rank, &waiting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	meeting, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	session, err := h.Join(meeting, keeper.members(p), p2p.Hello{Plan: sha256.Sum256(append([]byte(what+"\n"), s.Gate.PlanText...)), PlanText: p.agreed()})
	if err != nil {
		return explained(err)
	}
	l := link{Transport: keeper.within(session)}
	g := comm.NewGroup(l.behind(s.Link, rank, len(p.Members), 1), rank, len(p.Members))
	defer func() { err = errors.Join(err, g.Close()) }()
	err = p.naming(do(ctx, &Session{Group: g, Rank: rank, keeper: keeper}))
	var failed *comm.PeerError
	if ctx.Err() != nil || errors.As(err, &failed) {
		return err
	}
	return input(err)
}
