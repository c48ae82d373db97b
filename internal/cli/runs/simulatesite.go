package runs

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/heddle-gnn/heddle/classmeans"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/gate"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/comm/netsim"
	"github.com/heddle-gnn/heddle/internal/leaf"
	"github.com/heddle-gnn/heddle/internal/privacy/secagg"
	"github.com/heddle-gnn/heddle/mat"
)

// site is a peer that collects shares. It runs as in any federation; what its messages to the other sites take follows
// from their number and length.
type site struct {
	shard     *shard.Shard
	allRounds bool
	group     *comm.Group
	intake    *leaf.Intake
	collector *leaf.Collector
	trainer   *classmeans.Trainer
	numbers   []int // of each sum or, over neighbours, of a row
	widths    []int // the same of a row over neighbours (0 = a sum of all)

	closes  chan comm.Load // an exchange may close: what the site has needed of the network since the last one
	release chan struct{}
	ended   chan error

	idle time.Duration // when its last answer to a phone has left
	sent comm.Load     // to other sites, when it last said so
}

// Reduce implements comm.Reducer: it notes how many numbers a sum has.
func (s *site) Reduce(ctx context.Context, c *comm.Contribution) (comm.Reduced, error) {
	s.numbers, s.widths = append(s.numbers, len(c.Update)+len(c.Counts)), append(s.widths, 0)
	return s.collector.Reduce(ctx, c)
}

// Boundary implements classmeans.Neighbours.
func (s *site) Boundary() shard.BorderNodes { return s.collector.Boundary() }

// Gather implements classmeans.Neighbours: it notes how many numbers a row has.
func (s *site) Gather(ctx context.Context, id comm.ReduceID, x mat.Dense) (mat.Dense, error) {
	s.numbers, s.widths = append(s.numbers, x.Cols), append(s.widths, x.Cols)
	return s.collector.Gather(ctx, id, x)
}

// load returns what the site has needed of the network since it was last called.
func (s *site) load() comm.Load {
	trips, _ := s.group.Waits()
	b := s.group.Bytes()
	now := comm.Load{Trips: trips, Bytes: b.Total()}
	since := comm.Load{Trips: now.Trips - s.sent.Trips, Bytes: now.Bytes - s.sent.Bytes}
	s.sent = now
	return since
}

// until is a leaf.Collector's: the simulation decides when an exchange closes.
func (s *site) until(ctx context.Context, _ int) error {
	select {
	case s.closes <- s.load():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.release:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start lets the site of that rank train, with the others on net.
func (s *site) start(ctx context.Context, w *world, m members, net *netsim.Network, rank int) error {
	a := w.agreed
	everybody := leaf.Rules{Cohorts: []gate.Cohort{{Name: "phones", Most: a.Most}}, Edges: m.edges,
		Attest: func(_ context.Context, _ [16]byte, number []byte) (gate.Admission, error) {
			return gate.Admission{Cohort: "phones", Nodes: w.phones[binary.LittleEndian.Uint32(number)].shard.IDs}, nil
		}}
	var err error
	if s.trainer, err = classmeans.New(w.config, s.shard); err != nil {
		return err
	}
	s.trainer.Leaves, s.trainer.AllRounds = true, s.allRounds
	if s.intake, err = leaf.NewIntake(a, rank, everybody); err != nil {
		return err
	}
	s.closes, s.release, s.ended = make(chan comm.Load), make(chan struct{}), make(chan error, 1)
	s.group = comm.NewGroup(net.Transport(rank), rank, len(m.sites))
	go func() { s.ended <- s.trainSite(ctx, a) }()
	return nil
}

func (s *site) trainSite(ctx context.Context, a leaf.Agreement) error {
	var inner comm.Reducer = s.group
	if members := s.group.Size(); members > 2 {
		masked, err := secagg.New(ctx, secagg.KeyTerms{Run: [32]byte(append(a.Run[:], make([]byte, 24)...)),
			Least: members}, s.group)
		if err != nil {
			return err
		}
		inner = masked
	}
	var err error
	if s.collector, err = leaf.NewCollector(a, s.group, inner, s.intake, s.until); err != nil {
		return err
	}
	if a.Edges {
		if err := s.collector.Bind(ctx, s.shard.IDs); err != nil {
			return err
		}
		s.trainer.Beyond = s
	}
	return s.trainer.Run(ctx, s.group, s)
}
