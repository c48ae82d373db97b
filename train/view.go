package train

import (
	"context"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/graph/shard"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// GraphView is the graph as one purpose sees it: all of it, or, for training, a part.
type GraphView struct {
	Adj    *graph.CSR // [Owned × (Owned + halo)]
	Typed  *graph.CSR // the same by relation, if edges have types
	Degree []float32  // [Owned] in the graph that the view shows; [Owned + halo] after WithDegrees

	normed map[edgeKind]*graph.CSR
}

// edgeKind is which edges a layer takes.
type edgeKind struct {
	norm     graph.Norm
	typed    bool
	reached  bool // including edges that show which nodes a relation reaches
	received bool // from rows that their owners have weighed
}

// NewGraphView returns a view of the given edges, which must not change afterwards.
func NewGraphView(adj, typed *graph.CSR, degree []float32) GraphView {
	return GraphView{Adj: adj, Typed: typed, Degree: degree, normed: make(map[edgeKind]*graph.CSR)}
}

// WholeGraph returns the view of all edges of s.
func WholeGraph(s *shard.Shard) GraphView { return NewGraphView(&s.Adj, &s.Typed.Adj, s.Adj.Degrees()) }

// Edges returns the edges that layer l takes, normalised, or nil if it takes none. They are computed once.
func (v GraphView) Edges(l *nn.Layer) *graph.CSR {
	if l.Conv.Agg == nil {
		return nil
	}
	if l.Conv.Relations == 0 {
		return v.Normalised(l.Edges)
	}
	k := edgeKind{norm: l.Edges, typed: true, reached: l.Conv.Reached}
	if v.normed[k] == nil {
		v.normed[k] = l.Typed(v.Typed, v.Adj.NumDst)
	}
	return v.normed[k]
}

// Received returns the edges with what destinations put into the weights of norm, for rows that their owners have
// multiplied by the rest (Factors). They are computed once.
func (v GraphView) Received(norm graph.Norm) *graph.CSR {
	k := edgeKind{norm: norm, received: true}
	if v.normed[k] == nil {
		dst, _ := v.Factors(norm)
		v.normed[k] = graph.WeighDestinations(graph.WithLoops(v.Adj, norm), dst)
	}
	return v.normed[k]
}

// SourceEdges returns the edges of layer l over rows as Sender.Sources sends them.
func (v GraphView) SourceEdges(l *nn.Layer, mixed bool) *graph.CSR {
	if l.Edges == graph.GCN && !mixed {
		return v.Received(l.Edges)
	}
	return v.Edges(l)
}

// Weigh returns own rows x multiplied by what sources put into the weights of norm.
func (v GraphView) Weigh(x mat.Dense, norm graph.Norm) mat.Dense {
	_, src := v.Factors(norm)
	return weighed(x, src)
}

// weighed returns x with row i multiplied by f[i], or x itself if f is nil.
func weighed(x mat.Dense, f []float64) mat.Dense {
	if f == nil {
		return x
	}
	x = x.Clone()
	weigh(x, f)
	return x
}

// weigh multiplies row i of x by f[i], or none if f is nil.
func weigh(x mat.Dense, f []float64) {
	for i, v := range f {
		row := x.Row(i)
		for k := range row {
			row[k] = float32(v * float64(row[k]))
		}
	}
}

// Reweigh converts rows of own nodes and the halo, weighed by their owners for one view, to another view: owners send
// one number for each row, its factor. Rows of a peer that is not a member of the group stay.
func (s *Sender) Reweigh(ctx context.Context, x mat.Dense, norm graph.Norm, from, to GraphView) (mat.Dense, error) {
	_, was := from.Factors(norm)
	_, is := to.Factors(norm)
	if is == nil {
		return x, nil
	}
	ratio := make([]float32, len(is))
	for i := range ratio {
		ratio[i] = float32(is[i] / was[i])
	}
	all, err := s.Numbers(ctx, ratio, "degrees of other edges")
	if err != nil {
		return mat.Dense{}, err
	}
	times := make([]float64, len(all))
	for i, f := range all {
		if times[i] = float64(f); f == 0 {
			times[i] = 1
		}
	}
	return weighed(x, times), nil
}

// Factors returns what own nodes put into the weights of norm, as destinations and as sources; nil is 1.
func (v GraphView) Factors(norm graph.Norm) (dst, src []float64) {
	return graph.Factors(v.Degree[:v.Adj.NumDst], norm)
}

// Normalised returns the edges, of all relations together, with the weights of norm. GCN and Symmetric need
// WithDegrees, unless nodes have no neighbours elsewhere.
func (v GraphView) Normalised(norm graph.Norm) *graph.CSR {
	k := edgeKind{norm: norm}
	if v.normed[k] == nil {
		v.normed[k] = graph.Normalise(v.Adj, v.Degree, norm)
	}
	return v.normed[k]
}

// InductiveView returns the graph without its validation and test nodes: their edges are gone on both sides, and
// degrees count only the rest. Owners send one number for each halo row: whether it is absent.
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
	return NewGraphView(adj, typed, adj.Degrees()), nil
}

// WithDegrees returns v with the degrees of the halo, one number a row, for weights that need both ends in one place. A
// sum of rows that their owners have weighed needs no degrees.
func (s *Sender) WithDegrees(ctx context.Context, v GraphView) (GraphView, error) {
	degree, err := s.Numbers(ctx, v.Degree[:s.shard.Owned], "degrees")
	return NewGraphView(v.Adj, v.Typed, degree), err
}

// Spread returns how logits are smoothed over the edges of v, which has the degrees of the halo: in each hop the halo's
// rows are sent once, exactly. sum makes of numbers their sums over all peers.
func (s *Sender) Spread(ctx context.Context, v GraphView, sum func(x []float64) error) nn.Spread {
	exact := s.Exact()
	return nn.Spread{Sum: sum, Hop: func(x mat.Dense) (mat.Dense, error) {
		rows, err := exact.Halo(ctx, graph.Features{Dense: x}, false, "logits to smooth")
		if err != nil {
			return mat.Dense{}, err
		}
		return aggregate.Features(aggregate.Sum{}, v.Normalised(graph.Symmetric), rows).Dense, nil
	}}
}
