package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/embeddings"
	"github.com/heddle-gnn/heddle/cmd/peer/graphs"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/dataset/facts"
	"github.com/heddle-gnn/heddle/graph/dataset/table"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// question has the flags of peer predict.
type question struct {
	cli.Seat                                          // with --plan
	model, data, shard, nodes, edges, out, embeddings string
	split                                             int
	cells                                             table.Format
}

func newPredict() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "predict --model FILE (--data D | --shard S [--plan P] | --nodes TABLE) --out FILE",
		Short: "Predict the classes of nodes with a trained model",
		Long: `Predict the classes of nodes with a trained model. The CSV has one line per node: its ID, the class and the
probability of that class, its split and label if there are any, and the probability of every class. An --out that ends
in .npz or .parquet is written in that format. If test nodes have labels, the metric over them is printed.

With --plan all members of a plan run this command with the same model file, each with its own part: they exchange rows
of boundary nodes once, under the same rules as in training, and each writes predictions for its own nodes, computed with
its neighbours at other peers. A site with a policy needs an approval of plan and model (peer approve --model).
With --shard alone a peer predicts for its own nodes from its own rows and edges, without its neighbours at other peers.
With --nodes and --edges tables are read like those that the model was trained on.`,
		Example: "  peer predict --model runs/cora-retexo-gcn-1/model.safetensors --data data/cora --out predictions.csv\n" +
			"  peer predict --plan plan.yaml --model model.safetensors --shard parts/part-0 --out predictions.csv",
		RunE: func(c *cobra.Command, _ []string) error {
			text := cli.Text(c.OutOrStdout(), c.ErrOrStderr(), q.out)
			if q.Plan != "" {
				return q.together(c.Context(), cli.NewWatch(c.ErrOrStderr(), false), c.OutOrStdout(), text)
			}
			return q.answer(c.OutOrStdout(), text)
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run")
	f.StringVar(&q.data, "data", "", "data set to predict for")
	f.IntVar(&q.split, "split", 0, "split of the data set")
	f.StringVar(&q.shard, "shard", "", "part to predict for, alone or with --plan")
	f.StringVar(&q.nodes, "nodes", "", "table of nodes to predict for")
	f.StringVar(&q.edges, "edges", "", "table of edges")
	graphs.BindCells(f, &q.cells)
	f.StringVarP(&q.out, "out", "o", "", "CSV, .npz or .parquet file to write; - for standard output")
	f.StringVar(&q.embeddings, "embeddings", "", embeddingsHelp)
	q.Bind(f, "plan whose members predict together", "wait for the other peers, with --plan")
	q.BindGate(f)
	f.BoolVar(&q.Site.LAN, "lan", false, "search of the local network by mDNS, with --plan")
	f.StringVar(&q.Link, "link", "", linkHelp)
	cli.Required(c, "model", "out")
	return c
}

// answer writes the predictions to files and messages to text.
func (q question) answer(stdout, text io.Writer) error {
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
	}
	g, unseen, done, err := q.graph(card, m.Spec.ReadsEdges(), text)
	if err != nil {
		return err
	}
	defer done()
	if err := errors.Join(cli.Writable(q.out), embeddings.Check(q.embeddings)); err != nil {
		return err
	}
	p, err := heddle.Predict(m, g)
	if err != nil {
		return fmt.Errorf("%s: %w", q.model, err)
	}
	p = p.By(card)
	of := guessed{ids: g.IDs, split: g.Split, labels: g.Labels, p: p}
	if q.nodes != "" {
		of.split = nil // tables have none
	}
	if err := q.write(stdout, card, of); err != nil {
		return err
	}
	if q.embeddings != "" {
		if of.hidden, err = heddle.Embed(m, g); err != nil {
			return fmt.Errorf("%s: %w", q.model, err)
		}
	}
	if err := writeEmbeddings(q.embeddings, []guessed{of}); err != nil {
		return err
	}
	fmt.Fprintf(text, "%s: %d nodes\n", q.out, g.N())
	if unseen != "" {
		fmt.Fprintln(text, unseen)
	}
	score, nodes, err := p.Score(eval.Metric(card.Metric), g)
	if err != nil {
		return fmt.Errorf("%s: %w", q.model, err)
	}
	what := "test"
	if q.nodes != "" {
		what = "labelled" // tables have no split
	}
	if nodes > 0 {
		fmt.Fprintf(text, "%s %s: %s (%d nodes)\n", what, card.Metric, report.Percent(score), nodes)
	}
	return nil
}

// write writes predictions to --out.
func (q question) write(stdout io.Writer, card modelfile.Card, of guessed) error {
	fill := writeCSV
	switch filepath.Ext(q.out) {
	case ".npz":
		fill = writeNPZ
	case ".parquet":
		fill = writeParquet
	}
	return cli.WriteFile(stdout, q.out, func(w io.Writer) error { return fill(w, card.Classes, []guessed{of}) })
}

// graph returns what to predict for, by a model that reads edges or none, and what of that it cannot see. Its arrays are
// valid until done is called.
func (q question) graph(card modelfile.Card, edges bool, text io.Writer) (g *graph.Graph, unseen string, done func(), err error) {
	given := 0
	for _, s := range []string{q.data, q.shard, q.nodes} {
		if s != "" {
			given++
		}
	}
	nothing := func() {}
	switch {
	case given != 1:
		return nil, "", nil, cli.Invalidf("give one of --data D, --shard S and --nodes TABLE")
	case q.data != "":
		g, err = dataset.Read(q.data, q.split)
		return g, "", nothing, cli.Invalid(err)
	case q.nodes != "":
		if card.Encoding == nil {
			return nil, "", nil, cli.Invalidf("%s was not trained on tables and cannot read %s: give --data", q.model, q.nodes)
		}
		if edges && q.edges == "" {
			return nil, "", nil, cli.Invalidf("the model of %s reads the rows of neighbours: give --edges, if need be a table without lines", q.model)
		}
		var f *facts.Facts
		if g, f, err = dataset.Encode(card.Encoding, q.nodes, q.edges, q.cells); err != nil {
			return nil, "", nil, cli.Invalid(err)
		}
		f.Warn() // of categories that the model does not know
		f.PrintWarnings(text, "")
		return g, "", nothing, nil
	}
	s, closer, err := shard.ReadShard(q.shard)
	if err != nil {
		return nil, "", nil, cli.Invalid(err)
	}
	if edges && s.Halo() > 0 {
		unseen = fmt.Sprintf("without %d neighbours at other peers and the %d edges from them, which --plan sees", s.Halo(), across(s))
	}
	return s.Alone(), unseen, func() { closer.Close() }, nil
}

// across returns how many edges of a shard come from nodes of other peers.
func across(s *shard.Shard) (n int) {
	for _, j := range s.Adj.Col {
		if int(j) >= s.Owned {
			n++
		}
	}
	return n
}
