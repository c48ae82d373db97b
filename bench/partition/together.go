package partition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/external"
	"github.com/heddle-gnn/heddle/graph/shard"
)

// together measures what it costs in quality that peers partition a graph together, by how often
// they exchange what they have assigned, and what they send.
func (o options) together(ctx context.Context, p *page.Page) error {
	p.Table("graph %s", "k %d", "policy %s", "exchanges a pass %d", "edges cut, alone %.3f", "together %.3f",
		"sent, MB %.1f")
	for _, name := range strings.Split(o.graphs, ",") {
		if err := o.teams(ctx, p, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// teams partitions one graph by teams of all sizes, policies and numbers of exchanges.
func (o options) teams(ctx context.Context, p *page.Page, name string) error {
	g, err := graphs.Open(o.root, name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "together")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := external.WriteGraph(filepath.Join(dir, "graph"), g); err != nil {
		return err
	}
	for _, list := range strings.Split(o.parts, ",") {
		k, err := strconv.Atoi(list)
		if err != nil {
			return err
		}
		for _, policy := range strings.Split(o.policies, ",") {
			by, err := o.policy(policy)
			if err != nil {
				return err
			}
			shards, err := partition.Partition(g, by, k, 1)
			if err != nil {
				return err
			}
			alone := partition.Measure(shard.Describe(shards, shard.Meta{})).CutShare
			for _, list := range strings.Split(o.rounds, ",") {
				rounds, err := strconv.Atoi(list)
				if err != nil {
					return err
				}
				job := external.Job{Policy: by, Meta: shard.Meta{Policy: policy, Seed: 1}}
				cut, bytes, err := team(ctx, dir, job, k, rounds)
				if err != nil {
					return err
				}
				p.Row(name, k, policy, rounds, alone, cut, bytes/1e6)
			}
		}
	}
	return nil
}

// team returns the fraction of edges that is cut and the bytes that all peers sent.
func team(ctx context.Context, dir string, job external.Job, peers, rounds int) (cut, bytes float64, err error) {
	plan := heddle.Defaults("", "")
	plan.Transport = "memory"
	all, sent := make([]*shard.Manifest, peers), make([]int, peers)
	err = heddle.Groups(ctx, plan, peers, func(ctx context.Context, group *comm.Group) error {
		rank := group.Rank()
		s, err := external.OpenGraph(filepath.Join(dir, "graph"))
		if err != nil {
			return err
		}
		defer s.Close()
		out := filepath.Join(dir, fmt.Sprintf("%s-%d-%d", job.Meta.Policy, rounds, rank))
		swap := func(what string, out [][]byte, limit int) ([][]byte, error) {
			for q, b := range out {
				if q != rank {
					sent[rank] += len(b)
				}
			}
			return group.SendRecv(ctx, comm.Halo, what, out, limit)
		}
		all[rank], err = s.WriteShare(out, job, external.Team{Rank: rank, Size: peers, Rounds: rounds, Swap: swap})
		return errors.Join(err, os.RemoveAll(out))
	})
	if err != nil {
		return 0, 0, err
	}
	for _, n := range sent {
		bytes += float64(n)
	}
	return partition.Measure(all[0]).CutShare, bytes, nil
}
