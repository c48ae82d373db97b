// Package cover measures what sums instead of rows save.
package cover

import (
	"context"
	"flag"
	"fmt"
	"math"
	"strings"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
)

// About is the introduction of this experiment's page.
var About = page.About{
	Name:  "cover",
	Title: "Covers of the boundary",
	Text: `The same model, trained by peers in memory once with rows of the halo and once with covers,
layer by layer and end to end. Bytes are those of rows, sums and gradients, of a whole
layer-wise run and of one epoch; the last column of each is the largest relative difference of a
loss.`,
}

// Command registers the flags of the experiment and returns it.
func Command(f *flag.FlagSet) func(context.Context, *page.Page) error {
	root := graphs.Root(f)
	names := f.String("graph", "cora,dblp-citation,facebook-pages,amazon-computers,github-web-ml,tolokers",
		"graphs to measure")
	policies := f.String("policy", "random,restream:5,multilevel", "partition policies")
	parts := f.Int("k", 4, "number of parts")
	hidden := f.Int("hidden", 64, "width of the hidden rows and of the encoder")
	return func(ctx context.Context, p *page.Page) error {
		p.Table("graph %s", "policy %s", "rows of the halo %d", "messages of a cover %d",
			"layer-wise, halo, bytes %d", "cover, bytes %d", "difference %.1e",
			"epoch, halo, bytes %d", "cover, bytes %d", "difference %.1e")
		for _, name := range strings.Split(*names, ",") {
			g, err := graphs.Open(*root, name)
			if err != nil {
				return err
			}
			for _, policy := range strings.Split(*policies, ",") {
				if err := measure(ctx, p, g, name, policy, *parts, *hidden); err != nil {
					return fmt.Errorf("%s, %s: %w", name, policy, err)
				}
			}
		}
		return nil
	}
}

// measure adds the row of one graph and policy.
func measure(ctx context.Context, p *page.Page, g *graph.Graph, name, policy string, parts, hidden int) error {
	layerwise, endToEnd := plans(policy, parts, hidden)
	shards, err := heddle.Split(g, layerwise)
	if err != nil {
		return err
	}
	rows := 0
	for _, s := range shards {
		rows += s.Halo()
	}
	cells := []any{name, policy, rows, partition.LeastMessages(shards).Total}
	for _, plan := range []heddle.Plan{layerwise, endToEnd} {
		var outcomes []outcome
		for _, exchange := range []string{"halo", "cover"} {
			if plan.Federated() {
				plan.LayerWise.Exchange = exchange
			} else {
				plan.FullBatch.Exchange = exchange
			}
			out, err := train(ctx, shards, plan)
			if err != nil {
				return err
			}
			outcomes = append(outcomes, out)
		}
		halo, cover := outcomes[0], outcomes[1]
		worst := 0.0
		for i, loss := range cover.losses {
			worst = max(worst, math.Abs(loss-halo.losses[i])/halo.losses[i])
		}
		cells = append(cells, halo.bytes, cover.bytes, worst)
	}
	p.Row(cells...)
	return nil
}

// plans are two layers of GCN, layer by layer for five rounds each, and together for three epochs.
func plans(policy string, parts, hidden int) (layerwise, endToEnd heddle.Plan) {
	layerwise = heddle.Defaults(plan.LayerWise, "")
	layerwise.LayerWise.Encoder, layerwise.LayerWise.Rounds = plan.Encoder{Kind: "pca", K: hidden}, 5
	endToEnd = heddle.Defaults(plan.FullBatch, "")
	endToEnd.FullBatch.Rounds, endToEnd.FullBatch.EvalEvery = 3, 1000
	for _, p := range []*heddle.Plan{&layerwise, &endToEnd} {
		p.Gradient().Hidden, p.Peers, p.Policy, p.Transport = hidden, parts, policy, "memory"
	}
	return layerwise, endToEnd
}

// outcome is the result of a training: bytes of rows, of all peers, and the losses.
type outcome struct {
	bytes  int64
	losses []float64
}

// train trains with one peer a shard. The bytes are those of the whole run or, end to end, of one
// epoch without validation: the difference to a run with an epoch less. Exchange auto could choose
// differently in that run, since it weighs the number of epochs.
func train(ctx context.Context, shards []*shard.Shard, p heddle.Plan) (out outcome, err error) {
	r, err := heddle.Local{Plan: p, Shards: shards}.Train(ctx)
	if err != nil {
		return out, err
	}
	out.bytes = r.Total().Halo
	for _, point := range r.Curve() {
		out.losses = append(out.losses, point.Loss)
	}
	if p.Method == plan.FullBatch {
		p.Gradient().Rounds--
		shorter, err := heddle.Local{Plan: p, Shards: shards}.Train(ctx)
		if err != nil {
			return out, err
		}
		out.bytes -= shorter.Total().Halo
	}
	return out, nil
}
