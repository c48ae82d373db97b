package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/partition/external"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// bindTogether adds the flags of partitioning with other peers.
func (s *cutting) bindTogether(f *pflag.FlagSet) {
	f.StringVar(&s.seat.plan, "plan", "", "plan whose peers partition a stored graph together")
	f.StringVar(&s.seat.identity, "identity", defaultIdentity(), "key file of this peer, made on first use")
	f.IntVar(&s.rounds, "rounds", 100, "exchanges between the peers in a pass, with --plan")
	f.StringSliceVar(&s.seat.site.Listen, "listen", nil, "multiaddresses to listen on; default: those of the plan")
	f.DurationVar(&s.seat.site.Wait, "wait", 10*time.Minute, "wait for the other peers, with --plan")
	f.StringVar(&s.seat.site.Gate.Audit, "audit", "", "log of runs and of what left this peer; empty: none")
}

// checkTogether refuses what peers that partition together cannot do.
func (s *cutting) checkTogether() error {
	switch {
	case filepath.Ext(s.Data) != ".graph":
		return fmt.Errorf("data: %s, but with --plan every peer reads its slice of a stored graph (.graph)", s.Data)
	case s.dry:
		return errors.New("dry: with --plan parts are written")
	case s.parts != heddle.Auto:
		return errors.New("parts: with --plan there is one for each peer")
	case s.rounds < 1:
		return fmt.Errorf("rounds: %d, want at least 1", s.rounds)
	}
	return nil
}

// together partitions a stored graph with the other peers of a plan.
func (s *cutting) together(ctx context.Context, w *watch) error {
	p, rank, err := s.seat.sit(w)
	if err != nil {
		return err
	}
	if err := shard.Vacant(s.out); err != nil {
		return badInput{err}
	}
	g, err := external.OpenGraph(s.Data)
	if err != nil {
		return badInput{err}
	}
	defer g.Close()
	sites, err := g.Sites()
	if err != nil {
		return badInput{err}
	}
	s.seed = p.Seed
	return heddle.Meet(ctx, *p.Plan, s.seat.site, "partition", func(ctx context.Context, m *heddle.Session) (err error) {
		s.manifest, err = g.WriteShare(s.out, external.Job{Policy: s.policy, Meta: s.meta(sites)}, external.Team{Rank: rank, Size: len(p.Members), Rounds: s.rounds,
			Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
				w.log.Debug("partitioning", "phase", what)
				return m.Group.SendRecv(ctx, comm.Halo, what, out, limit)
			}})
		m.Left("partition")
		return err
	})
}
