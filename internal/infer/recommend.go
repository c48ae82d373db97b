package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/internal/train/links"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/train"
)

// ErrLinks is the error for a model of links in a task that needs a model of nodes.
var ErrLinks = errors.New("the model must predict classes or numbers of nodes (got one for links): " +
	"heddle recommend lists its links")

// Recommendation is a link that a graph lacks.
type Recommendation struct {
	Node, Other int32 // indices of the graph
	Relation    string
	Score       float32 // log-odds among the pairs that the model was trained on
}

// Recommend returns the k best new links of each of some nodes of g under a relation, or under each relation of m if
// it is empty, in the order of the nodes, best first. The other ends are nodes of those types that such links of g
// have.
func Recommend(ctx context.Context, m *nn.Model, g *graph.Graph, nodes []int32, relation string,
	k int) (all []Recommendation, err error) {
	if m.Decoder == nil {
		return nil, notLinks(m)
	}
	names := m.Decoder.Spec.Relations
	if relation != "" && !slices.Contains(names, relation) {
		return nil, fmt.Errorf("relation must be one of %q, which the model knows (got %q)", names, relation)
	}
	z, err := Graph(m, g.Numbered())
	if err != nil {
		return nil, fmt.Errorf("the model does not fit %s: %w", g.Name, err)
	}
	for r, name := range names {
		if relation != "" && name != relation {
			continue
		}
		known, err := linksOf(g, name)
		if err != nil {
			return nil, err
		}
		for _, i := range nodes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			of := known.without(i, int32(r))
			scores := m.Decoder.Scores(z, of)
			for _, at := range nn.BestScores(scores, k) {
				all = append(all, Recommendation{i, of[at].V, name, scores[at]})
			}
		}
	}
	place := make(map[int32]int)
	for k, i := range nodes {
		place[i] = k
	}
	slices.SortStableFunc(all, func(a, b Recommendation) int { return place[a.Node] - place[b.Node] })
	return all, nil
}

// knownLinks are the known links of one relation.
type knownLinks struct {
	of   [2]*graph.CSR // in the relation's direction and against it
	kind []uint8       // of the nodes, or nil if they have no types
	ends [][]bool      // [T][T] whether links connect nodes of these types
}

// linksOf returns the links of g under a relation, which is empty if edges have no types.
func linksOf(g *graph.Graph, relation string) (knownLinks, error) {
	one := &g.Adj
	if relation != "" {
		at := slices.Index(g.Typed.Names, relation)
		if at < 0 {
			return knownLinks{}, fmt.Errorf("%s must have the model's relation %q (got %q)", g.Name, relation,
				g.Typed.Names)
		}
		one = g.Typed.Adj.Relation(at, g.Typed.Count())
	}
	l := knownLinks{of: [2]*graph.CSR{one, one.Transpose(nil)}}
	if types := g.Types.Count(); types > 0 {
		l.kind = g.Types.Of
		for range types {
			l.ends = append(l.ends, make([]bool, types))
		}
		for i := range g.N() {
			col, _ := one.Row(i)
			for _, j := range col {
				a, b := l.kind[i], l.kind[j]
				l.ends[a][b], l.ends[b][a] = true, true
			}
		}
	}
	return l, nil
}

// without returns the pairs of node i with all nodes that a link may join it to and none does.
func (l knownLinks) without(i, relation int32) (all []nn.Pair) {
	n := l.of[0].NumDst
	linked := make([]bool, n)
	linked[i] = true
	for _, g := range l.of {
		col, _ := g.Row(int(i))
		for _, j := range col {
			linked[j] = true
		}
	}
	for j := range int32(n) {
		if !linked[j] && (l.kind == nil || l.ends[l.kind[i]][l.kind[j]]) {
			all = append(all, nn.Pair{U: i, V: j, Relation: relation})
		}
	}
	return all
}

// Together returns the k best new links of wanted nodes of s by a model of links. The other end of a link may be a node
// of another peer, which sends the rows that by, the settings of its training, permits. All peers call it.
func Together(ctx context.Context, c Config, by train.LinkTask, m *nn.Model, s *shard.Shard, g *comm.Group,
	r comm.Reducer, wanted []links.Wanted, k int) (all []shard.NewLink, err error) {
	if m.Decoder == nil {
		return nil, notLinks(m)
	}
	if err = Fits(m, s); err != nil {
		return nil, err
	}
	z, _, err := Logits(ctx, c, m, s, g)
	if err == nil {
		all, err = links.Recommend(ctx, by, s, m.Decoder, g, train.NewSender(g, s, c.Rows), r, z, wanted, k)
	}
	return all, err
}

// Wants returns the links that a site wants: for each of the nodes under relation, or under every relation of m if
// relation is empty. The error gives why m cannot recommend them.
func Wants(m *nn.Model, s *shard.Shard, nodes []int32, relation string) (wanted []links.Wanted, err error) {
	if m.Decoder == nil {
		return nil, notLinks(m)
	}
	names := m.Decoder.Spec.Relations
	for _, name := range names {
		if name != "" && !slices.Contains(s.Typed.Names, name) {
			return nil, fmt.Errorf("%s must have the model's relation %q (got %q)", s.Name, name, s.Typed.Names)
		}
	}
	if relation != "" && !slices.Contains(names, relation) {
		return nil, fmt.Errorf("relation must be one of %q, which the model knows (got %q)", names, relation)
	}
	for _, i := range nodes {
		for r, name := range names {
			if relation == "" || name == relation {
				wanted = append(wanted, links.Wanted{Node: i, Relation: int32(r)})
			}
		}
	}
	return wanted, nil
}

func notLinks(m *nn.Model) error {
	return fmt.Errorf("the model must be one for links (got %s): heddle predict gives its predictions", m.Spec.Task)
}
