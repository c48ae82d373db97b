package runs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/cli"
	"github.com/heddle-gnn/heddle/internal/infer"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/modelfile"
)

// request has the flags of heddle recommend.
type request struct {
	cli.SiteFlags                           // with --plan
	model, data, shard, relation, kind, out string
	nodes                                   []string
	k                                       int
}

func newRecommend() *cobra.Command {
	var q request
	c := &cobra.Command{
		Use:   "recommend --model FILE (--data D | --shard S [--plan P]) [--node ID …] [--out FILE]",
		Short: "Recommend new links of nodes with a trained model",
		Long: `Recommend the best new links of nodes with a model that was trained with --task links. Each node gets
--k of them under each relation that the model knows, or under --relation: other ends are nodes of the types that such
links join, and links that the data have are left out. Scores are log-odds: a higher one is a better link. With
--shard alone a peer recommends links between its own nodes.

With --plan all members of a plan of task links run this command with the same model file, each with its own part.
Other ends may be nodes of other members, by their numbers in the partition: their owners send the rows that the
decoder reads, no names. --k 0 gets none and only answers.`,
		Example: "  heddle recommend --model runs/cora-full-batch-gcn-1/model.safetensors --data data/cora --node " +
			"12 --node 40\n" +
			"  heddle recommend --model model.safetensors --data data/clinic --type patient --relation takes --k 3 " +
			"--out new.csv\n" +
			"  heddle recommend --plan plan.yaml --model model.safetensors --shard parts/part-0 --node 12 --out " +
			"new.csv",
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Plan != "" {
				return q.together(c)
			}
			return q.answer(c)
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run with --task links")
	f.StringVar(&q.data, "data", "", "data set whose links are known")
	f.StringVar(&q.shard, "shard", "", "part whose links are known")
	cli.Reads(f, "model", "data", "shard")
	f.StringArrayVar(&q.nodes, "node", nil, "ID of a node that gets links (may be repeated)")
	f.StringVar(&q.kind, "type", "", "type of the nodes that get links (default: all)")
	f.StringVar(&q.relation, "relation", "", "relation of the links (default: each of the model's)")
	f.IntVar(&q.k, "k", 10, "links for each node and relation")
	f.StringVarP(&q.out, "out", "o", "-", "CSV or .npz file to write (- = standard output)")
	q.Bind(f, "plan whose members recommend together", "wait for the other peers, with --plan")
	q.BindGate(f)
	f.StringVar(&q.Site.Network.Link, "link", "", "simulated slower network, with --plan")
	cli.Required(c, "model")
	cli.ShortHelp(c, "model", "data", "shard", "node", "type", "relation", "k", "plan", "identity", "roster", "policy",
		"approval", "out")
	return c
}

// answer recommends links by one peer's data.
func (q request) answer(c *cobra.Command) error {
	m, card, err := q.readModel(1)
	if err != nil {
		return err
	}
	g, done, err := q.graph()
	if err != nil {
		return err
	}
	defer done()
	if err := modelfile.SameColumns(m.Spec, card.Encoding, g.Encoding); err != nil {
		return cli.Invalid(err)
	}
	nodes, err := q.wanted(g)
	if err != nil {
		return err
	}
	all, err := infer.Recommend(c.Context(), m, g, nodes, q.relation, q.k)
	if err != nil {
		return cli.Invalidf("%s: %w", q.model, err)
	}
	var t linkTable
	for _, r := range all {
		t.add(nodeName(g, r.Node), r.Relation, nodeName(g, r.Other), r.Score)
	}
	return t.writeLinks(c.OutOrStdout(), q.out)
}

// readModel reads the model, and refuses a --k out of range and an --out that cannot be written.
func (q request) readModel(least int) (*nn.Model, modelfile.Card, error) {
	m, card, err := modelfile.Read(q.model)
	if q.k < least || q.k > 1_000_000 {
		err = fmt.Errorf("--k must be %d to 1000000 (got %d)", least, q.k)
	}
	return m, card, cli.Invalid(errors.Join(err, cli.Writable(q.out)))
}

// together recommends with the other members of a plan.
func (q request) together(c *cobra.Command) (err error) {
	if q.data != "" || q.shard == "" {
		return cli.Invalidf("with --plan each peer recommends links for its part: give --shard, and not --data")
	}
	m, card, err := q.readModel(0)
	if err != nil {
		return err
	}
	p, _, err := q.Sit(cli.NewWatch(c.ErrOrStderr(), false))
	if err != nil {
		return err
	}
	own, closer, err := cli.ReadParts(q.shard, len(p.Members))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	g := own.Alone()
	nodes, err := q.wanted(g)
	if err != nil {
		return err
	}
	if q.k == 0 {
		nodes = nil
	}
	q.Site.Shard = own
	all, sent, err := q.Site.Recommend(c.Context(), *p, m, card, nodes, q.relation, q.k)
	if err != nil {
		return err
	}
	at := make(map[int64]int32)
	for i, id := range own.Global[:own.Owned] {
		at[id] = int32(i)
	}
	t := linkTable{site: []string{}}
	for _, l := range all {
		other := strconv.FormatInt(l.Other, 10)
		if i, is := at[l.Other]; is {
			other = nodeName(g, i)
		}
		t.add(nodeName(g, l.Node), m.Decoder.Spec.Relations[l.Relation], other, l.Score)
		t.site = append(t.site, p.Members[l.Owner].Name)
	}
	if err := t.writeLinks(c.OutOrStdout(), q.out); err != nil {
		return err
	}
	return printSent(cli.Text(c.OutOrStdout(), c.ErrOrStderr(), q.out, ""), sent)
}

// printSent prints what this peer sent.
func printSent(w io.Writer, sent heddle.Traffic) error {
	_, err := fmt.Fprintf(w, "sent: halo %s, reduce %s, control %s; on the wire %s\n", cli.Bytes(sent.Halo),
		cli.Bytes(sent.Reduce), cli.Bytes(sent.Control), cli.Bytes(sent.Wire))
	return err
}

// graph returns the data whose links are known, and what ends their use.
func (q request) graph() (*graph.Graph, func(), error) {
	if (q.data == "") == (q.shard == "") {
		return nil, nil, cli.Invalidf("give one of --data D and --shard S")
	}
	if q.data != "" {
		g, err := dataset.As{Task: "links"}.Read(q.data, 0)
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
			place[nodeName(g, i)] = i
		}
	}
	if len(q.nodes) == 0 {
		return nodes, nil
	}
	nodes = nodes[:0]
	for _, id := range q.nodes {
		i, ok := place[id]
		if !ok {
			return nil, cli.Invalidf("--node must be the ID of a node of %s (got %q)",
				strings.TrimSpace(g.Name+" "+q.kind), id)
		}
		nodes = append(nodes, i)
	}
	return nodes, nil
}

// nodeName is what the user calls node i.
func nodeName(g *graph.Graph, i int32) string { return cli.NodePredictions{IDs: g.IDs}.Name(int(i)) }

// linkTable has a row for each link; site is empty if one peer recommends.
type linkTable struct {
	node, relation, other, site []string
	rank                        []int64 // among the links of a node and relation, from 1
	score                       []float32
}

// add appends a link. The links of a node and relation follow each other, the best first.
func (t *linkTable) add(node, relation, other string, score float32) {
	rank, last := int64(1), len(t.node)-1
	if last >= 0 && t.node[last] == node && t.relation[last] == relation {
		rank = t.rank[last] + 1
	}
	t.node, t.relation, t.other = append(t.node, node), append(t.relation, relation), append(t.other, other)
	t.rank, t.score = append(t.rank, rank), append(t.score, score)
}

// writeLinks writes t to a file, as CSV or, if its name ends in .npz, as arrays, in which scores are not rounded.
func (t *linkTable) writeLinks(stdout io.Writer, file string) error {
	columns := []cli.Column{{Name: "node", Values: t.node}, {Name: "relation", Values: t.relation},
		{Name: "rank", Values: t.rank}, {Name: "other", Values: t.other}, {Name: "score", Values: t.score, Digits: 4}}
	if t.site != nil {
		columns = append(columns, cli.Column{Name: "site", Values: t.site})
	}
	return cli.WriteFile(stdout, file, func(w io.Writer) error {
		return cli.WriteColumns(w, file, len(t.node), columns...)
	})
}
