package links

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/cmd/peer/cli"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// request has the flags of peer recommend.
type request struct {
	model, data, shard, relation, kind, out string
	nodes                                   []string
	k                                       int
}

// Command returns peer recommend.
func Command() *cobra.Command {
	var q request
	c := &cobra.Command{
		Use:   "recommend --model FILE (--data D | --shard S) [--node ID …] [--out FILE]",
		Short: "Recommend new links of nodes with a model of task links",
		Long: `Recommend the best new links of nodes with a model that was trained with --task links. Each node gets --k of them under
each relation that the model knows, or under --relation: other ends are nodes of the types that such links join, and
links that the data have are left out. Scores are log-odds: a higher one is a better link.

Without --node all nodes, or those of --type, get recommendations. The CSV has a line for each: node, relation, rank, other
end and score. With --shard a peer recommends links between its own nodes alone.`,
		Example: "  peer recommend --model runs/cora-standalone-gcn-1/model.safetensors --data data/cora --node 12 --node 40\n" +
			"  peer recommend --model model.safetensors --data data/clinic --type patient --relation takes --k 3 --out new.csv",
		RunE: func(c *cobra.Command, _ []string) error { return q.answer(c) },
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run with task links")
	f.StringVar(&q.data, "data", "", "data set whose links are known")
	f.StringVar(&q.shard, "shard", "", "part whose links are known")
	f.StringArrayVar(&q.nodes, "node", nil, "ID of a node that gets links; may be repeated")
	f.StringVar(&q.kind, "type", "", "type of the nodes that get links; empty: all")
	f.StringVar(&q.relation, "relation", "", "relation of the links; empty: each of the model's")
	f.IntVar(&q.k, "k", 10, "links for each node and relation")
	f.StringVarP(&q.out, "out", "o", "-", "CSV file to write; - for standard output")
	cli.Required(c, "model")
	return c
}

func (q request) answer(c *cobra.Command) error {
	if q.k < 1 || q.k > 1_000_000 {
		return cli.Invalidf("--k must be 1 to 1000000 (got %d)", q.k)
	}
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
	}
	g, done, err := q.graph()
	if err != nil {
		return err
	}
	defer done()
	if err := modelfile.SameColumns(card.Encoding, g.Encoding); err != nil {
		return cli.Invalid(err)
	}
	nodes, err := q.wanted(g)
	if err != nil {
		return err
	}
	if err := cli.Writable(q.out); err != nil {
		return err
	}
	all, err := infer.Recommend(c.Context(), m, g, nodes, q.relation, q.k)
	if err != nil {
		return cli.Invalid(fmt.Errorf("%s: %w", q.model, err))
	}
	return cli.WriteFile(c.OutOrStdout(), q.out, func(w io.Writer) error { return write(w, g, all) })
}

// graph returns the data whose links are known, and what ends their use.
func (q request) graph() (*graph.Graph, func(), error) {
	if (q.data == "") == (q.shard == "") {
		return nil, nil, cli.Invalidf("give one of --data D and --shard S")
	}
	if q.data != "" {
		g, err := dataset.Read(q.data, 0)
		return g, func() {}, cli.Invalid(err)
	}
	s, closer, err := shard.ReadShard(q.shard)
	if err != nil {
		return nil, nil, cli.Invalid(err)
	}
	return s.Alone(), func() { closer.Close() }, nil
}

// wanted returns the nodes that get links.
func (q request) wanted(g *graph.Graph) (nodes []int32, err error) {
	kind := slices.Index(g.Types.Names, q.kind)
	if q.kind != "" && kind < 0 {
		return nil, cli.Invalidf("--type must be one of %q (got %q)", g.Types.Names, q.kind)
	}
	place := make(map[string]int32)
	for i := range int32(g.N()) {
		if q.kind != "" && int(g.Types.Of[i]) != kind {
			continue
		}
		if nodes = append(nodes, i); len(q.nodes) > 0 {
			place[name(g, i)] = i
		}
	}
	if len(q.nodes) == 0 {
		return nodes, nil
	}
	nodes = nodes[:0]
	for _, id := range q.nodes {
		i, ok := place[id]
		if !ok {
			return nil, cli.Invalidf("--node must be the ID of a node of %s (got %q)", strings.TrimSpace(g.Name+" "+q.kind), id)
		}
		nodes = append(nodes, i)
	}
	return nodes, nil
}

// name is what the user calls node i.
func name(g *graph.Graph, i int32) string {
	if g.IDs != nil {
		return g.IDs[i]
	}
	return strconv.Itoa(int(i))
}

func write(w io.Writer, g *graph.Graph, all []infer.Recommendation) error {
	to := csv.NewWriter(w)
	lines := [][]string{{"node", "relation", "rank", "other", "score"}}
	rank := 0
	for k, r := range all {
		if rank++; k == 0 || all[k-1].Node != r.Node || all[k-1].Relation != r.Relation {
			rank = 1
		}
		lines = append(lines, []string{name(g, r.Node), r.Relation, strconv.Itoa(rank), name(g, r.Other), strconv.FormatFloat(float64(r.Score), 'f', 4, 32)})
	}
	return to.WriteAll(lines)
}
