package attack

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
)

// told attacks the labels of training nodes by the rows that each site in turn receives of all others.
func (b *inference) told(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Classes of training nodes guessed by the largest number of their rows, in %%, and in brackets those of "+
		"test nodes of the\nsame classes. Each site in turn attacks all others; mean over their views and %d seeds, "+
		"each after the first with another split\nof as many training nodes of each class. The *excess* is that of "+
		"the round where it is largest, with its standard error over seeds.", b.seeds)
	p.Table("data set %s", "setting %s", "sites %d", "round 1 %s", "round 2 %s", "round 3 %s", "excess, points %s")
	for _, g := range all {
		for _, s := range []string{"method=class-means", "method=class-means leave_one_out=false"} {
			for _, parts := range []int{3, 8} {
				rounds, err := b.views(ctx, g, s, parts)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", g.Name, s, err)
				}
				row, most := []any{g.Name, s, parts}, 0
				for r, views := range rounds {
					if len(views) == 0 {
						row = append(row, "–")
						continue
					}
					mean := views.mean()
					row = append(row, fmt.Sprintf("%.1f (%.1f)", 100*mean.value, 100*mean.base))
					if best := rounds[most].mean(); mean.value-mean.base > best.value-best.base {
						most = r
					}
				}
				excess, deviation := rounds[most].excess()
				p.Row(append(row, fmt.Sprintf("%.1f ± %.1f", 100*excess, 100*deviation))...)
			}
		}
	}
	return nil
}

// view is what the rows of a round reveal, over all attackers of a seed. It has the fraction of training nodes guessed
// right, and the fraction at the rate of test nodes.
type view struct{ value, base float64 }

// viewsOf are the views of a round, by seed.
type viewsOf []view

func (all viewsOf) mean() (m view) {
	for _, v := range all {
		m.value, m.base = m.value+v.value/float64(len(all)), m.base+v.base/float64(len(all))
	}
	return m
}

// excess returns the mean excess of training nodes over test nodes, and its standard error.
func (all viewsOf) excess() (excess, deviation float64) {
	mean, square := all.mean(), 0.0
	excess = mean.value - mean.base
	for _, v := range all {
		square += (v.value - v.base - excess) * (v.value - v.base - excess)
	}
	n := float64(len(all))
	return excess, math.Sqrt(square / max(n-1, 1) / n)
}

// views attacks with the view of each site in turn. It returns what each round reveals, for the seeds that have it.
func (b *inference) views(ctx context.Context, g *graph.Graph, settings string, parts int) (all [3]viewsOf, err error) {
	for k := range b.seeds {
		one := *b
		one.seed += uint64(k)
		plan, err := one.plan(settings)
		if err != nil {
			return all, err
		}
		if k > 0 {
			g = graphs.Resplit(g, one.seed)
		}
		shards, err := one.parts(g, parts, false)
		if err != nil {
			return all, err
		}
		var sums [3]view
		var nodes [3]float64
		for attacker := range parts {
			run, err := infer.Train(ctx, plan, shards, attacker)
			if err != nil {
				return all, err
			}
			found, err := run.RowClassesByRound()
			if err != nil {
				return all, err
			}
			for r, f := range found[:min(len(found), len(all))] {
				n := float64(f.Tried)
				sums[r], nodes[r] = view{sums[r].value + f.Value*n, sums[r].base + f.Base*n}, nodes[r]+n
			}
		}
		for r, n := range nodes {
			if n > 0 {
				all[r] = append(all[r], view{sums[r].value / n, sums[r].base / n})
			}
		}
	}
	return all, nil
}
