package private

import (
	"context"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// labelled compares plans that keep labels private with one that keeps nothing.
func labelled(ctx context.Context, p *page.Page, root string, names []string, runs int) error {
	p.Text("Test accuracy in %%, with the standard error of the mean over %d runs, of four peers with secure sums, of which\n"+
		"one may collude; δ is %g. It is counted here, of the predictions, and without the noise that the program's own\n"+
		"figure has. `frugal` is the preset without privacy; ε 100 is the method with little noise. *Refused*: labels are\n"+
		"too few for the noise.", runs, delta)
	p.Table("graph %s", "training nodes a class %.0f", "frugal %s", "ε 100 %s", "ε 8 %s", "ε 4 %s", "ε 1 %s", "lost at ε 4 %s")
	for _, name := range names {
		epsilons := []float64{0, quiet, 8, 4, 1}
		figures, lost, each, refused := make([]figure, len(epsilons)), figure{}, 0.0, make([]bool, len(epsilons))
		for k := range runs {
			g, err := open(root, name, k)
			if err != nil {
				return err
			}
			each = float64(shard.Whole(g).Labels.Select(shard.Whole(g).NodesIn(graph.Train)).Labelled()) / float64(g.Labels.Classes)
			for i, epsilon := range epsilons {
				plan := private(0, k+1)
				plan.LabelEpsilon = epsilon
				test, err := tested(ctx, g, plan)
				if refused[i] = err != nil && strings.Contains(err.Error(), "labelled training nodes"); refused[i] {
					continue
				}
				if err != nil {
					return fmt.Errorf("%s, ε %g: %w", name, epsilon, err)
				}
				figures[i] = append(figures[i], test)
			}
			if !refused[3] {
				lost = append(lost, figures[0][k]-figures[3][k])
			}
		}
		row := []any{name, each}
		for i, f := range append(figures, lost) {
			if i < len(refused) && refused[i] || i == len(refused) && refused[3] {
				row = append(row, "refused")
			} else {
				row = append(row, f)
			}
		}
		p.Row(row...)
	}
	return nil
}

// tested trains by plan, and returns the accuracy of the predictions of test nodes.
func tested(ctx context.Context, g *graph.Graph, plan heddle.Plan) (float64, error) {
	shards, err := heddle.Split(g, plan)
	if err != nil {
		return 0, err
	}
	r, err := heddle.Local{Plan: plan, Shards: shards}.Train(ctx)
	if err != nil {
		return 0, err
	}
	right, all := 0, 0
	for rank, own := range shards {
		for _, i := range own.NodesIn(graph.Test) {
			if !own.Labels.Has(int(i)) {
				continue
			}
			if all++; int(own.Labels.Class[i]) == eval.ArgMax(r.Own[rank].Logits.Row(int(i))) {
				right++
			}
		}
	}
	return 100 * float64(right) / float64(all), nil
}
