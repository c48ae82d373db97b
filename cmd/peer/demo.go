package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/graph/partition/quality"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/rng"
)

func newDemo() *cobra.Command {
	var seed uint64
	var out output
	var view cli.WatchFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "Train over four sites on this machine and compare",
		Long: `Train over the four sites of a built-in graph, each with its own peer over QUIC on this machine, and compare the test
accuracy of each site alone, of the features alone, of the sites together, and of pooled data.`,
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := view.Start(c.ErrOrStderr())
			if err != nil {
				return err
			}
			defer w.End()
			return demo(c.Context(), seed, out, w, c.OutOrStdout())
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 1, "random seed of graph and training")
	c.Flags().StringVarP(&out.dir, "out", "o", filepath.Join("runs", "demo"), "directory to write to")
	view.Bind(c.Flags())
	return c
}

func demo(ctx context.Context, seed uint64, out output, w *cli.Watch, stdout io.Writer) error {
	if err := out.check(); err != nil {
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
	fmt.Fprintf(stdout, "%d nodes have a label to learn from; accuracy is over the %d test nodes of all sites.\n\n",
		len(g.InSplit(graph.Train)), len(g.InSplit(graph.Test)))

	gcn := heddle.Defaults(heddle.Plan{Mode: "standalone"})
	gcn.Seed = seed
	auto := heddle.Defaults(heddle.Plan{Preset: "auto"})
	auto.Seed = seed
	mlp := gcn
	mlp.Model = "mlp"
	all, err := heddle.Compare(ctx, g, shards,
		heddle.Trial{Name: "each site alone, over all test nodes", Plan: gcn, Alone: true},
		heddle.Trial{Name: "features only, pooled (no edges)", Plan: mlp},
		heddle.Trial{Name: "Heddle, together", Plan: auto, OnEvent: w.Event},
		heddle.Trial{Name: "pooled data, one GCN", Plan: gcn})
	w.End()
	if err != nil {
		return err
	}
	table, ways := demoTable(g, shards, all)
	lines := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{table.Head}, table.Rows...) {
		fmt.Fprintln(lines, strings.Join(row, "\t"))
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	o := all[2].Runs[0]
	page := report.Run{Names: g.Sites, Compare: &table, Ways: ways, Command: fmt.Sprintf("peer demo --seed %d", seed)}
	if err := out.write(o, auto, shards, page); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s\nWho sees what is in docs/explanation/privacy.md.\n", chosen(o))
	fmt.Fprintf(stdout, "model:  %s\nreport: %s\n%.1f s\n", out.model(), out.report(), time.Since(start).Seconds())
	return nil
}

// chosen says in a sentence what preset auto tried and chose.
func chosen(o *heddle.Result) string {
	tried, sent, name := 0, int64(0), ""
	for _, a := range o.Tried {
		if a.Sent > 0 {
			tried, sent = tried+1, sent+a.Sent
		}
		if a.Chosen {
			name = a.Name
		}
	}
	return fmt.Sprintf("Of %d plans, which sent %s in all, validation chose %s.", tried, report.Bytes(sent), name)
}

// demoTable compares the four trials of the demo, in numbers and in bars.
func demoTable(g *graph.Graph, shards []*shard.Shard, all []heddle.Outcome) (t report.Table, ways []report.Bar) {
	rows, edges := pooling(shards)
	sent := all[2].Sent
	moved := []string{"0 B", report.Bytes(rows) + " of raw data",
		fmt.Sprintf("%s (%s on the wire)", report.Bytes(sent.Total()), report.Bytes(sent.Wire)),
		report.Bytes(rows+edges) + " of raw data"}
	t = report.Table{Head: []string{"way", "test accuracy", "sent by all sites"}}
	for r, o := range all[0].Runs {
		name := fmt.Sprintf("%s alone (its own %d nodes)", g.Sites[r], shards[r].Owned)
		t.Rows = append(t.Rows, []string{name, report.Percent(o.Test), "0 B"})
		ways = append(ways, report.Bar{Name: g.Sites[r] + " alone", Value: o.Test, Low: math.NaN(), High: math.NaN()})
	}
	for k, o := range all {
		t.Rows = append(t.Rows, []string{o.Name, report.Percent(o.Test), moved[k]})
		ways = append(ways, report.Bar{Name: []string{"each site alone", "features only", "Heddle, together", "pooled data"}[k], Value: o.Test,
			Low: math.NaN(), High: math.NaN()})
	}
	return t, ways
}

// pooling returns the bytes that the other sites would send if the data were pooled at the first: 8
// for each value of the sparse features with its column, and 8 for each edge.
func pooling(shards []*shard.Shard) (rows, edges int64) {
	for _, s := range shards[1:] {
		rows += 8 * int64(s.X.Sparse.NNZ())
		edges += 8 * int64(s.Adj.NumEdges()) / 2
	}
	return rows, edges
}
