package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/partition"
)

// bindTogether adds the flags of partitioning with other peers.
func (s *cutting) bindTogether(f *pflag.FlagSet) {
	f.StringVar(&s.seat.plan, "plan", "", "partition a stored graph together with the other peers of this plan, each its slice, a part for each; its seed is taken")
	f.StringVar(&s.seat.identity, "identity", defaultIdentity(), "with --plan: this peer's key, made on first use")
	f.IntVar(&s.rounds, "rounds", 100, "with --plan: how often in a pass peers tell each other what they assigned; the more, the better the cut")
	f.StringSliceVar(&s.seat.listen, "listen", nil, "with --plan: multiaddresses to listen on (default: this peer's in the plan)")
	f.DurationVar(&s.seat.wait, "wait", 10*time.Minute, "with --plan: how long to wait for the other peers")
	f.StringVar(&s.seat.gate.audit, "audit", "", "with --plan: log of what this peer took part in and what left it; empty: none is kept")
}

// checkTogether refuses what peers that partition together cannot do.
func (s *cutting) checkTogether() error {
	switch {
	case filepath.Ext(s.Data) != ".graph":
		return fmt.Errorf("data: %s, but with --plan every peer reads its slice of a stored graph (.graph)", s.Data)
	case s.dry:
		return errors.New("dry: with --plan parts are written")
	case s.Peers != auto:
		return errors.New("parts: with --plan there is one for each peer")
	case s.rounds < 1:
		return fmt.Errorf("rounds: %d, want at least 1", s.rounds)
	}
	return nil
}

// together partitions a stored graph with the other peers of a plan.
func (s *cutting) together(ctx context.Context, w *watch) error {
	at, err := s.seat.sit()
	if err != nil {
		return err
	}
	if err := partition.Vacant(s.out); err != nil {
		return badInput{err}
	}
	g, err := partition.OpenGraph(s.Data)
	if err != nil {
		return badInput{err}
	}
	defer g.Close()
	sites, err := g.Sites()
	if err != nil {
		return badInput{err}
	}
	s.seed = at.plan.Seed
	return s.seat.meeting(ctx, at, "partition", w, func(ctx context.Context, group *comm.Group, here *site) (err error) {
		s.manifest, err = g.WriteShare(s.out, partition.Job{Policy: s.policy, Meta: s.meta(sites)}, partition.Team{Rank: at.rank, Size: len(at.plan.Peers), Rounds: s.rounds,
			Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
				w.log.Debug("partitioning", "phase", what)
				return group.SendRecv(ctx, comm.Halo, what, out, limit)
			}})
		here.left(group.Bytes(), "partition", 0)
		return err
	})
}
