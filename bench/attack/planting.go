package attack

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/rng"
)

// each is how many of its nodes in each class a member changes.
const each = 20

// planting attacks rows by a member that chooses its table.
func (b *inference) planting(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("AUC of *this node has the column*, mean over a rare column for each class, for the nodes of the other "+
		"members whose rows site 0\nreceives. It gives %d of its nodes in each class the column of the class. "+
		"Mean and standard error over %d seeds; *honest* is the\nAUC by all numbers without planting.", each, b.seeds)
	p.Table("data set %s", "rows %s", "planted nodes have %s", "by the number of the class %s", "by all numbers %s",
		"honest %s", "nodes with a column %d")
	for _, g := range all {
		for _, rows := range []string{"as by default", "rows=float32 coarse_rows=false"} {
			settings := b.settings
			if rows != "as by default" {
				settings += " " + rows
			}
			for _, next := range []bool{false, true} {
				if err := b.plant(ctx, p, g, settings, rows, next); err != nil {
					return fmt.Errorf("%s, %s: %w", g.Name, rows, err)
				}
			}
		}
	}
	return nil
}

// plant prints a row of the table.
func (b *inference) plant(ctx context.Context, p *page.Page, g *graph.Graph, settings, rows string, next bool) error {
	var number, combined, honest []float64
	holders, have := 0, "only the column"
	if next {
		have = "other columns, too"
	}
	for k := range b.seeds {
		one := *b
		one.seed += uint64(k)
		plan, err := one.plan(settings)
		if err != nil {
			return err
		}
		shards, err := one.parts(g, b.sites, false)
		if err != nil {
			return err
		}
		planted, err := infer.Plant(shards, 0, each, next, rng.New(one.seed).FoldString("planting"))
		if err != nil {
			return err
		}
		found, err := planted.Train(ctx, plan, 0)
		if err != nil {
			return err
		}
		planted.Shards = shards
		base, err := planted.Train(ctx, plan, 0)
		if err != nil {
			return err
		}
		number, combined, honest = append(number, found.Number), append(combined, found.All), append(honest, base.All)
		holders += found.Holders
	}
	p.Row(g.Name, rows, have, spread(number), spread(combined), spread(honest), holders)
	return nil
}

// spread returns the mean of figures and its standard error.
func spread(of []float64) string {
	mean, square, n := 0.0, 0.0, float64(len(of))
	for _, v := range of {
		mean += v / n
	}
	for _, v := range of {
		square += (v - mean) * (v - mean)
	}
	return fmt.Sprintf("%.3f ± %.3f", mean, math.Sqrt(square/max(n-1, 1)/n))
}
