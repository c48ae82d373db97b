package infer

import (
	"cmp"
	"fmt"

	"github.com/heddle-gnn/heddle/comm"
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/train"
)

// logits computes the logits of own nodes: the forward pass of every model, over a group of peers or one graph.
func (p *run) logits() (logits mat.Dense, err error) {
	m, s := p.model, p.shard
	if m.Closed != nil {
		logits, p.hidden, err = p.classLogits(m.Closed)
	} else {
		logits, err = p.layerLogits()
	}
	if err != nil {
		return logits, err
	}
	m.Spec.SiteShares.Apply(logits, graph.ClassIn(graph.Val, s.Labels, s.Split))
	if m.Spec.CorrectSmooth != nil {
		return p.smoothLogits(logits)
	}
	return logits, nil
}

// layerLogits computes the logits of a model of layers.
func (p *run) layerLogits() (mat.Dense, error) {
	m := p.model
	x, err := p.encodedRows()
	if err != nil {
		return mat.Dense{}, err
	}
	if len(m.Layers) == 0 {
		p.hidden = x.Dense
		if m.Spec.LayerOutput == nn.Logits { // the encoder has put them out
			return x.Dense, nil
		}
		return nn.HeadLogits(m.Encoder.Layer.Head, x.Dense), nil
	}
	for k := range m.Layers {
		if err := p.ctx.Err(); err != nil {
			return mat.Dense{}, err
		}
		h, err := p.layerRows(k, x)
		if err != nil {
			return mat.Dense{}, fmt.Errorf("%s: %w", cmp.Or(m.Layers[k].Name, train.StageName(k+1)), err)
		}
		head := m.Head(k)
		if last := k == len(m.Layers)-1; last && head != nil {
			p.hidden = h
		} else if last && k > 0 {
			p.hidden = x.Dense
		}
		if head != nil {
			h = nn.HeadLogits(head, h)
		}
		x = graph.Features{Dense: h}
	}
	return x.Dense, nil
}

// encodedRows returns what the first layer sees of own nodes.
func (p *run) encodedRows() (graph.Features, error) {
	m, s := p.model, p.shard
	x := m.Encoder.Encode(m.Spec.Reads(s.X))
	if form := m.Encoder.Classes; form != nil {
		logits, _, err := p.classLogits(form)
		if err != nil {
			return x, fmt.Errorf("columns of classes: %w", err)
		}
		x = m.Encoder.WithClasses(x, logits)
	}
	if m.Spec.Encoder.Labels > 0 {
		x = graph.Columns([]graph.Features{x,
			graph.OneHot(graph.ClassIn(graph.Train, s.Labels, s.Split), m.Spec.Classes)})
	}
	if m.Spec.Encoder.Hops == 0 {
		return x, nil
	}
	if err := p.learnDegrees(); err != nil {
		return x, err
	}
	list := []graph.Features{x}
	for k := range m.Spec.Encoder.Hops {
		rows, err := p.sender.Halo(p.ctx, list[k], x.Sparse != nil, fmt.Sprintf("features, hop %d", k))
		if err != nil {
			return x, err
		}
		list = append(list, aggregate.Features(aggregate.Sum{}, p.view.Normalised(graph.GCN), rows))
	}
	return graph.Columns(list), nil
}

// layerRows computes the rows of layer k of own nodes, before its head.
func (p *run) layerRows(k int, x graph.Features) (mat.Dense, error) {
	if !p.whole && (p.Layerwise || sendsInput(p.model, k, x.Sparse != nil)) {
		return p.byInput(k, x)
	}
	return p.byPhases(k, x)
}

// learnDegrees asks the other peers for the degrees of the halo, once.
func (p *run) learnDegrees() (err error) {
	if p.shard.Parts > 1 && !p.degrees { // also at a site without halo: all take part
		p.degrees = true
		p.view, err = p.sender.WithDegrees(p.ctx, p.view)
	}
	return err
}

// byInput computes layer k as layer-wise training does: it sends each layer's input, then the aggregate before each
// further hop.
func (p *run) byInput(k int, x graph.Features) (mat.Dense, error) {
	ctx, l, s := p.ctx, p.model.Layers[k], p.shard
	in := nn.Input{X: x, Nodes: s.Global[:s.Owned]}
	switch {
	case l.Conv.Agg == nil:
	case !l.Frozen() && l.Spec.Hops > 1: // it aggregates what it makes of its input
		return p.byPhases(k, x)
	case !l.Frozen():
		src, err := p.sender.Halo(ctx, x, x.Sparse != nil, RowsName(p.model, k, 0))
		if err == nil && l.Edges == graph.GCN {
			err = p.learnDegrees()
		}
		if err != nil {
			return mat.Dense{}, err
		}
		in = nn.Input{G: p.view.Edges(l), EdgeX: s.EdgeX, X: src, Nodes: s.Global}
	default:
		in.Z = x
		for hop := range max(l.Spec.Hops, 1) {
			src, edges, err := p.fetchRows(k, hop, in.Z, x.Sparse != nil)
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

// fetchRows returns the rows that a hop of layer k sums and the edges over them. The rows are x, of own nodes, and the
// rows of other peers. mixed, the same at all peers, reports that the layer's input is sparse.
func (p *run) fetchRows(k, hop int, x graph.Features, mixed bool) (src graph.Features, edges *graph.CSR, err error) {
	l := p.model.Layers[k]
	if l.Edges == graph.GCN && mixed {
		if err := p.learnDegrees(); err != nil {
			return src, nil, err
		}
	}
	var covers *train.Covers
	if p.Exchange != "halo" && p.shard.Parts > 1 && l.Sums() {
		if p.covers == nil {
			raw := p.model.Spec.Encoder.Kind == "raw"
			if p.covers, err = p.sender.CoverLayers(p.ctx, p.model.Layers, raw, p.Exchange); err != nil {
				return src, nil, err
			}
		}
		covers = p.covers
	}
	return p.sender.Sources(p.ctx, covers, p.view, l, x, mixed, RowsName(p.model, k, hop))
}

// keepBlock keeps what the only layer of a model reads, if it has no head.
func (p *run) keepBlock(k int, in nn.Input) {
	l := p.model.Layers[k]
	if k > 0 || len(p.model.Layers) > 1 || l.Head != nil || in.G != nil {
		return
	}
	p.hidden = l.Reads(in)
}

// sendsInput reports whether the input of layer k is sent although it is not trained layer-wise. It is sent if nothing
// comes before the aggregate, or if the layer's aggregate is among the hidden rows.
func sendsInput(m *nn.Model, k int, sparse bool) bool {
	l := m.Layers[k]
	only := len(m.Layers) == 1 && l.Head == nil
	return l.Conv.Agg == nil || only && l.Frozen() || sparse && l.Conv.Pre == nil && (l.Conv.Nbr == nil || !l.Sums())
}

// SentWidth returns how many numbers of a row are sent for layer k of m in each hop (0 = no row is sent). sparse
// reports that nodes have sparse features.
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

// byPhases computes layer k as training of all layers at once does: it sends what the layer makes of its input before
// it aggregates.
func (p *run) byPhases(k int, x graph.Features) (mat.Dense, error) {
	l, s, v := p.model.Layers[k], p.shard, &p.view
	if l.Edges == graph.GCN {
		if err := p.learnDegrees(); err != nil {
			return mat.Dense{}, err
		}
	}
	near, far := (*graph.CSR)(nil), (*graph.CSR)(nil)
	if s.Parts == 1 {
		near = v.Edges(l)
	} else { // a separate view, so that only the two parts stay in memory
		near, far = p.cutEdges(train.NewGraphView(v.Adj, v.Typed, v.Degree).Edges(l))
	}
	h := mat.New(s.Owned, l.Spec.Out)
	var f nn.Forward
	f.Begin(l, h, nn.Input{G: near, Remote: far != nil, EdgeX: s.EdgeX, X: x, Nodes: s.Global[:s.Owned]}, nil)
	for sent, hop := 0, f.Hop(); hop != nil; sent, hop = sent+1, f.Hop() {
		hop.Near()
		if far == nil {
			continue
		}
		rows, err := p.sender.Halo(p.ctx, graph.Features{Dense: hop.Rows}, false, RowsName(p.model, k, sent))
		if err != nil {
			return mat.Dense{}, err
		}
		hop.Add(far, s.Global[s.Owned:], rows.Dense.RowRange(s.Owned, rows.Dense.Rows))
	}
	f.End()
	return h, nil
}

// cutEdges returns the edges from own rows, and those from the halo's.
func (p *run) cutEdges(edges *graph.CSR) (near, far *graph.CSR) {
	dst, own, halo := mat.EveryRow(edges.NumDst), make([]int32, edges.NumSrc), make([]int32, edges.NumSrc)
	for j := range own {
		own[j], halo[j] = int32(j), -1
		if j >= p.shard.Owned {
			own[j], halo[j] = -1, int32(j-p.shard.Owned)
		}
	}
	return edges.Relabel(dst, own, p.shard.Owned), edges.Relabel(dst, halo, edges.NumSrc-p.shard.Owned)
}

// smoothLogits corrects and smooths logits by the training labels of all peers: each hop, the halo's rows are sent
// once, exactly.
func (p *run) smoothLogits(logits mat.Dense) (mat.Dense, error) {
	if err := p.learnDegrees(); err != nil {
		return logits, err
	}
	sums := 0
	spread := p.sender.Spread(p.ctx, p.view, func(x []float64) error {
		if p.whole {
			return nil
		}
		sums++
		return comm.SumReals(p.ctx, p.sums, comm.ReduceID{Kind: "scale of the errors", Step: sums}, x)
	})
	return p.model.Spec.CorrectSmooth.Apply(logits, graph.ClassIn(graph.Train, p.shard.Labels, p.shard.Split), spread)
}
