package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/cmd/peer/report"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn/eval"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// question has the flags of peer predict.
type question struct {
	model, data, shard, nodes, edges, out string
	split                                 int
}

func newPredict() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "predict --model FILE (--data D | --shard S | --nodes TABLE) --out FILE",
		Short: "Predict the classes of nodes with a trained model",
		Long: `Predict the classes of nodes with a trained model. The CSV has one line per node: its ID, the class and the
probability of that class, its split and label if there are any, and the probability of every class. If test nodes
have labels, the metric over them is printed.

With --shard a peer predicts for its own nodes from its own rows and edges, without its
neighbours at other peers. The predictions.csv of peer join is computed with them.
With --nodes and --edges tables are read like those that the model was trained on.`,
		Example: `  peer predict --model runs/cora-retexo-gcn-1/model.safetensors --data data/cora --out predictions.csv`,
		RunE: func(c *cobra.Command, _ []string) error {
			return q.answer(c.OutOrStdout(), cli.Text(c.OutOrStdout(), c.ErrOrStderr(), q.out))
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run")
	f.StringVar(&q.data, "data", "", "data set to predict for")
	f.IntVar(&q.split, "split", 0, "split of the data set")
	f.StringVar(&q.shard, "shard", "", "part to predict for, without the others")
	f.StringVar(&q.nodes, "nodes", "", "table of nodes to predict for")
	f.StringVar(&q.edges, "edges", "", "table of edges")
	f.StringVarP(&q.out, "out", "o", "", "CSV file to write; - for standard output")
	cli.Required(c, "model", "out")
	return c
}

// answer writes the predictions to files and messages to text.
func (q question) answer(stdout, text io.Writer) error {
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
	}
	g, done, err := q.graph(card, m.Spec.ReadsEdges())
	if err != nil {
		return err
	}
	defer done()
	if err := cli.Writable(q.out); err != nil {
		return err
	}
	p, err := heddle.Predict(m, g)
	if err != nil {
		return fmt.Errorf("%s: %w", q.model, err)
	}
	of := guessed{ids: g.IDs, split: g.Split, labels: g.Labels, p: p}
	if q.nodes != "" {
		of.split = nil // tables have none
	}
	if err := cli.WriteFile(stdout, q.out, func(w io.Writer) error { return writeCSV(w, card.Classes, []guessed{of}) }); err != nil {
		return err
	}
	fmt.Fprintf(text, "%s: %d nodes\n", q.out, g.N())
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

// graph returns what to predict for, by a model that reads edges or none. Its arrays are valid until done is called.
func (q question) graph(card modelfile.Card, edges bool) (g *graph.Graph, done func(), err error) {
	given := 0
	for _, s := range []string{q.data, q.shard, q.nodes} {
		if s != "" {
			given++
		}
	}
	nothing := func() {}
	switch {
	case given != 1:
		return nil, nil, cli.Invalidf("give one of --data D, --shard S and --nodes TABLE")
	case q.data != "":
		g, err = dataset.Read(q.data, q.split)
		return g, nothing, cli.Invalid(err)
	case q.nodes != "":
		if card.Encoding == nil {
			return nil, nil, cli.Invalidf("%s was not trained on tables and cannot read %s: give --data", q.model, q.nodes)
		}
		if edges && q.edges == "" {
			return nil, nil, cli.Invalidf("the model of %s reads the rows of neighbours: give --edges, if need be a table without lines", q.model)
		}
		g, err = dataset.Encode(card.Encoding, q.nodes, q.edges)
		return g, nothing, cli.Invalid(err)
	}
	s, closer, err := shard.ReadShard(q.shard)
	if err != nil {
		return nil, nil, cli.Invalid(err)
	}
	return s.Alone(), func() { closer.Close() }, nil
}
