package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dgl"
	"github.com/heddle-gnn/heddle/graph/partition"
)

func newImport() *cobra.Command {
	var c dataset.ImportConfig
	var out, fromDGL, features, fromOGB, split string
	var directed, loops bool
	var list dataset.EdgeConfig
	cmd := &cobra.Command{
		Use:   "import (--nodes FILE [--edges FILE] | --edges FILE | --ogb DIR | --dgl DIR) --out DIR",
		Short: "Make a data set of your own tables, a list of edges or an OGB set, or shards of DGL's partition",
		Long: `Make a data set of a table of nodes and a table of edges (CSV, TSV, packed by gzip or zstd or not, or Parquet). Columns of
numbers are standardised, columns of texts become categories; how is saved with the data set and with the
models trained on it, so that prediction reads other tables in the same way.

With --edges alone, make a graph of a list of edges between numbered nodes: text (.txt, .el, .edges), CSV, Parquet, binary
(.el32, .el64, .wel32, .wel64), Galois (.gr) or Matrix Market (.mtx). Columns without names are numbered from 1.
A list that does not fit into memory is stored: --out NAME.graph, which peer partition --memory takes. With --nodes so is a
table of nodes: their names have to be 0, 1, 2, … in its order, and the edges those numbers.

With --ogb, make a data set of a folder of the Open Graph Benchmark: raw/ and split/ as they are downloaded.

With --dgl, make shards of a partition that dgl.distributed.partition_graph wrote: its NAME.json, or the folder it lies
in. Who owns what stays; labels and features are the columns label and feat unless said otherwise.`,
		Example: `  peer import --nodes patients.csv --edges referrals.csv --label-column outcome --site-column hospital --out data/patients
  peer import --edges soc-LiveJournal1.txt.gz --out data/livejournal
  peer import --edges web.el.zst --out web.graph
  peer import --nodes pages.csv.zst --edges web.el.zst --label-column topic --out web.graph
  peer import --ogb ogbn_arxiv --out data/arxiv
  peer import --dgl partitions/cora.json --out parts`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.Relation != "" && (c.Nodes == "" || strings.HasSuffix(out, storedSuffix)) {
				return badInput{errors.New("relation-column: relations are read from a table of edges beside one of --nodes, and no stored graph has them")}
			}
			if fromDGL != "" {
				return importDGL(cmd, fromDGL, out, dgl.Names{Features: features, Label: c.Label, Weight: c.Weight, Build: graph.Build{Directed: directed, KeepLoops: loops}})
			}
			list.Path, list.Source, list.Target, list.Weight = c.Edges, c.Source, c.Target, c.Weight
			if strings.HasSuffix(out, storedSuffix) {
				return store(cmd, list, c, out)
			}
			var g *graph.Graph
			var err error
			switch {
			case fromOGB != "":
				g, err = dataset.ReadOGB(fromOGB, split)
			case c.Nodes == "":
				g, err = dataset.ReadEdges(list)
			default:
				g, err = dataset.Import(c)
			}
			if err != nil {
				return badInput{err}
			}
			if c.Name != "" {
				g.Name = c.Name
			}
			if err := dataset.Write(out, g); err != nil {
				return badInput{err}
			}
			typed := ""
			if n := g.Typed.Count(); n > 0 {
				typed = fmt.Sprintf(" of %d relations with their reverses", n)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d nodes, %d edges%s, %d features, %d classes, %d sites\n",
				out, g.N(), g.Adj.NumEdges()/2, typed, g.X.Cols(), g.Labels.Classes, len(g.Sites))
			return nil
		},
	}
	f := cmd.Flags()
	bindTables(f, &c)
	f.StringVar(&c.Site, "site-column", "", "owner of a node, such as a hospital")
	f.Uint64Var(&c.Seed, "seed", 1, "of the split by shares")
	f.StringVar(&list.Format, "edge-format", "", "of --edges alone: text, csv, tsv, parquet, el32, el64, wel32, wel64, gr or mtx (default: the suffix)")
	f.IntVar(&list.Nodes, "num-nodes", 0, "of --edges alone: nodes there are (default: as the file says, or one more than the largest number)")
	f.BoolVar(&list.Strict, "strict", false, "of --edges alone: refuse an edge that occurs twice or joins a node to itself")
	f.StringVar(&fromOGB, "ogb", "", "folder of a set of the Open Graph Benchmark")
	f.StringVar(&split, "ogb-split", "", "folder in its split/ (default: the only one)")
	f.StringVar(&fromDGL, "dgl", "", "a partition of DGL's: the file NAME.json, or its folder")
	f.StringVar(&features, "feature-column", "", "of --dgl: features of nodes (default feat or features)")
	f.BoolVar(&directed, "directed", false, "of --dgl: keep edges as they are; otherwise the reverse of each is added")
	f.BoolVar(&loops, "keep-loops", false, "of --dgl: keep edges from a node to itself")
	f.StringVarP(&out, "out", "o", "", "directory to write, which must not exist or be empty; of a list of edges also NAME.graph, which must not exist")
	required(cmd, "out")
	cmd.MarkFlagsOneRequired("nodes", "edges", "ogb", "dgl")
	cmd.MarkFlagsMutuallyExclusive("nodes", "ogb", "dgl")
	cmd.MarkFlagsMutuallyExclusive("edges", "ogb", "dgl")
	for _, name := range []string{"edge-format", "num-nodes", "strict"} {
		cmd.MarkFlagsMutuallyExclusive("nodes", name)
	}
	return cmd
}

// bindTables binds the flags that say what the columns of the user's tables mean.
func bindTables(f *pflag.FlagSet, c *dataset.ImportConfig) {
	f.StringVar(&c.Name, "name", "", "of the data set (default: from the file of nodes)")
	f.StringVar(&c.Nodes, "nodes", "", "table of the nodes")
	f.StringVar(&c.Edges, "edges", "", "table or list of the edges, each undirected")
	f.StringVar(&c.ID, "id-column", "", "names of the nodes (default id)")
	f.StringVar(&c.Label, "label-column", "", "class of a node; an empty cell: no label")
	f.BoolVar(&c.Multi, "multi", false, "a cell of the label column holds any number of classes, separated by ;")
	f.StringVar(&c.Split, "split-column", "", "train, val, test or none; without it nodes are split by shares")
	f.StringSliceVar(&c.Numeric, "numeric", nil, "columns that are numbers (default: those that hold numbers)")
	f.StringSliceVar(&c.Categorical, "categorical", nil, "columns that are categories (default: those that hold texts)")
	f.StringSliceVar(&c.Ignore, "ignore", nil, "columns to leave out")
	f.StringVar(&c.Source, "source-column", "", "of the table of edges (default source)")
	f.StringVar(&c.Target, "target-column", "", "of the table of edges (default target)")
	f.StringVar(&c.Weight, "weight-column", "", "of the table of edges (default: all weigh 1); of --edges alone: its column, of .gr the type u32, f32, u64 or f64")
	f.StringVar(&c.Relation, "relation-column", "", "of the table of edges: the relation that goes from source to target (default: edges have no types)")
	f.Float64Var(&c.Train, "train", 0, "share of each class for training (default: all three unset: 0.6, 0.2, 0.2)")
	f.Float64Var(&c.Val, "val", 0, "share of each class for validation")
	f.Float64Var(&c.Test, "test", 0, "share of each class for testing")
}

// required marks flags that have no default.
func required(c *cobra.Command, names ...string) {
	for _, name := range names {
		if err := c.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

// storedSuffix is what the name of a stored graph ends in.
const storedSuffix = ".graph"

// store makes a graph of a list of edges, and of a table of numbered nodes where there is one, that need not fit into memory.
func store(cmd *cobra.Command, list dataset.EdgeConfig, tables dataset.ImportConfig, out string) error {
	switch _, err := os.Lstat(out); {
	case list.Path == "":
		return badInput{fmt.Errorf("%s: a stored graph is made of a list of edges: want --edges", out)}
	case list.Weight != "" || list.Strict:
		return badInput{fmt.Errorf("%s: a stored graph has no weights, and its edges are merged: want no --weight-column and no --strict", out)}
	case err == nil:
		return badInput{fmt.Errorf("%s is there already: remove it, or choose another name", out)}
	}
	of, features := &graph.Graph{Name: tables.Name}, []graph.Section(nil)
	if tables.Nodes != "" {
		tables.Edges = ""
		nodes, err := dataset.ReadStored(tables)
		if err != nil {
			return badInput{err}
		}
		of, features, list.Nodes = nodes.Graph, nodes.Features(), len(nodes.Graph.Split)
	}
	nodes, edges, err := list.Size()
	if err != nil {
		return badInput{err}
	}
	if of.Name == "" {
		of.Name, _, _ = strings.Cut(filepath.Base(list.Path), ".")
	}
	err = partition.IngestNodes(out, of, features, nodes, until(cmd.Context(), list.Batches), graph.Build{}, 0)
	if cmd.Context().Err() != nil {
		return stopped(err)
	}
	if err != nil {
		return badInput{err}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d nodes, of %d listed edges\n", out, nodes, edges)
	return nil
}

// until returns edges whose reading ends with the context.
func until(ctx context.Context, edges partition.Edges) partition.Edges {
	return func(yield func(src, dst []int32) error) error {
		return edges(func(src, dst []int32) error { return errors.Join(ctx.Err(), yield(src, dst)) })
	}
}

func stopped(err error) error {
	return fmt.Errorf("stopped; the same command goes on with what is done: %w", err)
}
