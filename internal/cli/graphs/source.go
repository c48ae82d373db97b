package graphs

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/train"
)

// Source is where a run's shards come from.
type Source struct {
	Data   string `yaml:"data"`   // directory or .npz of a data set; or
	Shards string `yaml:"shards"` // directory that heddle partition wrote
	Split  int    `yaml:"split"`  // column of the data set's masks, from 0

	Sites    []string `yaml:"-"` // names of the sites whose parts Open has read; nil: they have none
	Warnings []string `yaml:"-"` // of the data that Open has read
}

// Open returns the shards, whose arrays are valid until Close, and makes p what it means for the
// data. event gets what there is to say of that. It sets Sites and Warnings.
func (s *Source) Open(p *heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, io.Closer, error) {
	shards, closer, err := s.read(p, event)
	if err == nil && len(shards) > 1 && !p.Federated() {
		m := shard.Describe(shards, shard.Meta{})
		event(heddle.Event{Kind: train.Note, Text: partition.Slowest(m, len(shards)).String()})
	}
	return shards, closer, err
}

func (s *Source) read(p *heddle.Plan, event func(heddle.Event)) ([]*shard.Shard, io.Closer, error) {
	if (s.Data == "") == (s.Shards == "") {
		return nil, nil, cli.Invalidf("a run needs either --data D (a data set) or --shards DIR (written by heddle partition)")
	}
	if err := cmp.Or(cli.CheckRead("data", s.Data), cli.CheckRead("shards", s.Shards)); err != nil { // a settings file may name them, too
		return nil, nil, err
	}
	switch {
	case s.Shards != "":
		shards, closer, err := shard.ReadDir(s.Shards)
		if err != nil {
			return nil, nil, cli.Invalid(err)
		}
		if p.Peers != heddle.Auto && p.Peers != len(shards) {
			if shards, err = grouped(shards, p.Peers); err != nil {
				return nil, nil, errors.Join(cli.Invalid(err), closer.Close())
			}
			return shards, closer, nil
		}
		m, err := shard.ReadManifest(s.Shards)
		if err != nil {
			return nil, nil, errors.Join(cli.Invalid(err), closer.Close())
		}
		s.Sites = m.Sites
		if s.Warnings, err = table.Warnings(s.Shards, nil, ""); err != nil {
			return nil, nil, errors.Join(cli.Invalid(err), closer.Close())
		}
		for _, text := range s.Warnings {
			event(heddle.Event{Kind: train.Warning, Text: text})
		}
		return shards, closer, nil
	}
	g, err := dataset.As{Task: p.Task.Kind}.Read(s.Data, s.Split)
	if err != nil {
		return nil, nil, cli.Invalid(err)
	}
	if s.Warnings, err = table.Warnings(s.Data, g, p.Task.Kind); err != nil {
		return nil, nil, cli.Invalid(err)
	}
	for _, text := range s.Warnings {
		event(heddle.Event{Kind: train.Warning, Text: text})
	}
	if g.Labels.Classes > 0 && !p.Task.Links() && len(g.InSplit(graph.Train)) == 0 {
		return nil, nil, cli.Invalidf("%s: array train_mask must mark nodes with a label (got none)", s.Data)
	}
	placed, notes := heddle.ForGraph(g, *p)
	for _, e := range notes {
		event(e)
	}
	*p = placed
	shards, err := heddle.Split(g, placed)
	if len(g.Sites) == len(shards) && placed.Policy == "by-column" {
		s.Sites = g.Sites
	}
	return shards, io.NopCloser(nil), err
}

// grouped merges the parts for fewer peers.
func grouped(shards []*shard.Shard, peers int) ([]*shard.Shard, error) {
	if peers < 1 || peers > len(shards) {
		return nil, fmt.Errorf("peers must be 1 to %d, the number of shards (got %d)", len(shards), peers)
	}
	var all []*shard.Shard
	for w := range peers {
		lo, hi := shard.Group(len(shards), peers, w)
		one, err := shard.Merge(shards[lo:hi], peers)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
