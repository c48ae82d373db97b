package attack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-gnn/heddle/bench/attack/infer"
	"github.com/heddle-gnn/heddle/bench/attack/recorded"
	"github.com/heddle-gnn/heddle/bench/graphs"
	"github.com/heddle-gnn/heddle/bench/page"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/plan"
	"github.com/heddle-gnn/heddle/rng"
)

// AboutInfer is the introduction of the second experiment's page.
var AboutInfer = page.About{
	Name:  "inference",
	Title: "Attacks on single nodes and edges",
	Text: `What a member of a run, or a reader of the model, infers of membership, edges, labels, degrees and rows of
training nodes, beside the result of the same attack without the run.`,
}

// CommandInfer registers the flags of the experiment and returns it.
func CommandInfer(f *flag.FlagSet) func(context.Context, *page.Page) error {
	b := inference{root: graphs.Root(f)}
	data := f.String("data", "cora,citeseer", "data sets, separated by commas")
	table := f.String("table", "nodes", "nodes, labels, told, sums, hidden, links, planting, columns")
	f.Uint64Var(&b.seed, "seed", 1, "random seed of partition and training")
	f.IntVar(&b.shadows, "shadows", 8, "models trained to tell members; below 4: none")
	f.StringVar(&b.methods, "methods", "full-batch,layer-wise", "methods by which links are learned")
	f.IntVar(&b.seeds, "seeds", 3, "of table told: seeds from that of -seed on")
	f.BoolVar(&b.trained, "trained", true, "also nodes of plans that are trained in rounds")
	f.IntVar(&b.rows, "rows", 100, "hidden rows that are inverted; of links epochs")
	f.StringVar(&b.settings, "settings", "method=class-means",
		"settings of tables plan and columns, by spaces (;)")
	f.IntVar(&b.sites, "sites", 3, "of table plan: number of sites")
	f.StringVar(&b.own.plan, "plan", "", "of table plan: plan instead of -data, with -shard")
	f.StringVar(&b.own.part, "shard", "", "of table plan: this site's part of the graph")
	return func(ctx context.Context, p *page.Page) error {
		measure := map[string]func(context.Context, *page.Page, []*graph.Graph) error{
			"nodes": b.nodes, "planting": b.planting, "labels": b.labels, "told": b.told, "sums": b.sums,
			"hidden": b.hidden, "links": b.links, "columns": b.columns, "plan": b.findings}[*table]
		if measure == nil {
			return fmt.Errorf("table must be nodes, labels, told, sums, hidden, links, planting, columns or plan "+
				"(got %q)", *table)
		}
		if (b.own.plan == "") != (b.own.part == "") {
			return errors.New("-plan and -shard must be given together")
		}
		if b.own.plan != "" {
			*data = ""
		}
		var all []*graph.Graph
		for _, name := range strings.FieldsFunc(*data, func(r rune) bool { return r == ',' }) {
			g, err := made(name, b.seed)
			if g == nil && err == nil {
				g, err = graphs.Open(*b.root, name)
			}
			if err != nil {
				return err
			}
			g = g.Numbered()
			g.Name = name
			all = append(all, g)
		}
		return measure(ctx, p, all)
	}
}

// inference is a run of the experiment. Site 1 is the victim and site 0 the attacker.
type inference struct {
	root          *string
	seed          uint64
	shadows, rows int
	seeds         int
	trained       bool
	methods       string
	settings      string // of table plan
	sites         int
	own           own
}

func (b *inference) plan(settings string) (plan.Plan, error) {
	given := map[string]string{"exchange": "halo", "seed": fmt.Sprint(b.seed)}
	for pair := range strings.FieldsSeq(settings) {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	p, err := plan.Read(nil, given, nil)
	if err != nil {
		return plan.Plan{}, err
	}
	return *p, nil
}

// parts divides g at random, or so that most nodes of a class are at one site.
func (b *inference) parts(g *graph.Graph, parts int, skewed bool) ([]*shard.Shard, error) {
	if !skewed {
		policy, err := partition.ParsePolicy("random")
		if err != nil {
			return nil, err
		}
		return partition.Partition(g, policy, parts, b.seed)
	}
	owner, key := make([]int32, g.N()), rng.New(b.seed).FoldString("skewed")
	for i := range owner {
		owner[i] = int32(key.Uint64(uint64(i)) % uint64(parts))
		if c := g.Labels.Class[i]; c >= 0 && key.Fold(1).Float64(uint64(i)) < 0.6 {
			owner[i] = c % int32(parts)
		}
	}
	return shard.Cut(g, owner, parts)
}

func (b *inference) run(ctx context.Context, g *graph.Graph, settings string, parts int,
	skewed bool) (*infer.Run, error) {
	p, err := b.plan(settings)
	if err != nil {
		return nil, err
	}
	shards, err := b.parts(g, parts, skewed)
	if err != nil {
		return nil, err
	}
	return infer.Train(ctx, p, shards, 0)
}

// figure writes one finding and its baseline ("–" = there is none).
func figure(all []infer.Finding, attack, measure string) string {
	k := slices.IndexFunc(all,
		func(f infer.Finding) bool { return strings.HasPrefix(f.Attack, attack) && f.Measure == measure })
	if k < 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f)", all[k].Value, all[k].Base)
}

// nodes attacks single nodes and edges.
func (b *inference) nodes(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Three sites at random, rows as they are (`exchange: halo`). In brackets: the baseline. " +
		"*AUC* is the area under\nthe ROC curve, *found* the fraction of training nodes found at 1 %% false alarms.")
	p.Table("data set %s", "setting %s", "members, by the margin: AUC %s", "found %s",
		"members, by shadow models: AUC %s", "found %s", "edges: AUC %s", "training labels off rows %s",
		"degrees: rank correlation %s", "exact %s")
	for _, g := range all {
		settings := []string{"method=class-means"}
		if b.trained {
			settings = append(settings, "method=layer-wise encoder=pca:128+classes",
				"method=layer-wise encoder=pca:128", "method=layer-wise encoder=pca:128 layer_output=logits")
		}
		for _, s := range settings {
			run, err := b.run(ctx, g, s, 3, false)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name, s, err)
			}
			found, err := run.All(ctx, 1, infer.Effort{Rows: 1, Tries: 1, Shadows: b.shadows})
			if err != nil {
				return fmt.Errorf("%s, %s: %w", g.Name, s, err)
			}
			row := []any{g.Name, s}
			const margin, shadows, degrees = "membership, by the margin", "membership, by shadow", "degrees of"
			for _, c := range [][2]string{{margin, "AUC"}, {margin, "found at 1 % false alarms"}, {shadows, "AUC"},
				{shadows, "found at 1 % false alarms"}, {"edges among", "AUC"}, {"labels of training",
					"right, training against test nodes"}, {degrees, "rank correlation"}, {degrees, "exact"}} {
				row = append(row, figure(found, c[0], c[1]))
			}
			p.Row(row...)
		}
	}
	return nil
}

// labels attacks the distribution of a site's labels.
func (b *inference) labels(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Total variation distance between estimate and truth (0 = exact), in brackets the distance of the " +
		"distribution over all\nsites, by class-means. *Skewed*: six of ten nodes of a class are at one site.")
	p.Table("data set %s", "sites %s", "training labels, 2 members %s", "3 members, who sums in the clear %s",
		"3 members, secure sums %s", "all labels, by rows of 3 members %s")
	for _, g := range all {
		for _, skewed := range []bool{false, true} {
			row := []any{g.Name, map[bool]string{false: "random", true: "skewed"}[skewed]}
			last := "–"
			for _, c := range []struct {
				parts    int
				settings string
			}{{2, "method=class-means"}, {3, "method=class-means secure_sums=off"}, {3, "method=class-means"}} {
				run, err := b.run(ctx, g, c.settings, c.parts, skewed)
				if err != nil {
					return fmt.Errorf("%s: %w", g.Name, err)
				}
				found, err := run.Labels(1)
				if err != nil {
					return err
				}
				const measure = "distance of the distribution"
				row = append(row, figure(found, "training labels", measure))
				last = figure(found, "labels of a site", measure)
			}
			p.Row(append(row, last)...)
		}
	}
	return nil
}

// sums attacks rows of training nodes in sums.
func (b *inference) sums(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Rows of site 1's training nodes found exactly in the sums by a member that subtracts its own " +
		"part, where the site\nhas 1, 2, 5 or 20 of them. The other sites have all of theirs. 20 rounds of encoders " +
		"`mlp` and `pca:128`; of `pca:128`\na row counts where the *aggregated* row of components is found. " +
		"Three members have secure sums.")
	p.Table("data set %s", "setting %s", "members %d", "of 1 %s", "of 2 %s", "of 5 %s", "of 20 %s")
	for _, g := range all {
		for _, s := range []string{"method=class-means", "method=layer-wise encoder=mlp layers=1 rounds=20",
			"method=layer-wise encoder=pca:128 layers=1 rounds=20"} {
			for _, parts := range []int{2, 3} {
				row := []any{g.Name, s, parts}
				for _, n := range []int{1, 2, 5, 20} {
					text, err := b.few(ctx, g, s, parts, n)
					if err != nil {
						return fmt.Errorf("%s, %s: %w", g.Name, s, err)
					}
					row = append(row, text)
				}
				p.Row(row...)
			}
		}
	}
	return nil
}

func (b *inference) few(ctx context.Context, g *graph.Graph, settings string, parts, n int) (string, error) {
	one, err := b.plan(settings)
	if err != nil {
		return "", err
	}
	shards, err := b.parts(g, parts, false)
	if err != nil {
		return "", err
	}
	if one.LayerWise.Encoder.Kind == "pca" && (n > 1 || parts > 2) {
		return "–", nil
	}
	if shards, err = infer.Thinned(shards, 1, n); err != nil {
		return "", err
	}
	run, err := infer.Train(ctx, one, shards, 0)
	if err != nil {
		return "", err
	}
	f, err := run.Gradients(ctx, 1)
	return fmt.Sprintf("%.0f", f.Value), err
}

// hidden attacks hidden rows of encoder mlp, with weights as trained and as one member plants them.
func (b *inference) hidden(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Rows found exactly in the hidden rows of encoder `mlp` (60 rounds, 256 columns), which any receiver has, " +
		"of three\nsites; and where one member adds a huge gradient of fixed signs to the encoder's weights.")
	p.Table("data set %s", "rows %d", "found %d", "columns right %.2f", "test accuracy %.3f",
		"found, weights planted %d", "columns right %.2f", "test accuracy %.3f")
	for _, g := range all {
		one, err := b.plan("method=layer-wise encoder=mlp layers=1 rounds=60")
		if err != nil {
			return err
		}
		shards, err := b.parts(g, 3, false)
		if err != nil {
			return err
		}
		row := []any{g.Name}
		for k, train := range []func(context.Context, plan.Plan, []*shard.Shard,
			int) (*recorded.Run, error){recorded.Train, infer.Planted} {
			run, err := train(ctx, one, shards, 0)
			if err != nil {
				return err
			}
			r, err := run.HiddenRows(ctx, 1, b.rows)
			if err != nil {
				return err
			}
			if k == 0 {
				row = append(row, r.Tried)
			}
			share, _ := r.Share()
			row = append(row, r.Exact, share, run.Result.Final().Test)
		}
		p.Row(row...)
	}
	return nil
}

// links attacks links between nodes of a site if links are the task.
func (b *inference) links(ctx context.Context, p *page.Page, all []*graph.Graph) error {
	p.Text("Three sites at random, `task: links`. AUC of pairs of the victim's nodes whose last rows the " +
		"attacker reads, or with\nlayer-wise computes from what crosses, in brackets by the features of both nodes.")
	p.Table("data set %s", "method %s", "decoder %s", "negatives from %s", "nodes read %s",
		"trained links against pairs without %s", "held-out links against pairs without %s",
		"trained against held-out links %s", "test AUC of the model %.2f")
	for _, g := range all {
		for _, c := range [][4]string{{"full-batch", "gcn", "dot", "all"}, {"full-batch", "sage", "mlp", "all"},
			{"full-batch", "gcn", "dot", "near"}, {"layer-wise", "gcn", "dot", "near"},
			{"layer-wise", "sage", "mlp", "near"}} {
			if !slices.Contains(strings.Split(b.methods, ","), c[0]) {
				continue
			}
			run, err := b.run(ctx, g, fmt.Sprintf("method=%s exchange=auto task=links model=%s decoder=%s "+
				"negatives_from=%s rounds=%d", c[0], c[1], c[2], c[3], b.rows), 3, false)
			if err != nil {
				return fmt.Errorf("%s: %w", g.Name, err)
			}
			nodes, _, err := run.Run.Ends(1)
			if err != nil {
				return err
			}
			found, err := run.Ends(1)
			if err != nil {
				return err
			}
			row := []any{g.Name, c[0], c[1] + ", " + c[2], c[3],
				fmt.Sprintf("%d of %d", len(nodes), run.Shards[1].Owned)}
			for _, f := range found {
				row = append(row, fmt.Sprintf("%.2f (%.2f)", f.Value, f.Base))
			}
			p.Row(append(row, run.Ranks.AUC)...)
		}
	}
	return nil
}
