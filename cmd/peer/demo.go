package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/nn/eval"
)

func newDemo() *cobra.Command {
	var seed uint64
	var out string
	var quiet bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Train over four sites on this machine and compare with the other ways",
		Long: `Train over the four sites of a built-in graph, each with a peer of its own over real QUIC on loopback, and
compare: what each site reaches alone, what the features alone give, what the sites reach together, and what
pooled data would reach.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return demo(c.Context(), seed, out, newWatch(c.ErrOrStderr(), quiet), c.OutOrStdout())
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 1, "of the graph and of training")
	c.Flags().StringVarP(&out, "out", "o", filepath.Join("runs", "demo"), "directory to write to")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
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
		g.N(), g.Adj.NumEdges()/2, g.Labels.Classes, len(shards), partition.Describe(shards, partition.Meta{}).Report().Cut/2)
	fmt.Fprintf(stdout, "%d nodes have a label to learn from; accuracy is over the %d test nodes of all sites.\n\n", len(g.InSplit(graph.Train)), len(g.InSplit(graph.Test)))

	whole := []*partition.Shard{partition.Whole(g)}
	gcn, err := base("standalone", "", "gcn")
	if err != nil {
		return err
	}
	gcn.Seed = seed
	mlp := gcn
	mlp.Model = "mlp"
	frugal, err := base("retexo", "frugal", "gcn")
	if err != nil {
		return err
	}
	frugal.Seed = seed
	frugal.Hops = 2 // by the validation nodes: of mean degree 10, two hops see enough

	table := report.Table{Head: []string{"way", "test accuracy", "sent by all sites"}}
	add := func(name string, accuracy float64, bytes string) {
		table.Rows = append(table.Rows, []string{name, percent(accuracy), bytes})
	}
	var right eval.Counts
	for r, s := range shards {
		o, err := together(ctx, gcn, []*partition.Shard{partition.Whole(alone(s))}, network{Transport: "memory"}, "", nil)
		if err != nil {
			return fmt.Errorf("site %d alone: %w", r, err)
		}
		site := alone(s)
		scores, err := o.Model.Infer(site)
		if err != nil {
			return err
		}
		counts := eval.Count(scores, site.Labels, site.InSplit(graph.Test))
		if r == 0 {
			right = counts
		} else {
			right.Add(counts)
		}
		add(fmt.Sprintf("%s alone (its own %d nodes)", g.Sites[r], s.Owned), o.Test, "0 B")
	}
	add("each site alone, over all test nodes", right.Accuracy(), "0 B")

	feature, err := together(ctx, mlp, whole, network{Transport: "memory"}, "", nil)
	if err != nil {
		return fmt.Errorf("features only: %w", err)
	}
	rows, edges := pooling(shards)
	add("features only, pooled (no edges)", feature.Test, report.Bytes(rows)+" of raw data")

	o, err := together(ctx, frugal, shards, network{Transport: "libp2p", Carrier: "quic"}, "", w)
	w.end()
	if err != nil {
		return fmt.Errorf("together: %w", err)
	}
	sum := o.bytes()
	add("Heddle, together", o.Test, fmt.Sprintf("%s (%s on the wire)", report.Bytes(sum.Halo+sum.Reduce+sum.Control), report.Bytes(sum.Wire)))

	pooled, err := together(ctx, gcn, whole, network{Transport: "memory"}, "", nil)
	if err != nil {
		return fmt.Errorf("pooled: %w", err)
	}
	add("pooled data (upper bound)", pooled.Test, report.Bytes(rows+edges)+" of raw data")

	t := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, strings.Join(table.Head, "\t"))
	for _, row := range table.Rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	setting, err := yaml.Marshal(frugal)
	if err != nil {
		return err
	}
	files, err := o.write(out, shards, frugal, report.Page{Setting: string(setting), Compare: &table, Command: fmt.Sprintf("peer demo --seed %d", seed)})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nHeddle sent projected rows of %d columns and sums; no site's raw features, labels or own edges left it.\n", o.Model.Spec.Encoder.Out)
	fmt.Fprintf(stdout, "model:  %s\nreport: %s\n%.1f s\n", files.model, files.report, time.Since(start).Seconds())
	return nil
}

// pooling returns what all sites but the first, where the data would be pooled, would have to send: 8 bytes for each
// value of the sparse features with its column, and 8 for each edge.
func pooling(shards []*partition.Shard) (rows, edges int64) {
	for _, s := range shards[1:] {
		rows += 8 * int64(s.X.Sparse.NNZ())
		edges += 8 * int64(s.Adj.NumEdges()) / 2
	}
	return rows, edges
}
