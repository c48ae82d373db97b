package external

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/comm/netsim"
	"github.com/heddle-gnn/heddle/graph/graphtest"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

// team partitions the graph of a file by so many peers over transports, each into its own
// directory.
func team(t fataler, path string, job Job, rounds int, dirs []string,
	transports []comm.Transport) ([]*shard.Manifest, error) {
	errs, all := make([]error, len(dirs)), make([]*shard.Manifest, len(dirs))
	var wait sync.WaitGroup
	for p := range dirs {
		wait.Go(func() {
			g := comm.NewGroup(transports[p], p, len(dirs))
			defer g.Close()
			s, err := OpenGraph(path)
			if err != nil {
				errs[p] = err
				return
			}
			defer s.Close()
			all[p], errs[p] = s.WriteShare(dirs[p], job, Team{Rank: p, Size: len(
				dirs), Rounds: rounds, Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
				return g.SendRecv(context.Background(), comm.Halo, what, out, limit)
			}})
		})
	}
	wait.Wait()
	return all, errors.Join(errs...)
}

// shares is what a team wrote, read again from all its directories.
func shares(t *testing.T, dir, path string, job Job, peers, rounds int) ([]*shard.Shard, *shard.Manifest) {
	var dirs []string
	for p := range peers {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprintf("of-%d", p)))
	}
	all, err := team(t, path, job, rounds, dirs, netsim.New(peers, netsim.Config{}).Transports())
	if err != nil {
		t.Fatal(err)
	}
	var shards []*shard.Shard
	for p, d := range dirs {
		s, c, err := shard.ReadShard(filepath.Join(d, fmt.Sprint("part-", p)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		shards = append(shards, s)
	}
	if err := shard.Consistent(shards); err != nil {
		t.Fatal(err)
	}
	return shards, all[0]
}

// TestSharesAreAsCut: the shards that peers write are those that Cut makes of the whole graph by
// the owners they found, section for section, for graphs of all kinds; written again they are the
// same bytes.
func TestSharesAreAsCut(t *testing.T) {
	policies := []string{"fennel", "restream:2", "random", "contiguous"}
	done := 0
	for at, g := range drawn(24) {
		peers := 1 + at%7
		if g.N() < peers || g.Typed.Count() > 0 {
			continue
		}
		done++
		dir := t.TempDir()
		path := filepath.Join(dir, "graph")
		if err := WriteGraph(path, g); err != nil {
			t.Fatal(err)
		}
		name := policies[at%len(policies)]
		job := Job{Policy: policy(t, name), Meta: shard.Meta{Policy: name, Seed: uint64(at)}}
		shards, m := shares(t, filepath.Join(dir, "once"), path, job, peers, 1+at%4)
		owner := make([]int32, g.N())
		for p, s := range shards {
			for _, u := range s.Global[:s.Owned] {
				owner[u] = int32(p)
			}
		}
		want, err := shard.Cut(g, owner, peers)
		if err != nil {
			t.Fatal(err)
		}
		for p, s := range shards {
			want[p].Fingerprint = s.Fingerprint
		}
		if _, err := shard.WriteDir(filepath.Join(dir, "cut"), want, shard.Meta{}); err != nil {
			t.Fatal(err)
		}
		for p, s := range shards {
			part := fmt.Sprint("part-", p)
			got, cut := read(t, filepath.Join(dir, "once", fmt.Sprintf("of-%d", p), part)),
				read(t, filepath.Join(dir, "cut", part))
			if got != cut {
				t.Errorf("graph %d by %s, %d peers: part %d is not that of Cut\n%+v\n%+v", at, name, peers, p, s,
					want[p])
			}
		}
		if _, again := shares(t, filepath.Join(dir, "again"), path, job, peers,
			1+at%4); again.Fingerprint != m.Fingerprint {
			t.Errorf("graph %d by %s, %d peers: written again it is another partition", at, name, peers)
		}
	}
	if done < 12 {
		t.Errorf("%d graphs seen", done)
	}
}

// TestSharesKeepBounds: whatever the peers do at the same time, no part is over its bounds, and
// with a hundred rounds the cut is near what one machine finds.
func TestSharesKeepBounds(t *testing.T) {
	g := graphtest.Communities(3000, 8, 12, 0.8, rng.New(5))
	dir := t.TempDir()
	path := filepath.Join(dir, "graph")
	if err := WriteGraph(path, g); err != nil {
		t.Fatal(err)
	}
	goal := partition.Goal{Vertices: 1.03, Edges: 1.1, Train: 1.2}
	cut := func(shards []*shard.Shard) float64 {
		m := shard.Describe(shards, shard.Meta{})
		n := 0
		for _, p := range m.Parts {
			n += p.Cut
		}
		return float64(n) / float64(m.Edges)
	}
	for _, name := range []string{"fennel", "restream:2"} {
		for _, rounds := range []int{1, 100} {
			p := partition.Bounded(policy(t, name), goal)
			shards, _ := shares(t, filepath.Join(dir, fmt.Sprint(name, rounds)), path,
				Job{Policy: p, Meta: shard.Meta{Policy: name, Seed: 3}}, 4, rounds)
			owner := make([]int32, g.N())
			for p, s := range shards {
				for _, u := range s.Global[:s.Owned] {
					owner[u] = int32(p)
				}
			}
			if err := goal.Check(partition.InMemory{Graph: g}, owner, 4); err != nil {
				t.Errorf("%s in %d rounds: %v", name, rounds, err)
			}
			alone, err := partition.Partition(g, p, 4, 3)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s in %d rounds: cut %.3f, in one place %.3f", name, rounds, cut(shards), cut(alone))
			if rounds == 100 && cut(shards) > 1.2*cut(alone) {
				t.Errorf("%s: cut %.3f, in one place %.3f", name, cut(shards), cut(alone))
			}
		}
	}
}

// TestSharesRefuse: what cannot be partitioned by peers, and peers who mean something else.
func TestSharesRefuse(t *testing.T) {
	g := graphtest.Communities(200, 4, 6, 0.8, rng.New(5))
	dir := t.TempDir()
	path := filepath.Join(dir, "graph")
	if err := WriteGraph(path, g); err != nil {
		t.Fatal(err)
	}
	for at, test := range []struct {
		job    Job
		peers  int
		rounds int
		want   string
	}{
		{Job{Policy: policy(t, "multilevel")}, 2, 1, "whole graph"},
		{Job{Policy: policy(t, "fennel"), Parts: 3}, 2, 1, "each peer needs a part"},
		{Job{Policy: policy(t, "fennel")}, 2, 0, "at least 1 round"},
		{Job{Policy: policy(t, "fennel")}, 201, 1, "parts must be 1 to 200, as many as nodes (got 201)"},
		{Job{Policy: partition.Bounded(policy(t, "random"), partition.Goal{Edges: 1})}, 3, 1, "of at most"},
	} {
		dirs := make([]string, test.peers)
		for p := range dirs {
			dirs[p] = filepath.Join(dir, fmt.Sprintf("refused-%d-%d", at, p))
		}
		if _, err := team(t, path, test.job, test.rounds, dirs, netsim.New(test.peers,
			netsim.Config{}).Transports()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("case %d: %v, must be %q", at, err, test.want)
		}
	}
	// The first peer has another seed.
	net, errs := netsim.New(2, netsim.Config{}), make([]error, 2)
	var wait sync.WaitGroup
	for p := range errs {
		wait.Go(func() {
			group := comm.NewGroup(net.Transport(p), p, 2)
			defer group.Close()
			s, err := OpenGraph(path)
			if err != nil {
				errs[p] = err
				return
			}
			defer s.Close()
			_, errs[p] = s.WriteShare(filepath.Join(dir, fmt.Sprint("seed-", p)), Job{Policy: policy(t, "fennel"),
				Meta: shard.Meta{Seed: uint64(p)}}, Team{Rank: p, Size: 2, Rounds: 1,
				Swap: func(what string, out [][]byte, limit int) ([][]byte, error) {
					return group.SendRecv(context.Background(), comm.Halo, what, out, limit)
				}})
		})
	}
	wait.Wait()
	for p, err := range errs {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("peer %d", 1-p)) {
			t.Errorf("peer %d: %v, must be the other named", p, err)
		}
	}
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
