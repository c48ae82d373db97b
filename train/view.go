package train

import (
	"context"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/nn"
)

// GraphView is the graph as one purpose sees it: all of it, or, for training, a part.
type GraphView struct {
	Adj    *graph.CSR // [Owned × (Owned + halo)]
	Typed  *graph.CSR // the same by relation, where edges have types
	Degree []float32  // [Owned + halo] in the graph that the view shows

	normed map[edgeKind]*graph.CSR
}

// edgeKind is which edges a layer takes.
type edgeKind struct {
	norm  graph.Norm
	typed bool
}

// NewGraphView returns a view of the given edges, which must not change afterwards.
func NewGraphView(adj, typed *graph.CSR, degree []float32) GraphView {
	return GraphView{Adj: adj, Typed: typed, Degree: degree, normed: make(map[edgeKind]*graph.CSR)}
}

// WholeGraph returns the view of all edges of s.
func WholeGraph(s *shard.Shard) GraphView { return NewGraphView(&s.Adj, &s.Typed.Adj, s.Degree) }

// Edges returns the edges as layer l takes them, normalised; nil: it takes none. They are computed once.
func (v GraphView) Edges(l *nn.Layer) *graph.CSR {
	if l.Conv.Agg == nil {
		return nil
	}
	return v.Normalised(l.Edges, l.Conv.Relations > 0)
}

// Normalised returns the edges, by relation if typed, with the weights of norm.
func (v GraphView) Normalised(norm graph.Norm, typed bool) *graph.CSR {
	k := edgeKind{norm, typed}
	switch {
	case v.normed[k] != nil:
	case typed:
		v.normed[k] = graph.Normalise(v.Typed, v.Typed.Degrees(), norm)
	default:
		v.normed[k] = graph.Normalise(v.Adj, v.Degree, norm)
	}
	return v.normed[k]
}

// InductiveView returns the graph without its validation and test nodes: their edges are gone on both sides, and the
// degrees are those of what is left. Two numbers for each halo row travel: whether it is absent, and its degree.
func (s *Sender) InductiveView(ctx context.Context) (GraphView, error) {
	own := s.shard
	held := make([]float32, own.Owned)
	for i, split := range own.Split {
		if split == graph.Val || split == graph.Test {
			held[i] = 1
		}
	}
	absent, err := s.Numbers(ctx, held, "which halo nodes are held out")
	if err != nil {
		return GraphView{}, err
	}
	split := make([]graph.Split, len(own.Global))
	for j := range split {
		if absent[j] != 0 {
			split[j] = graph.Test
		}
	}
	adj, typed := own.Adj.Without(split, graph.Test), &own.Typed.Adj
	if own.Typed.Count() > 0 {
		typed = own.Typed.Without(split, graph.Test)
	}
	degree, err := s.Numbers(ctx, adj.Degrees(), "degrees among training nodes")
	if err != nil {
		return GraphView{}, err
	}
	return NewGraphView(adj, typed, degree), nil
}
