package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	slow "github.com/heddle-gnn/heddle/comm/link"
	"github.com/heddle-gnn/heddle/p2p"
	"github.com/heddle-gnn/heddle/retexo"
)

// attendance is one peer's part in a run, over as many sessions as it takes.
type attendance struct {
	seat seat
	plan *agreement
	rank int
	site *site
	way  *slow.Table // a slower network in between, or nil
	work work

	write  func(*outcome) error // what this peer makes of the run, again where it was written before
	joined *p2p.Session         // the last one
	away   []absence            // by rank, where the plan lets the run go on without lost peers
	whole  []bool               // the same: who has the model
}

// stay trains until the model is done. Where a peer is lost, and there are checkpoints or the plan lets the others go on,
// this one meets the others in another session; without one round in all the time that a lost peer is waited for, it
// gives up.
func (a *attendance) stay(ctx context.Context, id p2p.Identity) (*outcome, error) {
	a.seat.waiting = new(atomic.Int64)
	h, err := a.seat.open(ctx, a.plan, a.site, a.rank, id, a.work.watch)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	moved := time.Now()
	a.work.advanced = func() { moved = time.Now() }
	if a.plan.MinPeers > 0 {
		if err := a.survive(); err != nil {
			return nil, err
		}
	}
	wait := a.seat.wait
	var done *outcome
	for {
		a.seat.waiting.Store(int64(wait))
		o, err := a.session(ctx, h, wait)
		if o != nil && done != nil { // what there is to measure was measured before
			o.Seconds, o.Load, o.Peers = done.Seconds, done.Load, done.Peers
		}
		if err == nil {
			return o, nil
		}
		if done = cmp.Or(o, done); done != nil { // this peer's model is whole; another may need it, but not for long
			if wait = a.plan.LostWait + lastWait; o == nil || ctx.Err() != nil {
				return done, nil
			}
			if errors.Is(err, retexo.ErrRegroup) {
				a.work.watch.log.Info("a lost peer is back, and is given the model")
			}
			continue
		}
		if a.joined == nil && a.plan.MinPeers > 0 && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w. If the others have ended the run, they all hold its model: take model.safetensors from any of them", err)
		}
		if ctx.Err() != nil || a.seat.rejoin == 0 || errors.Is(err, p2p.ErrRevoked) || !a.again(err) {
			return nil, err
		}
		if errors.Is(err, retexo.ErrRegroup) {
			a.work.watch.log.Info("a lost peer is back")
			wait = a.seat.rejoin
			continue
		}
		if wait = a.seat.rejoin - time.Since(moved); wait <= 0 {
			return nil, fmt.Errorf("no round was done for %v: %w", a.seat.rejoin, err)
		}
		a.work.watch.log.Warn("a peer is lost; "+a.patience(err), "at most", wait.Round(time.Second), "error", a.plan.naming(err))
		select { // whoever is to blame has a moment to notice, and a fault that comes at once does not spin
		case <-time.After(min(time.Second, wait)):
		case <-ctx.Done():
		}
	}
}

// lastWait is how much longer than a lost peer a peer whose model is done waits for others who may need it.
const lastWait = 5 * time.Second

// again reports whether another session may follow one that ended with err.
func (a *attendance) again(err error) bool {
	var lost *comm.PeerError
	if a.work.layers == nil {
		return a.work.store != nil && errors.As(err, &lost)
	}
	return gone(err) || errors.Is(err, retexo.ErrRegroup)
}

// patience says what is waited for after err, and sees to it that the next session does.
func (a *attendance) patience(err error) string {
	l := a.work.layers
	if l == nil {
		return "waiting for it"
	}
	q := l.agreed
	q.least, q.without = a.plan.MinPeers, nil
	var lost *comm.PeerError
	switch {
	case errors.Is(err, retexo.ErrLostRows):
		q.least = len(a.plan.Peers)
		return "its rows are wanted, waiting for it"
	case errors.Is(err, retexo.ErrSlow) && errors.As(err, &lost) && lost.Rank != a.rank:
		q.without = make([]bool, len(a.plan.Peers))
		q.without[lost.Rank] = true
		return "going on without it, which is slow"
	}
	return fmt.Sprintf("going on with %d or more after %v", q.least, a.plan.LostWait)
}

// survive makes the trainer that goes on from session to session.
func (a *attendance) survive() (err error) {
	if a.work.layers, err = a.work.learner(); err != nil {
		return err
	}
	l := a.work.layers
	l.agreed.limit = a.plan.LostWait + agreeTime
	a.work.done = a.linger
	a.away, a.whole = make([]absence, len(a.plan.Peers)), make([]bool, len(a.plan.Peers))
	l.Knock = func() bool {
		s := a.joined
		for q := range a.away {
			if s.Knocked(q) && a.away[q].over(a.plan.LostWait) {
				return true
			}
		}
		return false
	}
	told := l.Observer.Generation
	l.Observer.Generation = func(g retexo.GenerationInfo) {
		for q := range a.away {
			if !slices.Contains(g.Members, q) {
				a.away[q].times++
				a.away[q].since = time.Now()
			}
		}
		if told != nil {
			told(g)
		}
	}
	return nil
}

// linger keeps the members of the last generation together for lost peers: one that comes back within the plan's time
// is let in, as in a round, and fetches the model. What this peer made is written before. All count the same
// ticks, so all leave after the same.
func (a *attendance) linger(ctx context.Context, g *comm.Group, o *outcome) error {
	var lost []int
	var names []string
	for q, m := range a.plan.Peers {
		if a.whole[q] = a.whole[q] || g.Has(q); !a.whole[q] {
			lost, names = append(lost, q), append(names, m.Name)
		}
	}
	if len(lost) == 0 || a.plan.Linger == 0 {
		return nil
	}
	o.Names = a.plan.names()
	if err := a.write(o); err != nil {
		return err
	}
	a.work.watch.log.Info("the model is done and written; staying for lost peers", "peers", fmt.Sprint(names), "at most", a.plan.Linger)
	for range a.plan.Linger / lingerTick {
		select {
		case <-time.After(lingerTick):
		case <-ctx.Done():
			return ctx.Err()
		}
		var knock [1]float32
		for _, q := range lost {
			if a.joined.Knocked(q) && a.away[q].over(a.plan.LostWait) {
				knock[0] = 1
			}
		}
		if err := g.AllReduce(ctx, comm.Control, knock[:]); err != nil {
			return err
		}
		if knock[0] > 0 {
			return retexo.ErrRegroup
		}
	}
	return nil
}

// lingerTick is how often peers that linger tell each other whether anybody is back.
const lingerTick = time.Second

// agreeTime is how much longer than a lost peer the members of a generation wait for one another to agree on it.
const agreeTime = 30 * time.Second

// absence is how often a generation began without a peer, and when the last one did.
type absence struct {
	times int
	since time.Time
}

// over reports whether a peer that knocks is to be let in: at once when it was lost for the first time, and later each
// time, so that one that is lost again and again does not hold up the others.
func (a absence) over(unit time.Duration) bool {
	return time.Since(a.since) >= unit*time.Duration(1<<min(max(a.times-1, 0), 4)-1)
}

// session meets the other peers and trains until the model is done or one of them is lost.
func (a *attendance) session(ctx context.Context, h *p2p.Host, wait time.Duration) (*outcome, error) {
	plan, err := a.plan.fingerprint(taskOf(a.work.shard))
	if err != nil {
		return nil, err
	}
	meeting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	roster, hello := a.site.peers(a.plan), p2p.Hello{Plan: plan, Partition: a.work.shard.Fingerprint}
	var s *p2p.Session
	if l := a.work.layers; l != nil {
		if s, err = h.JoinSome(meeting, roster, hello, l.agreed.least, a.plan.LostWait); err == nil {
			l.agreed.here, a.joined = s.Here(), s
		}
	} else {
		s, err = h.Join(meeting, roster, hello)
	}
	if err != nil {
		return nil, err
	}
	l := overNetwork(s, func() error { return nil }) // the host stays for the next session
	l.Transport = a.site.over(l.Transport, a.plan, a.rank, s.Here(), a.work.shard)
	o, err := a.work.train(ctx, l.behind(a.way, a.rank, len(a.plan.Peers), a.plan.Seed), a.plan.Peers[a.rank].Name)
	if o != nil {
		o.Names = a.plan.names()
	}
	return o, err
}

// naming adds the plan's name of the peer at fault, which trainers know by its rank only.
func (p *agreement) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(p.Peers) {
		return fmt.Errorf("%s: %w", p.Peers[at.Rank].Name, err)
	}
	return err
}
