package graphs

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
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/section"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/edgelist"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/ogb"
	"github.com/heddle-gnn/heddle/internal/graph/dataset/typed"
	"github.com/heddle-gnn/heddle/internal/graph/dgl"
	"github.com/heddle-gnn/heddle/internal/graph/partition/external"
)

// importing has the flags of heddle import.
type importing struct {
	tables        dataset.ImportConfig
	list          edgelist.Config
	like          string // model file
	out           string
	ogb, split    string // folder of a set, and in it
	dgl, features string // partition, and its features
	keepLoop      bool
	embed         []string     // types of nodes
	facts         *table.Facts // of tables
	listing
}

func newImport() *cobra.Command {
	var m importing
	cmd := &cobra.Command{
		Use: "import (--nodes FILE [--edges FILE] | --nodes TYPE=FILE … | --edges FILE | --ogb DIR | --dgl DIR) " +
			"--out DIR",
		Short: "Import tables, lists of edges, OGB sets or DGL partitions",
		Long: `Make a data set from a table of nodes and a table of edges (CSV, TSV or Parquet; CSV and TSV also with
gzip or zstd).

A table may be a directory of such files, as Spark writes them; --edges may also be a list of names
(.edgelist, .txt) or .npz. Columns of numbers are standardized, dates become numbers, and columns of at most 50 texts
become categories; what each column became is printed and stored (heddle inspect), with warnings. Prediction reads
other tables in the same way.

With several types, give a table of nodes for each, --nodes TYPE=FILE, and a table of edges for each relation, --edges
SOURCE-RELATION-TARGET=FILE. A flag that names a column means every table that has it; TYPE.COLUMN or
SOURCE-RELATION-TARGET.COLUMN means one. --directed sets which way messages go along an edge: in (a node reads the
sources of its edges), out (it reads their targets), or both, as two relations.

With only --edges, make a graph of a list of edges between numbered nodes: text (.txt, .el, .edges), CSV, Parquet or
NumPy (.npz with edge_index, as PyTorch Geometric has it). With --out NAME.graph the result is a stored graph for
heddle partition --memory, which need not fit into memory; with --nodes their names must be 0, 1, 2, … in the order of
the table.

With --ogb, make a data set from an unpacked Open Graph Benchmark folder with raw/ and split/. With --dgl, make shards
from a partition of dgl.distributed.partition_graph: its NAME.json, or the folder of that file. Each node keeps its
owner.`,
		Example: `  heddle import --nodes patients.csv --edges referrals.csv --label-column outcome \
    --site-column hospital --out data/patients
  heddle import --nodes patient=patients.csv --nodes drug=drugs.csv --edges patient-takes-drug=prescriptions.csv \
    --label-column patient.outcome --edge-columns dose --out data/care
  heddle import --edges web.el.zst --out web.graph
  heddle import --nodes pages.csv.zst --edges web.el.zst --label-column topic --out web.graph
  heddle import --ogb ogbn_arxiv --out data/arxiv
  heddle import --dgl partitions/cora.json --out parts`,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.importAll(cmd) },
	}
	m.bind(cmd)
	return cmd
}

func (m *importing) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	m.listing.bind(f)
	bindTables(f, &m.tables)
	bindRows(f, &m.tables)
	f.StringSliceVar(&m.embed, "embed", nil, "node types that get a learned row for each node")
	f.StringVar(&m.tables.Site, "site-column", "", "column of a node's owner, such as a hospital")
	f.Uint64Var(&m.tables.Seed, "seed", 1, "random seed of the split")
	f.StringVar(&m.list.Format, "edge-format", "", "format of a list of edges (default: by its suffix)")
	f.IntVar(&m.list.Nodes, "num-nodes", 0, "number of nodes of a list of edges (default: as listed)")
	f.BoolVar(&m.list.Strict, "strict", false, "refuse repeated edges and loops in a list of edges")
	f.StringVar(&m.ogb, "ogb", "", "folder of an Open Graph Benchmark data set")
	f.StringVar(&m.split, "ogb-split", "", "folder in its split/ (default: the only one)")
	f.StringVar(&m.dgl, "dgl", "", "partition by DGL, NAME.json or its folder")
	cli.Reads(f, "ogb", "dgl")
	f.StringVar(&m.features, "feature-column", "", "features of --dgl (default: feat or features)")
	f.BoolVar(&m.keepLoop, "keep-loops", false, "keep edges of --dgl from a node to itself")
	f.StringVarP(&m.out, "out", "o", "", "directory, or NAME.graph for a stored graph, to write")
	bindLike(cmd, &m.like)
	cli.Required(cmd, "out")
	cmd.MarkFlagsOneRequired("nodes", "edges", "ogb", "dgl")
	cmd.MarkFlagsMutuallyExclusive("nodes", "ogb", "dgl")
	cli.ShortHelp(cmd, "nodes", "edges", "id-column", "label-column", "site-column", "source-column", "target-column",
		"edge-columns", "directed", "text", "age", "ignore", "decimal-comma", "multi", "regression",
		"split-column", "on-error", "out")
	cmd.MarkFlagsMutuallyExclusive("edges", "ogb", "dgl")
	for _, name := range []string{"edge-format", "num-nodes", "strict"} {
		cmd.MarkFlagsMutuallyExclusive("nodes", name)
	}
}

func (m *importing) importAll(cmd *cobra.Command) error {
	if err := readLike(m.like, &m.tables); err != nil {
		return err
	}
	several, err := m.several()
	if err != nil {
		return err
	}
	if !several {
		m.tables.Nodes, m.tables.Edges = strings.Join(m.nodes, ""), strings.Join(m.edges, "")
	}
	if err := m.check(several); err != nil {
		return err
	}
	c := m.tables
	if m.dgl != "" {
		edges := strings.Join(c.EdgeColumns, ",")
		build := graph.Build{Directed: c.Directed == dataset.Into, KeepLoops: m.keepLoop}
		return importDGL(cmd, m.dgl, m.out, dgl.Names{Features: m.features, Label: c.Label, Weight: c.Weight,
			Edges: edges, Build: build})
	}
	watch := cli.NewWatch(cmd.ErrOrStderr(), false)
	defer watch.End()
	c.Format.Watch = readProgress(cmd.Context(), watch, m.files()...)
	m.list.Path, m.list.Source, m.list.Target, m.list.Weight = c.Edges, c.Source, c.Target, c.Weight
	m.list.Cells, m.list.Merge = c.Format, c.Merge
	if strings.HasSuffix(m.out, storedSuffix) && !several {
		return store(cmd, m.list, c, m.out)
	}
	g, err := m.readGraph(c, several)
	if err == nil {
		if c.Name != "" {
			g.Name = c.Name
		}
		err = m.writeGraph(cmd.Context(), g, c)
	}
	if stopped := cmd.Context().Err(); stopped != nil && err != nil {
		return fmt.Errorf("stopped; nothing was written: %w", stopped)
	}
	if err != nil {
		return cli.Invalid(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", m.out, size(g))
	if m.facts != nil {
		printFacts(cmd.OutOrStdout(), m.facts)
	}
	return nil
}

// size describes how large a graph is.
func size(g *graph.Graph) string {
	text := fmt.Sprintf("%d nodes", g.N())
	if n := g.Types.Count(); n > 0 {
		text += fmt.Sprintf(" of %d types", n)
	}
	if g.Adj.Symmetric() {
		text += fmt.Sprintf(", %d edges", g.Adj.NumEdges()/2)
	} else {
		text += fmt.Sprintf(", %d directed edges", g.Adj.NumEdges())
	}
	if n := g.Typed.Count(); n > 0 && g.Adj.Symmetric() {
		text += fmt.Sprintf(" of %d relations with their reverses", n)
	} else if n > 0 {
		text += fmt.Sprintf(" of %d relations", n)
	}
	text += fmt.Sprintf(", %d features", g.X.Cols())
	if g.EdgeX.Cols > 0 {
		text += fmt.Sprintf(", %d of edges", g.EdgeX.Cols)
	}
	what := "classes"
	if g.Labels.Kind() == graph.Numbers {
		what = "targets"
	}
	return text + fmt.Sprintf(", %d %s, %d sites", g.Labels.Classes, what, len(g.Sites))
}

// readGraph reads the graph.
func (m *importing) readGraph(c dataset.ImportConfig, several bool) (g *graph.Graph, err error) {
	switch {
	case several:
		g, m.facts, err = typed.Config{Nodes: m.nodes, Edges: m.edges, Embed: m.embed, Tables: c}.Read()
		return g, err
	case m.ogb != "":
		return ogb.Read(m.ogb, m.split)
	case c.Nodes == "" && dataset.Typed(m.list.Path):
		return dataset.Read(m.list.Path, 0)
	case c.Nodes == "":
		g, listed, err := edgelist.Read(m.list)
		if err != nil {
			return nil, err
		}
		m.facts = &table.Facts{Tables: []table.TableFacts{{File: filepath.Base(m.list.Path), Rows: len(listed.Source)}}}
		m.facts.Edges.Merge = m.list.Merge
		if g.IDs != nil {
			m.facts.Warnings = append(m.facts.Warnings,
				"no edge has node 0: nodes are numbered from 1, and their numbers are "+
					"their names (option num-nodes with one more keeps a node 0)")
		}
		err = m.facts.AddGraph(g, listed.Source, listed.Target)
		m.facts.Warn()
		return g, err
	}
	g, m.facts, err = c.Read()
	return g, err
}

// writeGraph writes the graph, what its tables became and which rows were skipped.
func (m *importing) writeGraph(ctx context.Context, g *graph.Graph, c dataset.ImportConfig) error {
	if strings.HasSuffix(m.out, storedSuffix) {
		if _, err := os.Lstat(m.out); err == nil {
			return fmt.Errorf("%s exists: remove it, or choose another name", m.out)
		}
		return external.WriteGraph(m.out, g)
	}
	if err := dataset.WriteUntil(m.out, g, ctx.Err); err != nil || m.facts == nil {
		return err
	}
	err := m.facts.Write(m.out)
	if err == nil {
		err = WriteSkipped(m.out, c.Format.Faults)
	}
	if err != nil { // a data set without a part of it is none
		err = errors.Join(err, os.RemoveAll(m.out))
	}
	return err
}

// bind adds the flags of the tables.
func (l *listing) bind(f *pflag.FlagSet) {
	f.StringArrayVar(&l.nodes, "nodes", nil, "table of nodes, or TYPE=FILE for each type")
	f.StringArrayVar(&l.edges, "edges", nil, "table or list of edges, or SOURCE-RELATION-TARGET=FILE")
	cli.Reads(f, "nodes", "edges")
}

// bindTables adds the flags for the meaning of the columns of the user's tables.
func bindTables(f *pflag.FlagSet, c *dataset.ImportConfig) {
	f.StringVar(&c.Name, "name", "", "name of the data set (default: the node file's)")
	f.StringVar(&c.ID, "id-column", "", "column of node names (default: id)")
	f.StringVar(&c.Label, "label-column", "", "column of classes or targets (empty cell = no label)")
	f.StringSliceVar(&c.ClassOrder, "class-order", nil, "all classes in order (default: by number or text)")
	f.BoolVar(&c.Multi, "multi", false, "a cell may have several classes, separated by ;")
	f.BoolVar(&c.Regression, "regression", false, "labels are numbers to predict")
	f.StringVar(&c.Split, "split-column", "", "column of train, val, test or none (default: random split)")
	BindCells(f, &c.Format)
	f.StringSliceVar(&c.Numeric, "numeric", nil, "columns of numbers (default: detected)")
	f.StringSliceVar(&c.Categorical, "categorical", nil, "columns of categories (default: detected, up to 50 texts)")
	f.StringSliceVar(&c.Text, "text", nil, "columns of texts, COLUMN:WIDTH, as hashed words")
	BindDates(f, &c.Date)
	f.StringSliceVar(&c.Age, "age", nil, "columns of dates, COLUMN:DATE, as years until DATE")
	f.StringSliceVar(&c.Ignore, "ignore", nil, "columns to leave out")
	f.StringVar(&c.Source, "source-column", "", "column of the source (default: source)")
	f.StringVar(&c.Target, "target-column", "", "column of the target (default: target)")
	f.StringVar(&c.Weight, "weight-column", "", "column of edge weights")
	f.StringVar(&c.Merge, "merge", "", "how edges merge (sum, count, max, mean, last; default max)")
	f.StringSliceVar(&c.EdgeColumns, "edge-columns", nil, "edge columns as features, COLUMN, COLUMN:KIND or all")
	f.StringVar((*string)(&c.Directed), "directed", "", "direction of messages (in, out, both; default undirected)")
	f.StringVar(&c.SplitTime, "split-time", "", "split by time, COLUMN:T1:T2 (train before T1, val before T2)")
	f.StringVar(&c.Relation, "relation-column", "", "column of relations (default: edges have no types)")
	f.Float64Var(&c.Train, "train", 0, "fraction of each class for training (default: 0.6)")
	f.Float64Var(&c.Val, "val", 0, "fraction of each class for validation (default: 0.2)")
	f.Float64Var(&c.Test, "test", 0, "fraction of each class for testing (default: 0.2)")
}

// storedSuffix is the end of the name of a stored graph.
const storedSuffix = ".graph"

// store makes a stored graph from a list of edges and, if given, a table of numbered nodes. Neither
// has to fit into memory.
func store(cmd *cobra.Command, list edgelist.Config, tables dataset.ImportConfig, out string) error {
	switch _, err := os.Lstat(out); {
	case list.Path == "":
		return cli.Invalidf("%s: a stored graph is made from a list of edges: give --edges", out)
	case list.Weight != "" || list.Strict || list.Merge != "":
		return cli.Invalidf("%s: a stored graph has no weights, and its repeated edges are one: omit "+
			"--weight-column, --merge and --strict", out)
	case err == nil:
		return cli.Invalidf("%s exists: remove it, or choose another name", out)
	}
	of, features := &graph.Graph{Name: tables.Name}, []section.Section(nil)
	what := &table.Facts{}
	if tables.Nodes != "" {
		tables.Edges = ""
		nodes, err := dataset.ReadStored(tables)
		if err != nil {
			return cli.Invalid(err)
		}
		of, features, list.Nodes, what = nodes.Graph, nodes.Features(), len(nodes.Graph.Split), nodes.Facts
	}
	nodes, edges, err := list.Size()
	if err != nil {
		return cli.Invalid(err)
	}
	if of.Name == "" {
		of.Name, _, _ = strings.Cut(filepath.Base(list.Path), ".")
	}
	batches := func(yield func(src, dst []int32) error) error { // they stop when the command is interrupted
		return list.Batches(func(src, dst []int32) error { return errors.Join(cmd.Context().Err(), yield(src, dst)) })
	}
	if err = external.WriteNodes(out, of, features, nodes, batches, graph.Build{}, 0); err != nil {
		return ended(cmd.Context(), err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d nodes, of %d listed edges\n", out, nodes, edges)
	what.Print(cmd.OutOrStdout())
	return nil
}

// ended returns the error of work that ctx may have stopped; else err is a fault of the input.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped; to begin again, repeat the command: %w", err)
	}
	return cli.Invalid(err)
}
