package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dgl"
)

func newImport() *cobra.Command {
	var c dataset.ImportConfig
	var out, fromDGL, features string
	var directed, loops bool
	cmd := &cobra.Command{
		Use:   "import (--nodes nodes.csv [--edges edges.csv] | --dgl DIR) --out DIR",
		Short: "Make a data set of your own tables, or shards of DGL's partition",
		Long: `Make a data set of a table of nodes and a table of edges (CSV, TSV, gzipped or not, or Parquet). Columns of
numbers are standardised, columns of texts become categories; how is saved with the data set and with the
models trained on it, so that prediction reads other tables in the same way.

With --dgl, make shards of a partition that dgl.distributed.partition_graph wrote: its NAME.json, or the folder it lies
in. Who owns what stays; labels and features are the columns label and feat unless said otherwise.`,
		Example: `  peer import --nodes patients.csv --edges referrals.csv --label-column outcome --site-column hospital --out data/patients
  peer import --dgl partitions/cora.json --out parts`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fromDGL != "" {
				return importDGL(cmd, fromDGL, out, dgl.Names{Features: features, Label: c.Label, Weight: c.Weight, Build: graph.Build{Directed: directed, KeepLoops: loops}})
			}
			if err := c.Validate(); err != nil {
				return badInput{err}
			}
			g, err := dataset.Import(c)
			if err != nil {
				return badInput{err}
			}
			if err := dataset.Write(out, g); err != nil {
				return badInput{err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d nodes, %d edges, %d features, %d classes, %d sites\n",
				out, g.N(), g.Adj.NumEdges()/2, g.X.Cols(), g.Labels.Classes, len(g.Sites))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "", "of the data set (default: from the file of nodes)")
	f.StringVar(&c.Nodes, "nodes", "", "table of the nodes")
	f.StringVar(&c.Edges, "edges", "", "table of the edges, each undirected")
	f.StringVar(&c.ID, "id-column", "", "names of the nodes (default id)")
	f.StringVar(&c.Label, "label-column", "", "class of a node; an empty cell: no label")
	f.BoolVar(&c.Multi, "multi", false, "a cell of the label column holds any number of classes, separated by ;")
	f.StringVar(&c.Split, "split-column", "", "train, val, test or none; without it nodes are split by shares")
	f.StringVar(&c.Site, "site-column", "", "owner of a node, such as a hospital")
	f.StringSliceVar(&c.Numeric, "numeric", nil, "columns that are numbers (default: those that hold numbers)")
	f.StringSliceVar(&c.Categorical, "categorical", nil, "columns that are categories (default: those that hold texts)")
	f.StringSliceVar(&c.Ignore, "ignore", nil, "columns to leave out")
	f.StringVar(&c.Source, "source-column", "", "of the table of edges (default source)")
	f.StringVar(&c.Target, "target-column", "", "of the table of edges (default target)")
	f.StringVar(&c.Weight, "weight-column", "", "of the table of edges (default: all weigh 1)")
	f.Float64Var(&c.Train, "train", 0, "share of each class for training (default: all three unset: 0.6, 0.2, 0.2)")
	f.Float64Var(&c.Val, "val", 0, "share of each class for validation")
	f.Float64Var(&c.Test, "test", 0, "share of each class for testing")
	f.Uint64Var(&c.Seed, "seed", 1, "of the split by shares")
	f.StringVar(&fromDGL, "dgl", "", "a partition of DGL's: the file NAME.json, or its folder")
	f.StringVar(&features, "feature-column", "", "of --dgl: features of nodes (default feat or features)")
	f.BoolVar(&directed, "directed", false, "of --dgl: keep edges as they are; otherwise the reverse of each is added")
	f.BoolVar(&loops, "keep-loops", false, "of --dgl: keep edges from a node to itself")
	f.StringVarP(&out, "out", "o", "", "directory to write, which must not exist or be empty")
	required(cmd, "out")
	cmd.MarkFlagsOneRequired("nodes", "dgl")
	cmd.MarkFlagsMutuallyExclusive("nodes", "dgl")
	return cmd
}

// required marks flags that have no default.
func required(c *cobra.Command, names ...string) {
	for _, name := range names {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
