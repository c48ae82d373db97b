package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-gnn/heddle/comm"
	slow "github.com/heddle-gnn/heddle/comm/link"
	"github.com/heddle-gnn/heddle/p2p"
)

// attendance is one peer's part in a run, over as many sessions as it takes.
type attendance struct {
	seat seat
	plan *agreement
	rank int
	site *site
	way  *slow.Model // a slower network in between, or nil
	work work
}

// stay trains until the model is done. Where a peer is lost and there are checkpoints, it waits for that peer and goes
// on in another session; without one round in all the time that a lost peer is waited for, it gives up.
func (a attendance) stay(ctx context.Context, id p2p.Identity) (*outcome, error) {
	h, err := a.seat.open(ctx, a.plan, a.site, a.rank, id, a.work.watch)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	wait, moved := a.seat.wait, time.Now()
	a.work.advanced = func() { moved = time.Now() }
	for {
		o, err := a.session(ctx, h, wait)
		var lost *comm.PeerError
		if err == nil || ctx.Err() != nil || a.seat.rejoin == 0 || a.work.store == nil || !errors.As(err, &lost) || errors.Is(err, p2p.ErrRevoked) {
			return o, err
		}
		if wait = a.seat.rejoin - time.Since(moved); wait <= 0 {
			return nil, fmt.Errorf("no round was done for %v: %w", a.seat.rejoin, err)
		}
		a.work.watch.log.Warn("a peer is lost; waiting for it", "at most", wait.Round(time.Second), "error", a.plan.naming(err))
		select { // whoever is to blame has a moment to notice, and a fault that comes at once does not spin
		case <-time.After(min(time.Second, wait)):
		case <-ctx.Done():
		}
	}
}

// session meets the other peers and trains until the model is done or one of them is lost.
func (a attendance) session(ctx context.Context, h *p2p.Host, wait time.Duration) (*outcome, error) {
	plan, err := a.plan.fingerprint(taskOf(a.work.shard))
	if err != nil {
		return nil, err
	}
	meeting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := h.Join(meeting, a.site.peers(a.plan), p2p.Hello{Plan: plan, Partition: a.work.shard.Fingerprint})
	if err != nil {
		return nil, err
	}
	l := overNetwork(s, func() error { return nil }) // the host stays for the next session
	l.Transport = a.site.over(l.Transport, a.plan, a.rank, a.work.shard)
	return a.work.train(ctx, l.behind(a.way, a.rank, len(a.plan.Peers), a.plan.Seed), a.plan.Peers[a.rank].Name)
}

// naming adds the plan's name of the peer at fault, which trainers know by its rank only.
func (p *agreement) naming(err error) error {
	var at *comm.PeerError
	if errors.As(err, &at) && at.Name == "" && at.Rank >= 0 && at.Rank < len(p.Peers) {
		return fmt.Errorf("%s: %w", p.Peers[at.Rank].Name, err)
	}
	return err
}
