package private

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	apply "github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/rng"
)

// sites is the number of sites of a run whose rows are attacked; the first one attacks.
const sites = 3

// crossed measures how well a site that follows the protocol detects the pairs of decide from the rows that it receives
// of both nodes, as they are sent.
func crossed(ctx context.Context, p *page.Page, root string, names []string, runs int) error {
	p.Text("The same for a site of three that follows the protocol and has nothing but the rows that it "+
		"receives of both nodes.\n*baseline* has those rows that no edge has entered. `frugal` is the plan without "+
		"privacy. Mean over both other\nsites in each of %d runs; *pairs* is how many there were on average.", runs)
	p.Table("graph %s", "pairs %.0f", "frugal %s", "its baseline %s", "ε 100 %s", "ε 8 %s", "ε 4 %s", "ε 1 %s",
		"baseline of ε 4 %s")
	for _, name := range names {
		found, base := make([]figure, 5), make([]figure, 5)
		pairs := 0.0
		for k := range runs {
			g, c, err := planted(ctx, root, name, k)
			if err != nil {
				return err
			}
			policy, err := partition.ParsePolicy("random")
			if err != nil {
				return err
			}
			shards, err := partition.Partition(g, policy, sites, uint64(k+1))
			if err != nil {
				return err
			}
			for i, epsilon := range []float64{0, quiet, 8, 4, 1} {
				plan := private(epsilon, k+1)
				plan.Federation().Exchange = "halo"
				run, err := recorded.Train(ctx, plan, shards, 0)
				if err != nil {
					return fmt.Errorf("%s, ε %g: %w", name, epsilon, err)
				}
				for victim := 1; victim < sites; victim++ {
					f, err := (&infer.Run{Run: run}).LinksAmong(victim, c.pairs, c.added)
					if errors.Is(err, infer.ErrNothing) {
						continue
					}
					if err != nil {
						return fmt.Errorf("%s, ε %g: %w", name, epsilon, err)
					}
					found[i], base[i] = append(found[i], f.Value), append(base[i], f.Base)
					if i == 0 {
						pairs += float64(f.Tried) / float64(runs*(sites-1))
					}
				}
			}
		}
		p.Row(name, pairs, found[0], base[0], found[1], found[2], found[3], found[4], base[3])
	}
	return nil
}

// planted returns the graph of run k with edges between some pairs of nodes of the same predicted class, and which.
func planted(ctx context.Context, root, name string, k int) (*graph.Graph, *coins, error) {
	g, err := open(root, name, k)
	if err != nil {
		return nil, nil, err
	}
	plan := private(0, k+1)
	plan.ClassMeans.Hops, plan.ClassMeans.CoarseRows = 0, false
	trained, err := heddle.Train(ctx, g, plan)
	if err != nil {
		return nil, nil, err
	}
	logits, err := apply.Graph(trained.Model, g)
	if err != nil {
		return nil, nil, err
	}
	c, err := decide(g, trained.Model.Spec.Closed.ClassRows(trained.Model.Encoder.Input(g.X), logits),
		rng.New(uint64(k+1)).FoldString("canaries"))
	if err != nil {
		return nil, nil, err
	}
	with := *g
	with.Adj = c.after
	return &with, c, nil
}
