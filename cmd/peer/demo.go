package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/quality"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/eval"
)

func newDemo() *cobra.Command {
	var seed uint64
	var out string
	var view watchFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Train over four sites on this machine and compare",
		Long: `Train over the four sites of a built-in graph, each with its own peer over QUIC on this machine, and compare the test
accuracy of each site alone, of the features alone, of the sites together, and of pooled data.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.start(c.ErrOrStderr())
			if err != nil {
				return err
			}
			defer w.end()
			return demo(c.Context(), seed, out, w, c.OutOrStdout())
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 1, "random seed of graph and training")
	c.Flags().StringVarP(&out, "out", "o", filepath.Join("runs", "demo"), "directory to write to")
	view.bind(c.Flags())
	return c
}

func demo(ctx context.Context, seed uint64, out string, w *watch, stdout io.Writer) error {
	if err := writableDir(out); err != nil {
		return err
	}
	start := time.Now()
	g := dataset.Sites(dataset.SitesConfig{}, rng.New(seed))
	shards, err := partition.Partition(g, partition.ByColumn{}, 0, seed)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "A graph of %d nodes and %d edges in %d classes lies on %d sites; %d of the edges join two sites.\n",
		g.N(), g.Adj.NumEdges()/2, g.Labels.Classes, len(shards), quality.Measure(shard.Describe(shards, shard.Meta{})).Cut/2)
	fmt.Fprintf(stdout, "%d nodes have a label to learn from; accuracy is over the %d test nodes of all sites.\n\n", len(g.InSplit(graph.Train)), len(g.InSplit(graph.Test)))

	gcn := heddle.Defaults(heddle.Plan{Mode: "standalone"})
	gcn.Seed = seed
	frugal := heddle.Defaults(heddle.Plan{Preset: "frugal"})
	frugal.Seed = seed
	frugal.Hops = 2 // by the validation nodes: of mean degree 10, two hops see enough
	d := demonstration{graph: g, shards: shards, table: report.Table{Head: []string{"way", "test accuracy", "sent by all sites"}}}
	if err := d.alone(ctx, gcn); err != nil {
		return err
	}
	rows, edges := pooling(shards)
	mlp := gcn
	mlp.Model = "mlp"
	if err := d.pooled(ctx, mlp, "features only, pooled (no edges)", rows); err != nil {
		return err
	}
	o, err := heddle.Local{Plan: frugal, Shards: shards, OnEvent: w.event}.Train(ctx)
	w.end()
	if err != nil {
		return fmt.Errorf("together: %w", err)
	}
	sum := o.Total()
	d.add("Heddle, together", o.Test, fmt.Sprintf("%s (%s on the wire)", report.Bytes(sum.Halo+sum.Reduce+sum.Control), report.Bytes(sum.Wire)))
	if err := d.pooled(ctx, gcn, "pooled data (upper bound)", rows+edges); err != nil {
		return err
	}
	if err := d.print(stdout); err != nil {
		return err
	}
	setting, err := frugal.MarshalYAML()
	if err != nil {
		return err
	}
	files, err := writeRun(o, out, shards[0], frugal, report.Page{Setting: string(setting), Compare: &d.table, Command: fmt.Sprintf("peer demo --seed %d", seed)})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nHeddle sent projected rows of %d columns and sums. Both can reveal raw features: docs/explanation/privacy.md.\n", o.Model.Spec.Encoder.Out)
	fmt.Fprintf(stdout, "model:  %s\nreport: %s\n%.1f s\n", files.model, files.report, time.Since(start).Seconds())
	return nil
}

// demonstration compares ways to train on the graph of several sites.
type demonstration struct {
	graph  *graph.Graph
	shards []*shard.Shard
	table  report.Table
}

func (d *demonstration) add(name string, accuracy float64, bytes string) {
	d.table.Rows = append(d.table.Rows, []string{name, percent(accuracy), bytes})
}

// alone trains at each site on its own nodes.
func (d *demonstration) alone(ctx context.Context, p heddle.Plan) error {
	var right eval.Counts
	for r, s := range d.shards {
		site := alone(s)
		o, err := heddle.Local{Plan: p, Shards: []*shard.Shard{shard.Whole(site)}}.Train(ctx)
		if err != nil {
			return fmt.Errorf("site %d alone: %w", r, err)
		}
		logits, err := o.Model.Infer(site)
		if err != nil {
			return err
		}
		counts := eval.Count(logits, site.Labels, site.InSplit(graph.Test))
		if r == 0 {
			right = counts
		} else {
			right.Add(counts)
		}
		d.add(fmt.Sprintf("%s alone (its own %d nodes)", d.graph.Sites[r], s.Owned), o.Test, "0 B")
	}
	d.add("each site alone, over all test nodes", right.Accuracy(), "0 B")
	return nil
}

// pooled trains on the data of all sites in one place, for which so many bytes of them move.
func (d *demonstration) pooled(ctx context.Context, p heddle.Plan, name string, bytes int64) error {
	o, err := heddle.Local{Plan: p, Shards: []*shard.Shard{shard.Whole(d.graph)}}.Train(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.add(name, o.Test, report.Bytes(bytes)+" of raw data")
	return nil
}

func (d *demonstration) print(stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, strings.Join(d.table.Head, "\t"))
	for _, row := range d.table.Rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// pooling returns what all sites but the first, where the data would be pooled, would have to send: 8 bytes for each
// value of the sparse features with its column, and 8 for each edge.
func pooling(shards []*shard.Shard) (rows, edges int64) {
	for _, s := range shards[1:] {
		rows += 8 * int64(s.X.Sparse.NNZ())
		edges += 8 * int64(s.Adj.NumEdges()) / 2
	}
	return rows, edges
}
