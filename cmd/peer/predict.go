package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/checkpoint"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/partition"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/eval"
)

// question is what peer predict is asked.
type question struct {
	model, data, shard, nodes, edges, out string
	split                                 int
}

func newPredict() *cobra.Command {
	var q question
	c := &cobra.Command{
		Use:   "predict --model FILE (--data D | --shard S | --nodes TABLE) --out FILE",
		Short: "Predict the classes of nodes with a trained model",
		Long: `Predict the classes of nodes with a trained model. The CSV has a line a node: its ID, the class, the
probability of that class. Where test nodes have labels, the metric over them is printed.

With --shard a peer predicts for its own nodes from its own rows and edges: what other peers hold is not
used, so that cross-site neighbours are missed. With --nodes and --edges tables are read as those were that
the model was trained on.`,
		Example: `  peer predict --model runs/cora-retexo-gcn-1/model.safetensors --data data/cora --out predictions.csv`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return q.answer(c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run")
	f.StringVar(&q.data, "data", "", "data set to predict for")
	f.IntVar(&q.split, "split", 0, "column of the data set's masks")
	f.StringVar(&q.shard, "shard", "", "part to predict for, by itself")
	f.StringVar(&q.nodes, "nodes", "", "table of nodes to predict for")
	f.StringVar(&q.edges, "edges", "", "table of their edges")
	f.StringVarP(&q.out, "out", "o", "", "CSV file to write")
	required(c, "model", "out")
	return c
}

func (q question) answer(stdout io.Writer) error {
	m, card, err := checkpoint.ReadModel(q.model)
	if err != nil {
		return badInput{err}
	}
	g, done, err := q.graph(card)
	if err != nil {
		return err
	}
	defer done()
	if err := writable(q.out); err != nil {
		return err
	}
	scores, err := m.Infer(g)
	if err != nil {
		return badInput{fmt.Errorf("%s does not fit %s: %w", q.model, g.Name, err)}
	}
	if err := writeWhole(q.out, func(w io.Writer) error {
		return writePredictions(w, g, scores, card.Classes, m.Spec.Task == "multi")
	}); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %d nodes\n", q.out, g.N())
	if rows := g.InSplit(graph.Test); len(rows) > 0 && g.Labels.Classes == m.Spec.Classes && g.Labels.Multi() == (m.Spec.Task == "multi") {
		metric := eval.Metric(card.Metric)
		if err := metric.Validate(); err != nil {
			return badInput{fmt.Errorf("%s: %w", q.model, err)}
		}
		counts := metric.Count(scores, g.Labels, rows)
		what := "test"
		if q.nodes != "" {
			what = "labelled" // tables that are read for prediction are in no split
		}
		fmt.Fprintf(stdout, "%s %s: %s (%d nodes)\n", what, metric, percent(metric.Of(&counts)), len(rows))
	}
	return nil
}

// graph returns what to predict for. Its arrays are there until done is called.
func (q question) graph(card checkpoint.Card) (g *graph.Graph, done func(), err error) {
	given := 0
	for _, s := range []string{q.data, q.shard, q.nodes} {
		if s != "" {
			given++
		}
	}
	nothing := func() {}
	switch {
	case given != 1:
		return nil, nil, badInput{errors.New("want one of --data D, --shard S and --nodes TABLE")}
	case q.data != "":
		g, err = readData(q.data, q.split)
		return g, nothing, err
	case q.nodes != "":
		if card.Encoding == nil {
			return nil, nil, badInput{fmt.Errorf("%s was not trained on tables, so it does not say how to read %s: want --data", q.model, q.nodes)}
		}
		if g, err = dataset.Encode(card.Encoding, q.nodes, q.edges); err != nil {
			return nil, nil, badInput{err}
		}
		return g, nothing, nil
	}
	s, closer, err := partition.ReadShard(q.shard)
	if err != nil {
		return nil, nil, badInput{err}
	}
	return alone(s), func() { closer.Close() }, nil
}

// writePredictions writes a line a node: ID, class and its probability; of several classes a node, all that are more
// likely than not, and the probability of each.
func writePredictions(w io.Writer, g *graph.Graph, scores mat.Dense, names []string, multi bool) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"id", "class", "probability"}); err != nil {
		return err
	}
	name := func(k int) string {
		if k < len(names) {
			return names[k]
		}
		return strconv.Itoa(k)
	}
	for i := range g.N() {
		id := strconv.Itoa(i)
		if g.IDs != nil {
			id = g.IDs[i]
		}
		var class, probability []string
		row := scores.Row(i)
		if multi {
			for k, s := range row {
				if s > 0 {
					class = append(class, name(k))
					probability = append(probability, decimal(1/(1+math.Exp(-float64(s)))))
				}
			}
		} else {
			best, sum := 0, 0.0
			for k, s := range row {
				if s > row[best] {
					best = k
				}
			}
			for _, s := range row {
				sum += math.Exp(float64(s) - float64(row[best]))
			}
			class, probability = []string{name(best)}, []string{decimal(1 / sum)}
		}
		if err := c.Write([]string{id, strings.Join(class, ";"), strings.Join(probability, ";")}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func decimal(p float64) string { return strconv.FormatFloat(p, 'f', 4, 64) }
