package attack

import (
	"context"
	"fmt"
	"math"

	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/privacy/attack/infer"
)

// told attacks the labels of training nodes by the rows that each site in turn receives of all others.
func (b *inference) told(ctx context.Context, p *page.Page, graphs []*graph.Graph) error {
	p.Text("Classes of training nodes guessed by the largest number of their rows, in %%, and in brackets those of test nodes of the\n"+
		"same classes. Each site in turn attacks all others; mean over their views of %d seeds, weighted by training nodes. The\n"+
		"*excess* is that of the round where it is largest over all views, with the standard error of the mean over training nodes.", b.seeds)
	p.Table("data set %s", "setting %s", "sites %d", "training nodes a view %.0f", "round 1 %s", "round 2 %s", "round 3 %s", "excess, points %s")
	for _, g := range graphs {
		for _, s := range []string{"preset=frugal", "preset=frugal leave_one_out=false", "preset=frugal class_target=labels hops=6 hops_kept=all random_features=128"} {
			for _, parts := range []int{3, 8} {
				all, err := b.views(ctx, g, s, parts)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", g.Name, s, err)
				}
				row, most := []any{g.Name, s, parts, all[0].n / float64(parts*b.seeds)}, 0
				for r, v := range all {
					if v.n == 0 {
						row = append(row, "–")
						continue
					}
					row = append(row, fmt.Sprintf("%.1f (%.1f)", 100*v.value/v.n, 100*v.base/v.n))
					if v.excess() > all[most].excess() {
						most = r
					}
				}
				share, nodes := all[most].value/all[most].n, all[most].n/float64(parts-1) // a node has a row at each other site at most
				p.Row(append(row, fmt.Sprintf("%.1f ± %.1f", 100*all[most].excess(), 100*math.Sqrt(share*(1-share)/nodes)))...)
			}
		}
	}
	return nil
}

// view is what the rows of a round tell, over several views.
type view struct {
	value float64 // training nodes guessed right
	base  float64 // that would be at the rate of test nodes
	n     float64 // training nodes
}

func (v view) excess() float64 { return (v.value - v.base) / v.n }

// views attacks by the view of each of so many sites in turn. It returns what each round tells, over the runs that have it.
func (b *inference) views(ctx context.Context, g *graph.Graph, settings string, parts int) (all [3]view, err error) {
	for k := range b.seeds {
		one := *b
		one.seed += uint64(k)
		plan, err := one.plan(settings)
		if err != nil {
			return all, err
		}
		shards, err := one.parts(g, parts, false)
		if err != nil {
			return all, err
		}
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
				all[r] = view{all[r].value + f.Value*n, all[r].base + f.Base*n, all[r].n + n}
			}
		}
	}
	return all, nil
}
