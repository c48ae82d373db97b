package heddle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/admission"
	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/p2p/node"
	"github.com/heddle-gnn/heddle/privacy/dp"
	"github.com/heddle-gnn/heddle/session"
	"github.com/heddle-gnn/heddle/train"
)

// Join takes part, as one of p's members, in a run on several machines, and returns when the model
// is final. The identity in s says which member this is. With Site.State the run
// survives failures of peers. The error is an *InputError if the plan, the shard or the gate is at
// fault, and a *comm.PeerError if another peer is.
//
// Result.Own has predictions for the site's own nodes, computed with the rows of neighbours at other
// sites. Predict, with the model and the site's part only, does not use those rows.
//
// Of a plan with several Runs the result is that of the run that validates best. Their checkpoints are
// in directories seed-N of Site.State. Site.OnModel is called for each run that validates better than
// those before it.
func Join(ctx context.Context, p Plan, s Site) (result *Result, err error) {
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return nil, input(err)
	}
	if err := errors.Join(Seat(p, s.Shard, rank), input(s.Init.check(p, s.Shard))); err != nil {
		return nil, err
	}
	release, err := checkpoint.Lock(s.State)
	if err != nil {
		return nil, input(err)
	}
	defer release()
	defer func() {
		if unmet(err) {
			Decline(ctx, p, s)
		}
	}()
	keeper, err := s.admit(p, time.Now(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keeper.end(err)) }()
	left, err := (&checkpoint.Store{Dir: s.State}).List() // of one run: several have no budget
	if err != nil {
		return nil, input(err)
	}
	spend, err := spending(s.Ledger, p, []*shard.Shard{s.Shard}, len(left) > 0)
	if err != nil {
		return nil, err
	}
	training, stop := keeper.stops(ctx, rank)
	defer stop()
	for _, advice := range advise(p, s.Shard) {
		keeper.Warn("%s", advice)
	}
	if err := keeper.Recall(s.State); err != nil {
		return nil, err
	}
	at, err := s.sit(training, p, rank, keeper)
	if err != nil {
		return nil, err
	}
	at.spend = spend
	defer at.host.Close()
	at.leaves, err = s.collects(p, rank, secureSums(p, at.hello.Plan, idsOf(p), s.Identity), keeper.Event)
	if err != nil {
		return nil, err
	}
	result, err = at.runs(training)
	if at.leaves != nil {
		err = errors.Join(err, at.leaves.end(training, err))
	}
	if err == nil {
		result.warn(keeper.Event)
	}
	return result, p2p.Explained(named(p, err))
}

// runs trains by each of the plan's seeds, one after the other, and returns the run that validates best; without
// validation nodes that is the first. All sites choose alike, since all have the same figures.
func (a *seat) runs(ctx context.Context) (best *Result, err error) {
	plans := a.plan.Repeats()
	var all []*Result
	for k, p := range plans {
		one := *a
		one.plan, one.more = p, k < len(plans)-1
		if len(plans) > 1 {
			a.keeper.Event(Event{Kind: train.Note, Text: fmt.Sprintf("run %d of %d: seed %d", k+1, len(plans), p.Seed)})
			if a.State != "" {
				one.State = filepath.Join(a.State, fmt.Sprintf("seed-%d", p.Seed))
			}
		}
		one.OnModel = func(r *Result) error {
			if a.OnModel == nil || !r.ahead(best) {
				return nil
			}
			if r.Plan.Runs = 1; len(plans) > 1 {
				r.Runs = append(slices.Clone(all), r)
			}
			return a.OnModel(r)
		}
		r, err := one.train(ctx)
		if err != nil {
			return nil, err
		}
		r.Plan.Runs = 1
		if all = append(all, r); r.ahead(best) {
			best, r = r, best
		}
		if r != nil {
			r.Hidden = nil
		}
	}
	if len(all) > 1 {
		best.Runs = all
	}
	return best, nil
}

// ahead reports whether r validates better than the best run so far; nil: there is none.
func (r *Result) ahead(best *Result) bool {
	return best == nil || r.Metric.Gain(r.Val, best.Val) > 0 || math.IsNaN(best.Val) && !math.IsNaN(r.Val)
}

// Seat returns all faults of p and of a shard for the member of that rank.
func Seat(p Plan, own *shard.Shard, rank int) error {
	if err := sound(own); err != nil {
		return input(err)
	}
	if err := seated(p, own, rank); err != nil {
		return input(err)
	}
	return input(errors.Join(p.Check([]*shard.Shard{own}), CheckMembers(p), p.Only("join"), p.CheckRuns()))
}

// seated returns an error unless a shard is that of the member of p of that rank.
func seated(p Plan, own *shard.Shard, rank int) error {
	if own.Rank != rank || own.Parts != len(p.Members) {
		return fmt.Errorf("the shard is part %d of %d, but this peer (%s) is number %d of the %d in the plan", own.Rank, own.Parts, p.Members[rank].Name, rank, len(p.Members))
	}
	return nil
}

// seat is a site's place in a run, at whose host one session follows another.
type seat struct {
	Site
	plan    Plan
	rank    int
	keeper  *gatekeeper
	host    *p2p.Host // its owner closes it
	hello   p2p.Hello
	waiting *atomic.Int64 // nanoseconds that others are waited for at the moment
	spend   func(dp.Statement) error
	count   func()      // keeps that this run sends rows
	leaves  *collection // nil: there are none
	more    bool        // runs follow this one
}

func (s Site) sit(ctx context.Context, p Plan, rank int, keeper *gatekeeper) (*seat, error) {
	greeting, err := hello(p, s.Shard)
	if err != nil {
		return nil, err
	}
	at := &seat{Site: s, plan: p, rank: rank, keeper: keeper, hello: greeting,
		waiting: new(atomic.Int64),
		count:   keeper.counting(p, s.Shard)}
	at.host, err = keeper.open(ctx, s, p, rank, at.waiting)
	return at, err
}

// peer is this site's part in a run by p, with checkpoints in state; empty: none.
func (a *seat) peer(p Plan, state string) *peer {
	one := &peer{plan: p, name: p.Members[a.rank].Name, shard: p.InOrder(a.Shard), spend: a.spend, init: a.Init, embed: a.Embed}
	if state != "" {
		one.store = &checkpoint.Store{Dir: state}
	}
	if a.keeper.Policy != nil {
		one.publish = a.keeper.Policy.SiteFigures
	}
	return one
}

// attend takes part in sessions until what make makes is done. final is told when it is, and others may still need this
// peer.
func (a *seat) attend(ctx context.Context, store *checkpoint.Store, make func(*session.Session) (session.Trainer, error), final func(session.Trainer, session.Usage) error) (session.Trainer, session.Usage, error) {
	p := a.plan
	m := &session.Session{Reducer: secureSums(p, a.hello.Plan, idsOf(p), a.Identity), Rank: a.rank, Names: p.Names(), Progress: cmp.Or(p.ProgressTimeout, 5*time.Minute),
		Wait: a.Wait, Rejoin: a.Rejoin, More: a.more,
		Checkpoints: store, New: make, Event: a.keeper.Event, Final: final,
		Fatal: func(err error) bool { return errors.Is(err, p2p.ErrRevoked) }}
	if a.leaves != nil {
		m.Reducer = a.leaves.reducer
	}
	m.Meet = func(ctx context.Context) (*session.Connection, error) {
		if until, ok := ctx.Deadline(); ok {
			a.waiting.Store(int64(time.Until(until)))
		}
		joined, err := a.host.Join(ctx, a.keeper.members(p), a.hello)
		if err != nil {
			return nil, err
		}
		a.count()
		l := overNetwork(joined, func() error { return nil }) // the host stays for the next session
		l.Transport = a.keeper.over(l.Transport, p, a.rank, a.Shard)
		return &session.Connection{Transport: l.behind(a.Link, a.rank, len(p.Members), p.Seed), Wire: l.wire}, nil
	}
	return m.Run(ctx)
}

// result completes what one gave.
func (a *seat) result(one *peer, t session.Trainer, u session.Usage) (*Result, error) {
	r, err := one.result(t, u)
	if err == nil {
		r.Members, r.Link = a.plan.Names(), a.Link
		if r.Figures != nil {
			for k, one := range r.Figures.Published {
				r.Figures.Published[k].Name = r.Members[one.Rank]
			}
			if told := r.Figures.Told; told != nil {
				told.Name = r.Members[told.Rank]
			}
		}
	}
	return r, err
}

// train takes part in a run until its model is final.
func (a *seat) train(ctx context.Context) (*Result, error) {
	one := a.peer(a.plan, a.State)
	t, usage, err := a.attend(ctx, one.store, one.trainer, func(t session.Trainer, u session.Usage) error {
		r, err := a.result(one, t, u)
		if err != nil || a.OnModel == nil {
			return err
		}
		return a.OnModel(r)
	})
	if err != nil {
		return nil, err
	}
	return a.result(one, t, usage) // with what happened since the model was final
}

// unmet reports whether err is a fault at home before this site met the others, which would wait for it.
func unmet(err error) bool {
	var peer *comm.PeerError
	var plan *p2p.MismatchError
	known := errors.As(err, &peer) || errors.As(err, &plan) || errors.Is(err, comm.ErrRefused)
	return err != nil && !known && !errors.Is(err, context.DeadlineExceeded)
}

// declineTime is how long a site that cannot take part looks for the others.
const declineTime = 3 * time.Second

// Decline tells the other members of p that s cannot take part, if it can dial them: else they would wait for it. A
// site with checkpoints does not: its next process may go on.
func Decline(ctx context.Context, p Plan, s Site) {
	rank, err := p.Rank(s.Identity.PeerID())
	held, _ := (&checkpoint.Store{Dir: s.State}).List()
	if err != nil || ctx.Err() != nil || len(held) > 0 {
		return
	}
	h, err := p2p.Listen(node.Config{Identity: s.Identity, Transport: p.Carrier, MaxPeers: len(p.Members),
		Relays: p.Relays, PeerTimeout: p.PeerTimeout})
	if err != nil {
		return
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(ctx, declineTime)
	defer cancel()
	members := Roster(p)
	members.Members[rank].Addrs = nil // it dials, and waits for nobody
	h.Join(ctx, members, p2p.Hello{PlanText: p2p.Declined})
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
			k.Event(Event{Kind: train.Connection, Peer: slices.Index(p.Names(), name), Text: fmt.Sprintf("waiting for %s (%.10s…): %s of %s%s",
				name, p.IDOf(name), since.Round(time.Second), time.Duration(waiting.Load()).Round(time.Second), more)})
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
	if k.Policy != nil && k.Policy.ReceiveLimit > 0 && (limit == 0 || k.Policy.ReceiveLimit < limit) {
		limit = k.Policy.ReceiveLimit
	}
	return node.Config{Identity: s.Identity, Listen: at, Transport: p.Carrier, MaxPeers: len(p.Members), LAN: s.LAN, Interfaces: s.Interfaces, PeerTimeout: p.PeerTimeout, MaxRate: limit,
		Relays: slices.Concat(p.Relays, k.roster.RelayAddresses(time.Now()))}
}

// Session connects a plan's members for something other than training.
type Session struct {
	Group  *comm.Group
	Sums   comm.Reducer // over the group: secure where the plan's sums are
	Rank   int
	keeper *gatekeeper
	wire   func() int64 // bytes sent as the network carries them
}

// Record adds to the site's audit log, if it keeps one.
func (s *Session) Record(r admission.Record) { s.keeper.Record(r) }

// Left records in the audit log the bytes that have left this site since the last record. what says
// for which purpose.
func (s *Session) Left(what string) { s.keeper.Left(s.Group.Bytes(), what, 0) }

// Meet connects the members of p and calls do at each of them, for something other than training.
// All must call Meet with the same plan file and the same purpose in what. An error of do is
// returned as an *InputError, unless a peer failed or ctx has ended.
func Meet(ctx context.Context, p Plan, s Site, what string, do func(context.Context, *Session) error) (err error) {
	one := meeting{plan: p, what: what, do: func(ctx context.Context, m *Session) error {
		err := do(ctx, m)
		var failed *comm.PeerError
		if ctx.Err() != nil || errors.As(err, &failed) {
			return err
		}
		return input(err)
	}}
	one.hello = p2p.Hello{Plan: sha256.Sum256(append([]byte(what+"\n"), s.Gate.PlanText...)), PlanText: p.Agreed()}
	return one.attend(ctx, s)
}

// meeting is a session of all members of a plan without training.
type meeting struct {
	plan  Plan
	what  string // its purpose
	hello p2p.Hello
	sends func() (*disclosure.Disclosure, error) // as in Site.admit
	do    func(context.Context, *Session) error
}

// attend takes part in the meeting as site s.
func (m meeting) attend(ctx context.Context, s Site) (err error) {
	p := m.plan
	rank, err := p.Rank(s.Identity.PeerID())
	if err != nil {
		return input(err)
	}
	keeper, err := s.admit(p, time.Now(), m.sends)
	if err != nil {
		Decline(ctx, p, s)
		return err
	}
	defer func() { err = errors.Join(err, keeper.end(err)) }()
	ctx, stop := keeper.stops(ctx, rank)
	defer stop()
	var waiting atomic.Int64
	waiting.Store(int64(s.Wait))
	h, err := keeper.open(ctx, s, p, rank, &waiting)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	begin, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	session, err := h.Join(begin, keeper.members(p), m.hello)
	if err != nil {
		return p2p.Explained(err)
	}
	l := link{Transport: keeper.Within(session)}
	if s.Shard != nil {
		l.Transport = keeper.over(session, p, rank, s.Shard)
	}
	g := comm.NewGroup(l.behind(s.Link, rank, len(p.Members), 1), rank, len(p.Members))
	defer func() { err = errors.Join(err, g.Close()) }()
	g.LimitSilence(cmp.Or(p.ProgressTimeout, 5*time.Minute))
	sums, err := sumsOver(ctx, g, secureSums(p, sha256.Sum256([]byte(m.what+m.hello.PlanText)), idsOf(p), s.Identity))
	if err != nil {
		return named(p, err)
	}
	wire := func() int64 { sent, _ := session.WireBytes(); return sent }
	err = m.do(ctx, &Session{Group: g, Sums: sums, Rank: rank, keeper: keeper, wire: wire})
	if errors.Is(err, comm.ErrRefused) { // what is wrong at home may quote this site's tables
		err = g.Refuse(ctx, err)
	}
	return named(p, err)
}
