package nn

import (
	"errors"
	"fmt"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/internal/rng"
	"github.com/heddle-gnn/heddle/mat"
)

// Layer is h = x + Act(Norm(Conv(x))), x after dropout and only where the layer is residual. Its head, which makes class
// scores of h, is applied by the caller: some trainers throw it away.
type Layer struct {
	Spec     LayerSpec
	Name     string
	Edges    graph.Norm // how the caller must weigh the edges that it gives
	Conv     Conv
	Norm     Rows    // nil: none
	Act      Rows    // nil: none
	Residual *Linear // of a residual layer whose widths differ, else nil
	Head     Rows    // nil: none

	dropX, dropZ Dropout
}

// NewLayer returns the layer that spec describes. Initial values depend on key and name alone.
func NewLayer(name string, spec LayerSpec, key rng.Key) (*Layer, error) {
	if err := errors.Join(spec.faults()...); err != nil {
		return nil, fmt.Errorf("nn: %s: %w", name, err)
	}
	l := &Layer{
		Spec: spec, Name: name,
		dropX: Dropout{name + ".dropout", spec.Dropout},
		dropZ: Dropout{name + ".dropout.aggregate", spec.Dropout},
	}
	in, out := spec.In, spec.Out
	switch spec.Conv {
	case "gcn":
		l.Conv, l.Edges = NewGCN(name, in, out, key), graph.GCN
	case "sage":
		l.Conv, l.Edges = NewSAGE(name, in, out, key), graph.Mean
	case "sage-pool":
		l.Conv, l.Edges = NewSAGEPool(name, in, out, key), graph.Plain
	case "gat":
		l.Conv, l.Edges = NewGAT(name, in, out, max(spec.Heads, 1), spec.Average, spec.AttentionDropout, key), graph.Loops
	case "gin":
		l.Conv, l.Edges = NewGIN(name, in, out, key), graph.Loops
	case "rgcn":
		l.Conv, l.Edges = NewRGCN(name, in, out, spec.Relations, spec.Bases, key), graph.Mean
	case "appnp":
		l.Conv, l.Edges = NewAPPNP(name, in, out, spec.Teleport, key), graph.GCN
	case "sign":
		l.Conv = NewSIGN(name, in, out, spec.Hops, key)
	case "mlp":
		l.Conv = NewMLP(name, in, out, key)
	}
	l.Conv.Hops = spec.Hops
	switch {
	case spec.Norm:
		l.Norm = NewLayerNorm(name+".norm", out)
	case spec.BatchNorm:
		l.Norm = NewBatchNorm(name+".norm", out)
		l.Conv.endWithoutBias()
	}
	switch spec.Act {
	case "relu":
		l.Act = ReLU{}
	case "elu":
		l.Act = ELU{}
	}
	if spec.Residual && in != out {
		l.Residual = NewLinear(name+".residual", in, out, false, key)
	}
	if len(spec.Head) > 0 {
		l.Head = NewHead(name+".head", out, spec.Head, spec.Dropout, key)
	}
	return l, nil
}

// Params returns the parameters of the convolution, the residual map and the norm, not those of the head.
func (l *Layer) Params() []*Param {
	all := l.Conv.Params()
	if l.Residual != nil {
		all = append(all, l.Residual.Params()...)
	}
	if l.Norm != nil {
		all = append(all, l.Norm.Params()...)
	}
	return all
}

// Running returns the statistics that inference reads and no optimiser changes: those of a BatchNorm.
func (l *Layer) Running() []*Param {
	if b, ok := l.Norm.(*BatchNorm); ok {
		return b.Running()
	}
	return nil
}

// Settle moves the running statistics to those of the last Forward in training. It ends a step that counts.
func (l *Layer) Settle() {
	if b, ok := l.Norm.(*BatchNorm); ok {
		b.Settle()
	}
}

// Frozen reports whether the aggregate of a constant input is constant, so that it can be computed once and given as
// Input.Z.
func (l *Layer) Frozen() bool { return l.Conv.Frozen() }

// Affine returns the maps of a layer that computes x·self + z·nbr + bias and nothing else, z being the aggregate; a map
// that is absent is nil, and the bias is that of the last one present.
func (l *Layer) Affine() (self, nbr *Linear, ok bool) {
	c := &l.Conv
	if l.Norm != nil || l.Act != nil || l.Spec.Residual || !c.Frozen() || c.Post != nil {
		return nil, nil, false
	}
	if c.Self != nil {
		if self, ok = c.Self.(*Linear); !ok {
			return nil, nil, false
		}
	}
	if c.Agg != nil {
		if nbr, ok = c.Nbr.(*Linear); !ok {
			return nil, nil, false
		}
	}
	return self, nbr, true
}

// Forward writes the layer's rows h, R×Spec.Out: R is the block's destinations, or the rows of X where in.G is nil. The
// head is not applied. In training h and in must stay as they are until Backward, but where X or h can be made again
// (Again): X's memory, given in.Again, may be h's as well, and others' later. A wrong shape panics.
func (l *Layer) Forward(h mat.Dense, in Input, t *Tape) {
	l.check(h, in)
	var m mark
	if t != nil {
		t.Nodes, m = in.Nodes, t.arena.at
	}
	if l.readsX(in.G) {
		in.X = l.dropX.features(in.X, t)
	}
	if in.G == nil && l.Conv.Agg != nil {
		in.Z = l.dropZ.features(in.Z, t)
	}
	y := h
	if l.Spec.Residual || l.Norm != nil && t.training() && !l.sums() { // the norm's gradient reads its input
		y = t.raw(h.Rows, h.Cols)
	}
	l.Conv.Forward(y, in, t)
	if l.Norm != nil {
		next := h
		if l.Spec.Residual {
			next = y
			if t.training() {
				next = t.raw(h.Rows, h.Cols)
			}
		}
		l.Norm.Forward(next, y, t)
		if t.training() && l.sums() {
			n := len(t.kept)
			t.kept[n-1].acc = t.kept[n-3].acc // the aggregator's; between them lies the convolution's own
		}
		y = next
	}
	if l.Act != nil {
		l.Act.Forward(y, y, t)
	}
	if l.Spec.Residual {
		x := firstRows(in.X, h.Rows, t)
		if l.Residual != nil {
			forward(l.Residual, h, x, t)
		} else {
			addIdentity(h, x)
		}
		addRows(h, y)
	}
	t.push(entry{graph: in.G, x: in.X.Dense, again: in.Again})
	if t != nil && t.infer {
		t.arena.release(m)
	}
}

// addIdentity writes x to h.
func addIdentity(h mat.Dense, x graph.Features) {
	if x.Sparse == nil {
		h.CopyFrom(x.Dense)
		return
	}
	for i := range h.Rows {
		x.Sparse.Spread(h.Row(i), i)
	}
}

// Backward takes what Forward kept, adds to the parameters' gradients and, unless dx is empty, to dx the gradient of the
// rows of X. Z is a constant. dh is used up. Given in.Again, X is made again where that is needed, and dx, unless it is
// empty, must be X: its gradient takes its place.
func (l *Layer) Backward(dx, dh mat.Dense, t *Tape) {
	kept := t.pop()
	m := t.arena.at
	dropped, again := l.readsX(kept.graph) && l.Spec.Dropout > 0, kept.again.Possible()
	over := (dropped || again) && !dx.Empty() && !l.Spec.Residual && l.Conv.fitsOver()
	d := dx // gradient of x after dropout
	switch {
	case over:
		d = kept.x
	case (dropped || again) && !dx.Empty():
		d = t.Scratch(dx.Rows, dx.Cols)
	}
	fill := func() {
		if again && !dropped {
			kept.again.rows(kept.x, t)
		}
	}
	var dy mat.Dense
	if l.Spec.Residual {
		fill()
		l.residualGrad(d, dh, t)
		dy = l.tailGrad(dh, t)
	} else {
		dy = l.tailGrad(dh, t) // dh may lie where X is made again
		if !l.sums() {
			fill()
		}
	}
	l.Conv.backward(d, dy, over, fill, t)
	if kept.graph == nil && l.Conv.Agg != nil {
		t.pop() // dropout of Z
	}
	switch {
	case dropped:
		if again {
			dx.Zero()
		}
		l.dropX.Backward(dx, d, t)
	case l.readsX(kept.graph):
		t.pop()
		if again && !over {
			copyRows(dx, d)
		}
	}
	t.arena.release(m)
}

// residualGrad adds to dx what reached h beside the convolution.
func (l *Layer) residualGrad(dx, dh mat.Dense, t *Tape) {
	var own mat.Dense
	if !dx.Empty() {
		own = dx.RowRange(0, dh.Rows)
	}
	if l.Residual != nil {
		l.Residual.Backward(own, dh, t)
	} else {
		addRows(own, dh)
	}
}

// readsX reports whether the layer reads X: given the aggregate alone, GCN and GIN do not.
func (l *Layer) readsX(g *graph.CSR) bool {
	return g != nil || l.Conv.Self != nil || l.Spec.Residual
}

// check panics where Forward's arguments do not fit one another: the caller's bug.
func (l *Layer) check(h mat.Dense, in Input) {
	rows := in.X.Rows()
	switch {
	case in.G != nil:
		if in.X.Rows() != in.G.NumSrc {
			panic(fmt.Sprintf("nn: %s: %d rows for a block of %d sources", l.Name, in.X.Rows(), in.G.NumSrc))
		}
		rows = l.Conv.dsts(in.G)
	case l.Conv.Agg == nil:
	case !l.Frozen():
		panic(fmt.Sprintf("nn: %s: the aggregate of %s depends on its parameters; it takes a block", l.Name, l.Spec.Conv))
	default:
		if !l.readsX(nil) {
			rows = in.Z.Rows()
		}
		if in.Z.Rows() != rows || in.Z.Cols() != l.Spec.In {
			panic(fmt.Sprintf("nn: %s: aggregate is %d×%d, want %d×%d", l.Name, in.Z.Rows(), in.Z.Cols(), rows, l.Spec.In))
		}
	}
	if h.Rows != rows || h.Cols != l.Spec.Out {
		panic(fmt.Sprintf("nn: %s writes %d×%d, given %d×%d", l.Name, rows, l.Spec.Out, h.Rows, h.Cols))
	}
	if in.Nodes != nil && len(in.Nodes) < rows {
		panic(fmt.Sprintf("nn: %s: %d node IDs for %d rows", l.Name, len(in.Nodes), rows))
	}
}

// NewHead returns Linear, then ReLU, dropout and Linear for each further width: a classifier of rows of width in.
func NewHead(name string, in int, widths []int, dropout float32, key rng.Key) Rows {
	var s Stack
	for k, out := range widths {
		at := fmt.Sprintf("%s.%d", name, k)
		if k > 0 {
			s = append(s, ReLU{}, &Dropout{at + ".dropout", dropout})
		}
		s = append(s, NewLinear(at, in, out, true, key))
		in = out
	}
	return s
}
