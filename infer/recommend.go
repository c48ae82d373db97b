package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/pairs"
)

// ErrLinks is the fault of a model that predicts links where one of nodes is wanted.
var ErrLinks = errors.New("the model must predict classes or numbers of nodes (got one of task links): peer recommend lists its links")

// Recommendation is a link that a graph lacks.
type Recommendation struct {
	Node, Other int32 // indices of the graph
	Relation    string
	Score       float32 // log-odds among the pairs that the model was trained on
}

// Recommend returns the k best new links of each of some nodes of g under a relation, or under each relation of m where it is
// empty, in the order of the nodes, best first. The other ends are nodes of those types that such links of g have.
func Recommend(ctx context.Context, m *nn.Model, g *graph.Graph, nodes []int32, relation string, k int) (all []Recommendation, err error) {
	if m.Decoder == nil {
		return nil, fmt.Errorf("the model must be of task links (got %s): peer predict gives its predictions", m.Spec.Task)
	}
	names := m.Decoder.Spec.Relations
	if relation != "" && !slices.Contains(names, relation) {
		return nil, fmt.Errorf("relation must be one of %q, which the model knows (got %q)", names, relation)
	}
	z, err := m.Infer(g.Numbered())
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
			for _, at := range best(scores, k) {
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

// knownLinks are those of one relation.
type knownLinks struct {
	of   [2]*graph.CSR // in the relation's direction and against it
	kind []uint8       // of the nodes; nil: they have no types
	ends [][]bool      // [T][T] whether links join the types
}

// linksOf returns the links of g under a relation, which is empty where edges have no types.
func linksOf(g *graph.Graph, relation string) (knownLinks, error) {
	one := &g.Adj
	if relation != "" {
		at := slices.Index(g.Typed.Names, relation)
		if at < 0 {
			return knownLinks{}, fmt.Errorf("%s must have the model's relation %q (got %q)", g.Name, relation, g.Typed.Names)
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
func (l knownLinks) without(i, relation int32) (all []pairs.Pair) {
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
			all = append(all, pairs.Pair{U: i, V: j, Relation: relation})
		}
	}
	return all
}

// best returns the places of the k highest scores, highest first; of equals the first.
func best(scores []float32, k int) (top []int) {
	for at, s := range scores {
		if len(top) == k && !(s > scores[top[k-1]]) {
			continue
		}
		where, _ := slices.BinarySearchFunc(top, s, func(other int, s float32) int {
			if scores[other] >= s {
				return -1
			}
			return 1
		})
		if top = slices.Insert(top, where, at); len(top) > k {
			top = top[:k]
		}
	}
	return top
}
