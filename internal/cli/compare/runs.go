package compare

import (
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
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/train"
)

// input is what one run trains on.
type input struct {
	graph  *graph.Graph
	shards []*shard.Shard // of graph, by rank
	names  []string       // of the sites, by rank
	plan   heddle.Plan    // with the run's seed
	split  int

	rows []int32 // of the graph by global node ID; nil: the same number
}

// row is the row of the graph that node i of s is in.
func (in input) row(s *shard.Shard, i int32) int32 {
	if in.rows == nil {
		return int32(s.Global[i])
	}
	return in.rows[s.Global[i]]
}

// data are the inputs of all runs.
type data struct {
	run       func(k int) (input, error)
	sameNodes bool // all runs have the same test nodes
	closer    io.Closer
}

// open returns the inputs of runs by p: run k has p's seed plus k and, where the data set has
// several splits, the k-th next one.
func open(s graphs.Source, p heddle.Plan, event func(heddle.Event)) (*data, error) {
	if s.Shards != "" || s.Data == "" {
		return openShards(s, p, event)
	}
	splits, err := dataset.Splits(s.Data)
	if err != nil {
		return nil, cli.Invalid(err)
	}
	if s.Split < 0 || s.Split >= splits {
		return nil, cli.Invalidf("split must be 0 to %d (got %d of %d)", splits-1, s.Split, splits)
	}
	graphs := map[int]*graph.Graph{}
	return &data{sameNodes: splits == 1, closer: io.NopCloser(nil), run: func(k int) (in input, err error) {
		split := (s.Split + k) % splits
		if graphs[split] == nil {
			if clear(graphs); splits == 1 || k == 0 {
				event = once(event)
			}
			if graphs[split], err = (dataset.As{Task: p.Task.Kind}).Read(s.Data, split); err != nil {
				return in, cli.Invalid(err)
			}
			warnings, err := table.Warnings(s.Data, graphs[split], p.Task.Kind)
			if err != nil {
				return in, cli.Invalid(err)
			}
			for _, text := range warnings {
				event(heddle.Event{Kind: train.Warning, Text: text})
			}
		}
		in, err = cut(graphs[split], seeded(p, k), event)
		in.split = split
		return in, err
	}}, nil
}

// once passes on each text once.
func once(event func(heddle.Event)) func(heddle.Event) {
	said := map[string]bool{}
	return func(e heddle.Event) {
		if !said[e.Text] {
			event(e)
		}
		said[e.Text] = true
	}
}

// seeded is p of run k.
func seeded(p heddle.Plan, k int) heddle.Plan {
	p.Seed += uint64(k)
	return p
}

// cut makes the parts of g by p.
func cut(g *graph.Graph, p heddle.Plan, event func(heddle.Event)) (in input, err error) {
	placed, notes := heddle.ForGraph(g, p)
	for _, e := range notes {
		event(e)
	}
	shards, err := heddle.Split(g, placed)
	if err != nil {
		return in, err
	}
	names := g.Sites
	if placed.Policy != "by-column" || len(names) != len(shards) {
		names = numbered(len(shards))
	}
	return input{graph: g.Numbered(), shards: shards, names: names, plan: placed}, nil
}

func numbered(sites int) (names []string) {
	for r := range sites {
		names = append(names, fmt.Sprintf("site %d", r))
	}
	return names
}

// openShards returns the inputs of runs over a partition: all have the same parts.
func openShards(s graphs.Source, p heddle.Plan, event func(heddle.Event)) (*data, error) {
	shards, closer, err := s.Open(&p, event)
	if err != nil {
		return nil, err
	}
	whole, err := shard.Merge(shards, 1)
	if err != nil {
		return nil, errors.Join(cli.Invalid(err), closer.Close())
	}
	g := whole.Alone()
	g.Name = shards[0].Name
	rows := make([]int32, len(whole.Global))
	for i, id := range whole.Global {
		rows[id] = int32(i)
	}
	names := s.Sites
	if len(names) != len(shards) {
		names = numbered(len(shards))
	}
	return &data{sameNodes: true, closer: closer, run: func(k int) (input, error) {
		return input{graph: g, shards: shards, names: names, plan: seeded(p, k), rows: rows}, nil
	}}, nil
}

// builtIn returns the inputs of runs on the graph of four sites that this program makes: run k draws
// it anew.
func builtIn(p heddle.Plan) *data {
	return &data{closer: io.NopCloser(nil), run: func(k int) (input, error) {
		q := seeded(p, k)
		g := dataset.Sites(dataset.SitesConfig{}, rng.New(q.Seed))
		q.Policy, _ = partition.Usual(g, 0, false)
		return cut(g, q, func(heddle.Event) {})
	}}
}
