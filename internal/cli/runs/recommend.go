package runs

import (
	"archive/zip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/dataset"
	"github.com/heddle-gnn/heddle/graph/npy"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/infer"
	"github.com/heddle-gnn/heddle/internal/cli"
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
		Short: "Recommend new links of nodes with a model of task links",
		Long: `Recommend the best new links of nodes with a model that was trained with --task links. Each node gets --k of them under
each relation that the model knows, or under --relation: other ends are nodes of the types that such links join, and
links that the data have are left out. Scores are log-odds: a higher one is a better link.

Without --node all nodes, or those of --type, get recommendations. The CSV has a line for each: node, relation, rank, other
end and score; an --out that ends in .npz has the columns as arrays. With --shard alone a peer recommends links between its
own nodes.

With --plan all members of a plan of task links run this command with the same model file, each with its own part. Each gets
links of its own nodes, whose other ends may be nodes of other members, or with negatives_from near those next to its own:
their owners send the rows that the decoder reads, no names. The CSV then has the name of an own node and the number of
another member's node in the partition, and that member as site. --k 0 gets none and only answers.`,
		Example: "  heddle recommend --model runs/cora-full-batch-gcn-1/model.safetensors --data data/cora --node 12 --node 40\n" +
			"  heddle recommend --model model.safetensors --data data/clinic --type patient --relation takes --k 3 --out new.csv\n" +
			"  heddle recommend --plan plan.yaml --model model.safetensors --shard parts/part-0 --node 12 --out new.csv",
		RunE: func(c *cobra.Command, _ []string) error {
			if q.Plan != "" {
				return q.together(c)
			}
			return q.answer(c)
		},
	}
	f := c.Flags()
	f.StringVar(&q.model, "model", "", "model.safetensors of a run with task links")
	f.StringVar(&q.data, "data", "", "data set whose links are known")
	f.StringVar(&q.shard, "shard", "", "part whose links are known")
	cli.Reads(f, "model", "data", "shard")
	f.StringArrayVar(&q.nodes, "node", nil, "ID of a node that gets links; may be repeated")
	f.StringVar(&q.kind, "type", "", "type of the nodes that get links; empty: all")
	f.StringVar(&q.relation, "relation", "", "relation of the links; empty: each of the model's")
	f.IntVar(&q.k, "k", 10, "links for each node and relation")
	f.StringVarP(&q.out, "out", "o", "-", "CSV or .npz file to write; - for standard output")
	q.Bind(f, "plan whose members recommend together", "wait for the other peers, with --plan")
	q.BindGate(f)
	f.StringVar(&q.Link, "link", "", "other connections, simulated, with --plan")
	cli.Required(c, "model")
	return c
}

func (q request) answer(c *cobra.Command) error {
	if err := q.bounded(1); err != nil {
		return err
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
	if err := modelfile.SameColumns(m.Spec, card.Encoding, g.Encoding); err != nil {
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
	var t linkTable
	for _, r := range all {
		t.add(name(g, r.Node), r.Relation, name(g, r.Other), r.Score)
	}
	return cli.WriteFile(c.OutOrStdout(), q.out, func(w io.Writer) error { return t.write(w, q.out) })
}

// bounded refuses a --k out of range.
func (q request) bounded(least int) error {
	if q.k < least || q.k > 1_000_000 {
		return cli.Invalidf("--k must be %d to 1000000 (got %d)", least, q.k)
	}
	return nil
}

// together recommends with the other members of a plan.
func (q request) together(c *cobra.Command) (err error) {
	if err := q.bounded(0); err != nil {
		return err
	}
	if q.data != "" || q.shard == "" {
		return cli.Invalidf("with --plan each peer recommends links of its own part: give --shard, and not --data")
	}
	m, card, err := modelfile.Read(q.model)
	if err != nil {
		return cli.Invalid(err)
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
	if err = errors.Join(err, cli.Writable(q.out)); err != nil {
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
			other = name(g, i)
		}
		t.add(name(g, l.Node), m.Decoder.Spec.Relations[l.Relation], other, l.Score)
		t.site = append(t.site, p.Members[l.Owner].Name)
	}
	if err := cli.WriteFile(c.OutOrStdout(), q.out, func(w io.Writer) error { return t.write(w, q.out) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cli.Text(c.OutOrStdout(), c.ErrOrStderr(), q.out, ""), "sent: halo %s, reduce %s, control %s; on the wire %s\n",
		cli.Bytes(sent.Halo), cli.Bytes(sent.Reduce), cli.Bytes(sent.Control), cli.Bytes(sent.Wire))
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

// linkTable has a row for each link; site is empty where one peer recommends.
type linkTable struct {
	node, relation, other, site []string
	rank                        []int64 // among the links of a node and relation, from 1
	score                       []float32
}

// add appends a link. Those of a node and relation follow each other, the best first.
func (t *linkTable) add(node, relation, other string, score float32) {
	rank, last := int64(1), len(t.node)-1
	if last >= 0 && t.node[last] == node && t.relation[last] == relation {
		rank = t.rank[last] + 1
	}
	t.node, t.relation, t.other = append(t.node, node), append(t.relation, relation), append(t.other, other)
	t.rank, t.score = append(t.rank, rank), append(t.score, score)
}

func (t *linkTable) write(w io.Writer, file string) error {
	if filepath.Ext(file) == ".npz" {
		return t.writeNPZ(w)
	}
	return t.writeCSV(w)
}

func (t *linkTable) writeCSV(w io.Writer) error {
	lines := [][]string{{"node", "relation", "rank", "other", "score"}}
	for k := range t.node {
		lines = append(lines, []string{t.node[k], t.relation[k], strconv.FormatInt(t.rank[k], 10), t.other[k], strconv.FormatFloat(float64(t.score[k]), 'f', 4, 32)})
	}
	if t.site != nil {
		lines[0] = append(lines[0], "site")
		for k, site := range t.site {
			lines[1+k] = append(lines[1+k], site)
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// writeNPZ writes the columns of the CSV as arrays of one length; scores are not rounded.
func (t *linkTable) writeNPZ(w io.Writer) error {
	z, shape := zip.NewWriter(w), []int{len(t.node)}
	err := errors.Join(npy.Write(z, "node", shape, t.node), npy.Write(z, "relation", shape, t.relation), npy.Write(z, "rank", shape, t.rank),
		npy.Write(z, "other", shape, t.other), npy.Write(z, "score", shape, t.score))
	if t.site != nil {
		err = errors.Join(err, npy.Write(z, "site", shape, t.site))
	}
	return errors.Join(err, z.Close())
}
