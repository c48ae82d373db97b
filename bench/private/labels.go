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
	"github.com/heddle-gnn/heddle/privacy/attack/infer"
)

// labelled compares plans that keep labels private with one that keeps nothing.
func labelled(ctx context.Context, p *page.Page, root string, names []string, runs int, judged graph.Split) error {
	p.Text("Accuracy of %s nodes in %%, with the standard error of the mean over %d runs, of four peers with secure sums, of which\n"+
		"one may collude; δ is %g. It is counted here, of the predictions, and without the noise that the program's own\n"+
		"figure has. `frugal` is the preset without privacy; ε 100 is the method with little noise. *Refused*: labels are\n"+
		"too few for the noise.", splitName(judged), runs, delta)
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
				test, err := tested(ctx, g, plan, judged)
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

// told attacks the labels of training nodes.
func told(ctx context.Context, p *page.Page, root string, names []string, runs int) error {
	p.Text("What a site of three that follows the protocol tells of labels, where all nodes that do not validate or test are\n"+
		"labelled for training (`class_target: labels`, parts at random, all rows cross). *Off rows*: classes of training nodes guessed by\n"+
		"the largest number of their rows, in %%, and in brackets those of test nodes, of which no label is used. *Members*: area under\n"+
		"the ROC curve of telling training nodes from test nodes by the margin of the true class. Means over %d runs. Without\n"+
		"noise a node's own part is in its row (`kept`) or, as by default, not (`left out`).", runs)
	p.Table("graph %s", "training nodes a class %.0f", "what %s", "kept %s", "left out %s", "ε 100 %s", "ε 8 %s", "ε 4 %s", "ε 1 %s")
	for _, name := range names {
		each, rows, members := 0.0, []any{}, []any{}
		for i, epsilon := range []float64{0, 0, quiet, 8, 4, 1} {
			sums, refused := [3]float64{}, false
			for k := range runs {
				g, err := open(root, name, k)
				if err != nil {
					return err
				}
				each = everyLabel(g)
				plan := private(0, k+1)
				plan.LabelEpsilon, plan.ClassTarget, plan.Exchange, plan.Peers, plan.Policy = epsilon, "labels", "halo", 3, "random"
				if plan.LeaveOneOut = "auto"; i == 0 {
					plan.LeaveOneOut = "false"
				}
				one, err := attacked(ctx, g, plan)
				if refused = err != nil && strings.Contains(err.Error(), "labelled training nodes"); refused {
					break
				}
				if err != nil {
					return fmt.Errorf("%s, ε %g: %w", name, epsilon, err)
				}
				for j, v := range one {
					sums[j] += v / float64(runs)
				}
			}
			if refused {
				rows, members = append(rows, "refused"), append(members, "refused")
				continue
			}
			rows, members = append(rows, fmt.Sprintf("%.0f (%.0f)", 100*sums[0], 100*sums[1])), append(members, fmt.Sprintf("%.2f", sums[2]))
		}
		p.Row(append([]any{name, each, "off rows"}, rows...)...)
		p.Row(append([]any{name, each, "members"}, members...)...)
	}
	return nil
}

// everyLabel makes all nodes of g that neither validate nor test training nodes. It returns how many there are a class.
func everyLabel(g *graph.Graph) float64 {
	n := 0
	for i, split := range g.Split {
		if split == graph.Val || split == graph.Test {
			continue
		}
		if g.Split[i] = graph.Train; g.Labels.Has(i) {
			n++
		}
	}
	return float64(n) / float64(g.Labels.Classes)
}

// attacked returns how many labels of training nodes, and of test nodes, a site tells by their rows, and how well it tells
// training nodes from test nodes.
func attacked(ctx context.Context, g *graph.Graph, plan heddle.Plan) (of [3]float64, err error) {
	shards, err := heddle.Split(g, plan)
	if err != nil {
		return of, err
	}
	run, err := infer.Train(ctx, plan, shards, 0)
	if err != nil {
		return of, err
	}
	rows, err := run.RowClasses()
	if err != nil {
		return of, err
	}
	members, err := run.Membership(ctx, 0)
	if err != nil {
		return of, err
	}
	return [3]float64{rows.Value, rows.Base, members[0].Value}, nil
}

// tested trains by plan, and returns the accuracy of the predictions of the nodes of a split.
func tested(ctx context.Context, g *graph.Graph, plan heddle.Plan, judged graph.Split) (float64, error) {
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
		for _, i := range own.NodesIn(judged) {
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
