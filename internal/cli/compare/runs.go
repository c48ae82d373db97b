package compare

import (
	"errors"
	"fmt"
	"io"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/rng"
)

// input is what one run trains on.
type input struct {
	graph  *graph.Graph
	shards []*shard.Shard // of graph, by rank
	names  []string       // of the sites, by rank
	plan   heddle.Plan    // with the run's seed
	split  int

	rows []int32 // of the graph by global node ID (nil = the same number)
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
	splits, err := s.Splits()
	if err != nil {
		return nil, err
	}
	read := map[int]*graph.Graph{}
	return &data{sameNodes: splits == 1, closer: io.NopCloser(nil), run: func(k int) (in input, err error) {
		split := (s.Split + k) % splits
		if read[split] == nil {
			if clear(read); splits == 1 || k == 0 {
				event = once(event)
			}
			if read[split], _, err = s.ReadData(p, split, event); err != nil {
				return in, err
			}
		}
		in, err = cut(read[split], seeded(p, k), event)
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
	shards, err := graphs.Place(g, &p, event)
	if err != nil {
		return in, err
	}
	names := g.Sites
	if p.Policy != "by-column" || len(names) != len(shards) {
		names = numbered(len(shards))
	}
	return input{graph: g.Numbered(), shards: shards, names: names, plan: p}, nil
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

// builtIn returns the inputs of runs on the graph of four sites that this program makes: run k samples it anew.
func builtIn(p heddle.Plan) *data {
	return &data{closer: io.NopCloser(nil), run: func(k int) (input, error) {
		q := seeded(p, k)
		g := dataset.Sites(dataset.SitesConfig{}, rng.New(q.Seed))
		q.Policy, _ = partition.Usual(g, 0, false)
		return cut(g, q, func(heddle.Event) {})
	}}
}
