package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/closed"
	"github.com/heddle-gnn/heddle/nn/pairs"
	"github.com/heddle-gnn/heddle/nn/tape"
)

// Model is an encoder and layers, or what stands in their place where it is solved in closed form.
type Model struct {
	Spec    Spec
	Encoder *Encoder
	Layers  []*Layer
	Closed  *closed.Form   // nil: it has layers
	Decoder *pairs.Decoder // of links; nil: what comes out are logits or numbers
}

// New returns the model that spec describes, its parameters drawn from key and their names; or all
// that is wrong with spec.
func New(spec Spec, key rng.Key) (*Model, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	enc, err := newEncoder(spec, key)
	if err != nil {
		return nil, err
	}
	m := &Model{Spec: spec, Encoder: enc}
	if spec.Closed != nil {
		m.Closed = closed.New(*spec.Closed, spec.Features, spec.Classes, key)
	}
	for k, s := range spec.Layers {
		l, err := NewLayer(fmt.Sprintf("layer%d", k+1), s, key)
		if err != nil {
			return nil, err
		}
		m.Layers = append(m.Layers, l)
	}
	if spec.Decoder != nil {
		if m.Decoder, err = pairs.New(*spec.Decoder, key); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Whole returns an error unless m has all parts of its specification, as New makes them.
func (m *Model) Whole() error {
	if m == nil || m.Encoder == nil || len(m.Layers) != len(m.Spec.Layers) || slices.Contains(m.Layers, nil) ||
		(m.Closed == nil) != (m.Spec.Closed == nil) || (m.Decoder == nil) != (m.Spec.Decoder == nil) {
		return errors.New("there must be a model with all parts of its specification (got nil, or a part is missing)")
	}
	return nil
}

// UpTo returns a model in closed form without the rounds after the first so many; the parameters are
// those of m.
func (m *Model) UpTo(rounds int) *Model {
	one := *m
	one.Closed = m.Closed.UpTo(rounds)
	one.Spec.Closed = &one.Closed.Spec
	return &one
}

// Params returns the parameters that inference reads, under unique names: of the encoder, of the
// layers, and of the heads that are kept (all of them where layers hand on logits, else the last one);
// then running statistics.
func (m *Model) Params() []*tape.Param {
	if m.Closed != nil {
		return m.Closed.Params()
	}
	all := m.Encoder.Params()
	if len(m.Layers) == 0 && !m.Encoder.logits {
		all = append(all, m.Encoder.Layer.Head.Params()...)
	}
	for k, l := range m.Layers {
		all = append(all, l.Params()...)
		if m.keepsHead(k) {
			all = append(all, l.Head.Params()...)
		}
	}
	if m.Decoder != nil {
		all = append(all, m.Decoder.Params()...)
	}
	for _, l := range m.Layers {
		all = append(all, l.Running()...)
	}
	return all
}

// keepsHead reports whether the output of layer k is that of its head.
func (m *Model) keepsHead(k int) bool {
	return m.Layers[k].Head != nil && (m.Spec.LayerOutput == Logits || k == len(m.Layers)-1)
}

// Infer returns the logits of all nodes of g, N×C, computed on the whole graph; numbers are standardised (Spec.Units).
// Some models read labels of g (Spec.ReadsLabels); Spec.Unlabelled warns if it has none.
func (m *Model) Infer(g *graph.Graph) (mat.Dense, error) {
	in, err := *g, error(nil)
	if in.Labels, in.Split, err = m.Spec.Given(g.Labels, g.Split, g.N()); err != nil {
		return mat.Dense{}, fmt.Errorf("nn: graph %q: %w", g.Name, err)
	}
	in.Labels = in.Labels.Standardised(m.Spec.Units)
	g = &in
	logits, err := m.infer(g)
	if err == nil {
		m.Spec.SiteShares.Apply(logits, graph.ClassIn(graph.Val, g.Labels, g.Split))
	}
	if c := m.Spec.CorrectSmooth; c != nil && err == nil {
		return c.Apply(logits, graph.ClassIn(graph.Train, g.Labels, g.Split), wholeSpread(g))
	}
	return logits, err
}

// infer returns the logits before they are corrected and smoothed.
func (m *Model) infer(g *graph.Graph) (mat.Dense, error) {
	own := m.Spec.Reads(g.X)
	if own.Cols() != m.Spec.Features || g.X.Rows() != g.N() {
		const must = "nn: graph %q must have %d rows of %d features (got %d of %d)"
		return mat.Dense{}, fmt.Errorf(must, g.Name, g.N(), m.Spec.Features, g.X.Rows(), own.Cols())
	}
	if m.Closed != nil {
		x := g.X
		if k := m.Spec.Closed.Adjacent; k > 0 {
			numbers, ok := x.Numbers()
			if !ok {
				return mat.Dense{}, fmt.Errorf("nn: nodes of graph %q must have no features: the model tells them by their neighbours", g.Name)
			}
			x = closed.AdjacencyRows(&g.Adj, numbers, m.Spec.Features, k)
		}
		return m.Closed.Infer(g, m.Encoder.Encode(x)), nil
	}
	x := m.Encoder.Encode(own)
	if form := m.Encoder.Classes; form != nil {
		x = m.Encoder.WithClasses(x, form.Infer(g, m.Encoder.Input(g.X)))
	}
	if m.Spec.Encoder.Labels > 0 {
		x = graph.Columns([]graph.Features{x, graph.OneHot(graph.ClassIn(graph.Train, g.Labels, g.Split),
			m.Spec.Classes)})
	}
	if hops := m.Spec.Encoder.Hops; hops > 0 {
		x = withHops(graph.Normalise(&g.Adj, g.Adj.Degrees(), graph.GCN), x, hops)
	}
	if len(m.Layers) == 0 && !m.Encoder.logits {
		return headLogits(m.Encoder.Layer.Head, x.Dense), nil
	}
	degree := g.Adj.Degrees()
	adj := map[graph.Norm]*graph.CSR{}
	for k, l := range m.Layers {
		in := Input{X: x, EdgeX: g.EdgeX}
		if n := l.Spec.EdgeColumns; n > 0 && n != g.EdgeX.Cols {
			return mat.Dense{}, fmt.Errorf("nn: edges of graph %q must have %d columns (got %d)", g.Name, n, g.EdgeX.Cols)
		}
		if l.Conv.Agg != nil {
			if n := l.Spec.Relations; n > 0 {
				if n != g.Typed.Count() {
					return mat.Dense{}, fmt.Errorf("nn: graph %q must have %d relations (got %d)",
						g.Name, n, g.Typed.Count())
				}
				in.G = l.Typed(&g.Typed.Adj, g.N())
			} else {
				if adj[l.Edges] == nil {
					adj[l.Edges] = graph.Normalise(&g.Adj, degree, l.Edges)
				}
				in.G = adj[l.Edges]
			}
		}
		h := mat.New(g.N(), l.Spec.Out)
		l.Forward(h, in, nil)
		if m.keepsHead(k) {
			h = headLogits(l.Head, h)
		}
		x = graph.Features{Dense: h}
	}
	return x.Dense, nil
}

// wholeSpread is Spread over a graph at hand.
func wholeSpread(g *graph.Graph) Spread {
	adj := graph.Normalise(&g.Adj, g.Adj.Degrees(), graph.Symmetric)
	return Spread{
		Hop: func(x mat.Dense) (mat.Dense, error) {
			return aggregate.Features(aggregate.Sum{}, adj, graph.Features{Dense: x}).Dense, nil
		},
		Sum: func([]float64) error { return nil },
	}
}
