package graphs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/disclosure"
	"github.com/heddle-gnn/heddle/graph/partition/external"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/session"
)

// checkTogether refuses flags that peers that partition together cannot have.
func (s *cutting) checkTogether() error {
	switch {
	case filepath.Ext(s.data) != storedSuffix:
		return fmt.Errorf("with --plan the data must be a stored graph, NAME.graph (got %s)", s.data)
	case s.dry:
		return errors.New("--dry and --plan exclude each other")
	case s.parts != heddle.Auto:
		return errors.New("--parts and --plan exclude each other: each peer of the plan gets a part")
	case s.rounds < 1:
		return fmt.Errorf("rounds must be at least 1 (got %d)", s.rounds)
	}
	return nil
}

// together partitions a stored graph with the other peers of a plan.
func (s *cutting) together(ctx context.Context, w *cli.Watch) error {
	p, rank, err := s.site.Sit(w)
	if err != nil {
		return err
	}
	if err := shard.Vacant(s.out); err != nil {
		return cli.Invalid(err)
	}
	g, err := external.OpenGraph(s.data)
	if err != nil {
		return cli.Invalid(err)
	}
	defer g.Close()
	sites, err := g.Sites()
	if err != nil {
		return cli.Invalid(err)
	}
	s.seed = p.Seed
	return disclosure.Meet(ctx, *p, s.site.Site.Site, "partition", func(ctx context.Context,
		m *session.Session) (err error) {
		s.manifest, err = g.WriteShare(s.out, external.Job{Policy: s.policy, Meta: s.meta(sites)},
			external.Team{Rank: rank, Size: len(p.Members), Rounds: s.rounds,
				Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
					w.Log.Debug("partitioning", "phase", what)
					return m.Group.SendRecv(ctx, comm.Halo, what, out, limit)
				}})
		m.Left("partition")
		return err
	})
}
