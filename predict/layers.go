package predict

import (
	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn"
	"github.com/heddle-gnn/heddle/nn/aggregate"
)

// addLayers adds the encoder and the layers of the model and returns the last of their stages.
func (p *rows) addLayers() *stage {
	m := p.model
	x := p.addEncoder()
	if len(m.Layers) == 0 && m.Spec.LayerOutput == nn.Hidden {
		encoded := x
		x = p.add(&stage{own: []*stage{encoded}, compute: func(c *call, nodes []int32) (mat.Dense, error) {
			h, err := c.get(encoded, nodes)
			if err != nil {
				return h, err
			}
			return nn.HeadLogits(m.Encoder.Layer.Head, h), nil
		}})
	}
	for k := range m.Layers {
		x = p.addLayer(k, x)
	}
	return x
}

// addEncoder adds the stages before the first layer and returns the last of them, which is the input if the encoder
// leaves the features as they are.
func (p *rows) addEncoder() *stage {
	e := p.model.Encoder
	if e.Spec.Kind == "raw" {
		return p.input
	}
	own, form := []*stage{p.input}, e.Classes
	if form != nil {
		own = append(own, p.addClosed(form))
	}
	x := p.add(&stage{own: own, compute: func(c *call, nodes []int32) (mat.Dense, error) {
		x := e.Encode(c.features(nodes))
		if form != nil {
			logits, err := c.get(own[1], nodes)
			if err != nil {
				return logits, err
			}
			x = e.WithClasses(x, logits)
		}
		return x.Dense, nil
	}})
	if e.Spec.Hops == 0 {
		return x
	}
	// Each hop is a stage. A changed node is then summed again only by its neighbours in the next hop, not by all nodes
	// within the encoder's reach.
	list := []*stage{x}
	for range e.Spec.Hops {
		list = append(list, p.addSum(list[len(list)-1], graph.GCN, func(x mat.Dense) mat.Dense { return x }))
	}
	return p.add(&stage{own: list, compute: func(c *call, nodes []int32) (mat.Dense, error) {
		all := make([]graph.Features, len(list))
		for k, of := range list {
			y, err := c.get(of, nodes)
			if err != nil {
				return y, err
			}
			all[k].Dense = y
		}
		return graph.Columns(all).Dense, nil
	}})
}

// addSum adds the sum of the neighbours' rows, weighted by norm; pick selects the columns of their rows.
func (p *rows) addSum(of *stage, norm graph.Norm, pick func(mat.Dense) mat.Dense) *stage {
	return p.add(&stage{near: of, norm: norm, compute: func(c *call, nodes []int32) (mat.Dense, error) {
		b := c.block(nodes, norm, false)
		if len(b.sources) == 0 {
			x, err := c.get(of, nodes)
			return mat.New(len(nodes), pick(x).Cols), err
		}
		x, err := c.get(of, b.sources)
		if err != nil {
			return x, err
		}
		return aggregate.Features(aggregate.Sum{}, &b.CSR, graph.Features{Dense: pick(x)}).Dense, nil
	}})
}

// layer is a layer of a model and the stages that it reads.
type layer struct {
	*nn.Layer
	k    int
	x    *stage
	hops []*stage // its aggregates, hop by hop; the first may be x
}

// addLayer adds the stages of layer k, which reads the rows x. A row's value before aggregation is a stage itself, so
// that it is not computed again for each neighbour.
func (p *rows) addLayer(k int, x *stage) *stage {
	l := layer{Layer: p.model.Layers[k], k: k, x: x}
	out := &stage{own: []*stage{x}, norm: l.Edges, compute: func(c *call, nodes []int32) (mat.Dense, error) {
		return l.rows(c, nodes, max(len(l.hops), 1))
	}}
	switch {
	case l.Conv.Agg == nil:
	case l.reads(p):
		l.hops = []*stage{x}
	default:
		l.hops = []*stage{p.add(&stage{own: out.own, compute: func(c *call, nodes []int32) (mat.Dense, error) {
			return l.rows(c, nodes, 0)
		}})}
	}
	for hop := 1; l.hops != nil && hop < l.Conv.Hops; hop++ {
		l.hops = append(l.hops, p.add(&stage{own: out.own, near: l.hops[hop-1], norm: l.Edges,
			compute: func(c *call, nodes []int32) (mat.Dense, error) { return l.rows(c, nodes, hop) }}))
	}
	if l.hops != nil {
		out.near = l.hops[len(l.hops)-1]
	}
	return p.add(out)
}

// readsSparse reports whether the layer aggregates sparse rows itself.
func (l layer) readsSparse(p *rows) bool { return l.x == p.input && p.sparse && l.reads(p) }

// reads reports whether the first hop aggregates the layer's input unchanged. Either nothing comes before the
// aggregate, or the aggregate is a sum and comes before the product. It does so in the whole graph unless the product
// is narrower or its input is sparse (nn.Conv).
func (l layer) reads(p *rows) bool {
	if l.Conv.Pre != nil {
		return false
	}
	if l.Conv.Nbr == nil || !l.Conv.Agg.Properties().Sum {
		return true
	}
	w, out := l.Conv.Nbr.Dims()
	return out >= w && (l.x != p.input || !p.sparse)
}

// rows returns the rows of nodes after a hop: the input of the first aggregate (hop 0), an aggregate, or the layer's
// output after the last hop and the head.
func (l layer) rows(c *call, nodes []int32, hop int) (mat.Dense, error) {
	in, err := c.layerInput(l.x, nodes)
	if err != nil {
		return mat.Dense{}, err
	}
	var b *block
	h := mat.New(len(nodes), l.Spec.Out)
	switch {
	case l.Conv.Agg == nil:
		l.Forward(h, in, nil)
		return l.head(c, h), nil
	case hop > 0:
		b = c.layerBlock(l.Layer, nodes)
	default:
		b = &block{edgeX: mat.New(0, c.width)}
	}
	in.EdgeX = b.edgeX
	if l.readsSparse(c.rows) {
		// No stage keeps sparse rows: the block's sources are gathered, and the layer runs over them as over a graph.
		if in, err = c.layerInput(l.x, b.sources); err != nil {
			return mat.Dense{}, err
		}
		in.G = &b.CSR
		l.Forward(h, in, nil)
		return l.head(c, h), nil
	}
	// The pass runs over the nodes only, without edges, except in the wanted hop, which gets edges and the rows of
	// their sources. Every rank of a run must decide equally whether to project before it sums. So Remote makes the
	// decision independent of the block's size.
	stacked := max(l.Conv.Relations, 1) * len(nodes)
	in.G = &graph.CSR{NumDst: stacked, NumSrc: len(nodes), RowPtr: make([]int64, stacked+1)}
	in.Remote = l.Conv.Agg.Properties().Sum
	var f nn.Forward
	f.Begin(l.Layer, h, in, nil)
	for at := 1; ; at++ {
		next := f.Hop()
		// Hops before the wanted one sum no edges. Their results are replaced below by rows that a stage has kept.
		if next == nil {
			f.End()
			return l.head(c, h), nil
		}
		if at > hop {
			return next.Rows, nil
		}
		if at < hop {
			continue
		}
		rows, err := c.get(l.hops[at-1], b.sources)
		if err != nil {
			return rows, err
		}
		if len(b.sources) == 0 {
			rows = mat.New(0, next.Rows.Cols)
		}
		next.G, next.Rows = &b.CSR, rows
		next.Near()
	}
}

// layerInput returns the rows of nodes that a layer reads, sparse if they are sparse features. Only labels of training
// nodes are columns here: a predicted node must not read its own label.
func (c *call) layerInput(x *stage, nodes []int32) (in nn.Input, err error) {
	if x != c.input {
		in.X.Dense, err = c.get(x, nodes)
		return in, err
	}
	in.X = c.model.Encoder.Encode(c.features(nodes))
	if c.model.Spec.Encoder.Labels > 0 {
		labels, split := c.labelled(nodes)
		class := graph.ClassIn(graph.Train, labels, split)
		in.X = graph.Columns([]graph.Features{in.X, graph.OneHot(class, c.model.Spec.Classes)})
	}
	return in, nil
}

// head returns the layer's output for its rows h.
func (l layer) head(c *call, h mat.Dense) mat.Dense {
	if head := c.model.Head(l.k); head != nil {
		return nn.HeadLogits(head, h)
	}
	return h
}
