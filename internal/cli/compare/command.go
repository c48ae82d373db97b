// Package compare has the commands that compare what sites reach together with what each of them reaches by itself.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/cli/graphs"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/plan"
)

// Commands returns the commands of this package. join is a heddle join that then compares, for sites that have a plan.
func Commands(join *cobra.Command) []*cobra.Command {
	c := newCompare()
	overSites(c, join)
	return []*cobra.Command{newDemo(), c}
}

// comparing has the flags of heddle compare.
type comparing struct {
	graphs.RunFile
	view cli.WatchFlags
}

func newCompare() *cobra.Command {
	var c comparing
	one := &cobra.Command{
		Use:   "compare (--data D [--peers K] | --shards DIR | --plan PLAN --shard S)",
		Short: "Compare training together with training alone",
		Long: `Compare training together with each site by itself, with features only and with pooled data. All sites
are simulated on this machine.

Settings are those of heddle train, once for each of --seeds. Pooled data are trained by the same settings and by
GraphSAGE; features by a linear model or a hidden layer, whichever validates better. The result has the gain of
training together on the same test nodes, with a 95 % interval, and how many bytes were sent.

The directory gets compare.html, compare.json, compare.csv, compare.npz and settings.yaml. heddle train writes the
model.

With --plan each site of the plan runs it, or heddle join, with its own part. They train one model, and this site
learns from its own test nodes whether joining helped. Nothing of the comparison leaves the site.`,
		Example: `  heddle compare --data data/cora --seeds 5
  heddle compare --data data/cora --peers 4 --method layer-wise --model sage --rounds 50
  heddle compare --shards parts --config settings.yaml
  heddle compare --plan plan.yaml --shard parts/part-0`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := c.view.Start(cmd)
			if err != nil {
				return err
			}
			defer w.End()
			p, err := c.Load(cmd.Flags(), cli.GivenSettings(cmd.Flags()))
			if err != nil {
				return err
			}
			all, err := open(c.Source, *p, w.Event)
			if err != nil {
				return err
			}
			return c.compare(cmd.Context(), all, w, c.view.Text(cmd), "")
		},
	}
	f := one.Flags()
	// One trial of setting init has the layers of a file.
	cli.BindSettings(f, "train", func(s plan.Setting) bool { return s.Name != "init" })
	c.Bind(f, 5, "runs/DATA-compare")
	c.view.Bind(f)
	cli.ShortHelp(one, "method", "data", "shards", "peers", "policy", "config", "seeds", "seed", "task", "metric",
		"epsilon", "plan", "shard", "state", "identity", "out", "json", "quiet")
	return one
}

// comparable refuses what cannot be compared: a metric that is no share of anything, and links.
func comparable(m eval.Metric, p heddle.Plan) error {
	if m.Gain(1, 0) < 0 {
		return fmt.Errorf("comparing needs a metric that grows with quality, such as r2 or accuracy "+
			"(got %s): set --metric", m)
	}
	if p.Task.Links() {
		return errors.New("comparing needs task auto (got links): heddle train ranks links together, and on one " +
			"part a site ranks only its own")
	}
	return nil
}

// compare trains over all inputs in all ways. command repeats it (empty = heddle compare with the settings that are
// written).
func (c *comparing) compare(ctx context.Context, all *data, w *cli.Watch, stdout io.Writer,
	command string) (err error) {
	defer func() { err = errors.Join(err, all.closer.Close()) }()
	in, err := all.run(0)
	if err != nil {
		return err
	}
	if err := comparable(eval.Metric(in.plan.Metric), in.plan); err != nil {
		return cli.Invalid(err)
	}
	if len(in.shards) < 2 {
		return cli.Invalidf("peers must be at least 2 (got %d): comparing needs several sites that train together",
			len(in.shards))
	}
	if err := in.plan.Check(in.shards); err != nil {
		return cli.Invalid(err)
	}
	if c.Out == "" {
		c.Out = filepath.Join("runs", cli.FileName(in.graph.Name)+"-compare")
	}
	if err := cli.WritableDir(c.Out); err != nil {
		return err
	}
	if err := cli.KeepsWithin(c.Out, resultFiles...); err != nil {
		return err
	}
	started := in
	r := &results{sameNodes: all.sameNodes}
	for k := range c.Seeds {
		if k > 0 {
			if in, err = all.run(k); err != nil {
				return err
			}
		}
		if err := r.add(ctx, in, w, fmt.Sprintf("run %d of %d, ", k+1, c.Seeds)); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted before the last run: nothing is written")
			}
			return err
		}
	}
	w.End()
	if err := r.end(in); err != nil {
		return err
	}
	if err := r.sign(started.plan, c, command); err != nil {
		return err
	}
	if err := r.writeFiles(c.Out); err != nil {
		return err
	}
	describe(stdout, started)
	if err := r.print(stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nreport: %s\n", filepath.Join(c.Out, "compare.html"))
	return err
}

// sign adds the settings and what made the figures.
func (r *results) sign(p heddle.Plan, c *comparing, command string) error {
	settings, err := p.MarshalYAML()
	if err != nil {
		return err
	}
	if r.Settings, r.Command = string(settings), command; command == "" {
		place, err := yaml.Marshal(c.RunFile)
		if err != nil {
			return err
		}
		r.Settings += string(place)
		r.Command = fmt.Sprintf("heddle compare --config %s --out %s-again", filepath.Join(c.Out, "settings.yaml"),
			c.Out)
	}
	r.Version, r.Date = cli.Version(), time.Now().UTC().Format(time.RFC3339)
	return nil
}

// describe prints what is compared on.
func describe(w io.Writer, in input) {
	g := in.graph
	labels := fmt.Sprintf("in %d classes", g.Labels.Classes)
	if g.Labels.Kind() == graph.Numbers {
		labels = "with a numeric target"
	}
	text := fmt.Sprintf("%s: %d nodes and %d edges %s at %d sites; %d edges join two sites. "+
		"%d nodes have a label to learn from; the metric is over %d test nodes.", g.Name, g.N(), g.Adj.NumEdges()/2,
		labels, len(in.shards), partition.Measure(shard.Describe(in.shards, shard.Meta{})).Cut/2,
		len(g.InSplit(graph.Train)), len(g.InSplit(graph.Test)))
	fmt.Fprintln(w, cli.WrapWords(strings.Fields(text), "\n", columns)+"\n")
}
