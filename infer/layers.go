package infer

import (
	"context"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/train"
)

// layers computes the logits of a model of layers, each by compute: from a layer's input of own nodes, its rows.
func (p *run) layers(ctx context.Context, compute func(ctx context.Context, v *train.GraphView, k int, x graph.Features) (mat.Dense, error)) (mat.Dense, error) {
	m, v := p.model, train.WholeGraph(p.shard)
	x, err := p.encoded(ctx, &v)
	if err != nil {
		return mat.Dense{}, err
	}
	if len(m.Layers) == 0 {
		p.hidden = x.Dense
		if m.Spec.LayerOutput == nn.Logits { // the encoder has put them out
			return x.Dense, nil
		}
		return headRows(m.Encoder.Layer.Head, x.Dense), nil
	}
	for k, l := range m.Layers {
		if err := ctx.Err(); err != nil {
			return mat.Dense{}, err
		}
		h, err := compute(ctx, &v, k, x)
		if err != nil {
			return mat.Dense{}, fmt.Errorf("%s: %w", p.name(k), err)
		}
		last := k == len(m.Layers)-1
		switch {
		case last && l.Head != nil:
			p.hidden = h
		case last && k > 0:
			p.hidden = x.Dense
		}
		if l.Head != nil && (last || m.Spec.LayerOutput == nn.Logits) {
			h = headRows(l.Head, h)
		}
		x = graph.Features{Dense: h}
	}
	return x.Dense, nil
}

// headRows returns the logits that a head makes of rows.
func headRows(head tape.Operator, h mat.Dense) mat.Dense {
	_, classes := head.Dims()
	y := mat.New(h.Rows, classes)
	head.Forward(y, h, nil)
	return y
}

// encoded returns what the first layer sees of own nodes.
func (p *run) encoded(ctx context.Context, v *train.GraphView) (graph.Features, error) {
	enc, s := p.model.Spec.Encoder, p.shard
	x := p.model.Encoder.Encode(p.model.Spec.Reads(s.X))
	if form := p.model.Encoder.Classes; form != nil {
		logits, err := p.closedForm(ctx, form)
		if err != nil {
			return x, fmt.Errorf("columns of classes: %w", err)
		}
		x = p.model.Encoder.WithClasses(x, logits)
	}
	if enc.Labels > 0 {
		x = graph.Columns([]graph.Features{x, graph.OneHot(graph.ClassIn(graph.Train, s.Labels, s.Split),
			p.model.Spec.Classes)})
	}
	if enc.Hops == 0 {
		return x, nil
	}
	if err := p.learnDegrees(ctx, v); err != nil {
		return x, err
	}
	list := []graph.Features{x}
	for k := range enc.Hops {
		rows, err := p.sender.Halo(ctx, list[k], x.Sparse != nil, fmt.Sprintf("features, hop %d", k))
		if err != nil {
			return x, err
		}
		list = append(list, aggregate.Features(aggregate.Sum{}, v.Normalised(graph.GCN), rows))
	}
	return graph.Columns(list), nil
}

// learnDegrees asks the other peers for the degrees of the halo, once.
func (p *run) learnDegrees(ctx context.Context, v *train.GraphView) (err error) {
	if p.shard.Parts > 1 && len(v.Degree) < len(p.shard.Global) {
		*v, err = p.sender.WithDegrees(ctx, *v)
	}
	return err
}

// byInput computes layer k as layer-wise training does: each layer's input travels, and once more for each further hop.
func (p *run) byInput(ctx context.Context, v *train.GraphView, k int, x graph.Features) (mat.Dense, error) {
	l, s := p.model.Layers[k], p.shard
	in := nn.Input{X: x, Nodes: s.Global[:s.Owned]}
	switch {
	case l.Conv.Agg == nil:
	case !l.Frozen() && l.Spec.Hops > 1: // it aggregates what it makes of its input
		return p.byPhases(ctx, v, k, x)
	case !l.Frozen():
		src, err := p.sender.Halo(ctx, x, x.Sparse != nil, p.name(k))
		if err == nil && l.Edges == graph.GCN {
			err = p.learnDegrees(ctx, v)
		}
		if err != nil {
			return mat.Dense{}, err
		}
		in = nn.Input{G: v.Edges(l), EdgeX: s.EdgeX, X: src, Nodes: s.Global}
	default:
		in.Z = x
		for hop := range max(l.Spec.Hops, 1) {
			src, edges, err := p.fetch(ctx, v, k, hop, in.Z, x.Sparse != nil)
			if err != nil {
				return mat.Dense{}, err
			}
			in.Z = aggregate.Features(l.Conv.Agg, edges, src)
		}
	}
	p.keepBlock(k, in)
	h := mat.New(s.Owned, l.Spec.Out)
	l.Forward(h, in, nil)
	return h, nil
}

// fetch returns what a hop of layer k sums, of the rows x of own nodes and those of the others, and the edges over it.
// mixed, the same at all peers, says that the layer's input is sparse.
func (p *run) fetch(ctx context.Context, v *train.GraphView, k, hop int, x graph.Features, mixed bool) (src graph.Features, edges *graph.CSR, err error) {
	l, what := p.model.Layers[k], fmt.Sprintf("%s, hop %d", p.name(k), hop)
	weighs := l.Edges == graph.GCN && !mixed // then nobody needs the degrees of the halo
	if weighs {
		x.Dense = v.Weigh(x.Dense, l.Edges)
	} else if l.Edges == graph.GCN {
		if err := p.learnDegrees(ctx, v); err != nil {
			return src, nil, err
		}
	}
	if p.Exchange != "halo" && p.shard.Parts > 1 && l.Sums() {
		if p.covers == nil {
			if p.covers, err = p.sender.CoverLayers(ctx, p.model.Layers, p.model.Spec.Encoder.Kind == "raw", p.Exchange); err != nil {
				return src, nil, err
			}
		}
		return p.sender.Covered(ctx, p.covers, *v, l, x, mixed, p.Exchange == "auto", what)
	}
	if weighs {
		edges = v.Received(l.Edges)
	} else {
		edges = v.Edges(l)
	}
	src, err = p.sender.Halo(ctx, x, mixed, what)
	return src, edges, err
}

// keepBlock keeps what the only layer of a model reads, if it has no head.
func (p *run) keepBlock(k int, in nn.Input) {
	l := p.model.Layers[k]
	if k > 0 || len(p.model.Layers) > 1 || l.Head != nil || in.G != nil {
		return
	}
	p.hidden = l.Reads(in)
}

// sendsInput reports whether the input of layer k travels although it is not trained layer-wise: where nothing comes before
// the aggregate, or the layer's aggregate is among the hidden rows.
func sendsInput(m *nn.Model, k int, sparse bool) bool {
	l := m.Layers[k]
	only := len(m.Layers) == 1 && l.Head == nil
	return l.Conv.Agg == nil || only && l.Frozen() || sparse && l.Conv.Pre == nil && (l.Conv.Nbr == nil || !l.Sums())
}

// SentWidth returns how many numbers of a row travel for layer k of m in each hop; 0: no row does. sparse says that nodes
// have sparse features.
func (c Config) SentWidth(m *nn.Model, k int, sparse bool) int {
	l := m.Layers[k]
	sparse = sparse && k == 0 && m.Spec.Encoder.Kind == "raw"
	switch {
	case l.Conv.Agg == nil:
		return 0
	case !l.Frozen() && l.Spec.Hops > 1: // in every case
	case c.Layerwise || sendsInput(m, k, sparse):
		return l.Spec.In
	case sparse && l.Conv.Pre == nil: // projected first, whichever is wider
		_, out := l.Conv.Nbr.Dims()
		return out
	}
	return l.SentWidth()
}

// byPhases computes layer k as training of all layers at once does: what travels is what the layer makes of its input
// before it aggregates.
func (p *run) byPhases(ctx context.Context, v *train.GraphView, k int, x graph.Features) (mat.Dense, error) {
	l, s := p.model.Layers[k], p.shard
	if sendsInput(p.model, k, x.Sparse != nil) {
		return p.byInput(ctx, v, k, x)
	}
	if l.Edges == graph.GCN {
		if err := p.learnDegrees(ctx, v); err != nil {
			return mat.Dense{}, err
		}
	}
	near, far := (*graph.CSR)(nil), (*graph.CSR)(nil)
	if s.Parts == 1 {
		near = v.Edges(l)
	} else { // a view of its own, so that only the two parts stay in memory
		near, far = p.cut(train.NewGraphView(v.Adj, v.Typed, v.Degree).Edges(l))
	}
	h := mat.New(s.Owned, l.Spec.Out)
	var f nn.Forward
	f.Begin(l, h, nn.Input{G: near, Remote: far != nil, EdgeX: s.EdgeX, X: x, Nodes: s.Global[:s.Owned]}, nil)
	for hop := f.Hop(); hop != nil; hop = f.Hop() {
		hop.Near()
		if far == nil {
			continue
		}
		rows, err := p.sender.Halo(ctx, graph.Features{Dense: hop.Rows}, false, "rows of "+p.name(k))
		if err != nil {
			return mat.Dense{}, err
		}
		hop.Add(far, s.Global[s.Owned:], rows.Dense.RowRange(s.Owned, rows.Dense.Rows))
	}
	f.End()
	return h, nil
}

// cut returns the edges from own rows, and those from the halo's.
func (p *run) cut(edges *graph.CSR) (near, far *graph.CSR) {
	dst, own, halo := make([]int32, edges.NumDst), make([]int32, edges.NumSrc), make([]int32, edges.NumSrc)
	for i := range dst {
		dst[i] = int32(i)
	}
	for j := range own {
		own[j], halo[j] = int32(j), -1
		if j >= p.shard.Owned {
			own[j], halo[j] = -1, int32(j-p.shard.Owned)
		}
	}
	return edges.Relabel(dst, own, p.shard.Owned), edges.Relabel(dst, halo, edges.NumSrc-p.shard.Owned)
}

// smooth corrects and smooths logits by the training labels of all peers: each hop, the halo's rows travel once, exactly.
func (p *run) smooth(ctx context.Context, logits mat.Dense) (mat.Dense, error) {
	v := train.WholeGraph(p.shard)
	if err := p.learnDegrees(ctx, &v); err != nil {
		return logits, err
	}
	sums, exact, edges := 0, p.sender.Exact(), v.Normalised(graph.Symmetric)
	return p.model.Spec.CorrectSmooth.Apply(logits, graph.ClassIn(graph.Train, p.shard.Labels, p.shard.Split),
		nn.Spread{
			Hop: func(x mat.Dense) (mat.Dense, error) {
				rows, err := exact.Halo(ctx, graph.Features{Dense: x}, false, "logits to smooth")
				if err != nil {
					return mat.Dense{}, err
				}
				return aggregate.Features(aggregate.Sum{}, edges, rows).Dense, nil
			},
			Sum: func(x []float64) error {
				sums++
				return comm.SumReals(ctx, p.sums, comm.ReduceID{Kind: "scale of the errors", Step: sums}, x)
			},
		})
}
