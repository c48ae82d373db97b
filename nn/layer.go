package nn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/heddle-gnn/heddle/graph"
	"github.com/heddle-gnn/heddle/mat"
	"github.com/heddle-gnn/heddle/nn/aggregate"
	"github.com/heddle-gnn/heddle/nn/tape"
	"github.com/heddle-gnn/heddle/rng"
)

// Layer is h = x + Act(Norm(Conv(x))), with x after dropout and only if the layer is residual. The caller applies its
// head, which computes logits from h: some trainers drop it.
type Layer struct {
	Spec     LayerSpec
	Name     string
	Edges    graph.Norm // how the caller must weigh the edges
	Conv     Conv
	Norm     normalisation    // nil = none
	Act      *tape.Activation // nil = none
	Residual *tape.Linear     // for a residual layer whose widths differ, else nil
	Head     tape.Operator    // nil = none

	agg          aggregate.Aggregator // Conv.Agg as it was built
	batch        *BatchNorm           // Norm, if it is a BatchNorm
	dropX, dropZ tape.Dropout
}

// normalisation is a LayerNorm or a BatchNorm. stats is what Forward kept of rows x, if it kept any.
type normalisation interface {
	tape.Operator
	Again(y, x, stats mat.Dense)     // writes rows as Forward in training did
	Grad(dx, x, stats, dy mat.Dense) // adds the gradient of rows x, unless dx is empty
}

// NewLayer returns the layer that spec describes. Initial values depend only on key and name.
func NewLayer(name string, spec LayerSpec, key rng.Key) (*Layer, error) {
	if err := errors.Join(spec.faults()...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l := &Layer{
		Spec: spec, Name: name,
		dropX: tape.Dropout{Name: name + ".dropout", P: spec.Dropout},
		dropZ: tape.Dropout{Name: name + ".dropout.aggregate", P: spec.Dropout},
	}
	c := spec.convolution()
	in, out := spec.In, spec.Out
	l.Conv, l.Edges = c.build(name, spec, key), c.Edges
	l.Conv.Hops, l.agg = spec.Hops, l.Conv.Agg
	if err := l.faults(c); err != nil {
		return nil, fmt.Errorf("%s: convolution %s %w", name, c.Name, err)
	}
	switch {
	case spec.Norm:
		l.Norm = NewLayerNorm(name+".norm", out)
	case spec.BatchNorm:
		l.batch = NewBatchNorm(name+".norm", out)
		l.Norm = l.batch
	}
	l.Act = tape.NewActivation(spec.Act)
	if spec.Residual && in != out {
		l.Residual = tape.NewLinear(name+".residual", in, out, false, key)
	}
	if len(spec.Head) > 0 {
		l.Head = tape.NewHead(name+".head", out, spec.Head, spec.Dropout, key)
	}
	return l, nil
}

// faults returns an error if the convolution differs from its row in the table.
func (l *Layer) faults(c Convolution) error {
	for _, p := range l.Conv.Params() {
		if !strings.HasPrefix(p.Name, l.Name+".") {
			return fmt.Errorf("must have parameters whose names begin with the layer's (got %q)", p.Name)
		}
	}
	var is aggregate.Properties
	if l.agg != nil {
		is = l.agg.Properties()
	}
	if (l.agg != nil) != c.Aggregates || is.Sum != c.Sum || is.NeedsSource != c.NeedsSource {
		return fmt.Errorf("must aggregate, sum and need sources as its traits have it (got %t, %t, %t)",
			l.agg != nil, is.Sum, is.NeedsSource)
	}
	if _, sparse := l.agg.(aggregate.SparseAggregator); l.agg != nil && !sparse && !is.Sum && l.Conv.Pre == nil {
		return errors.New("must have Pre, or an aggregator that sums or reads sparse rows: features may be sparse")
	}
	if l.agg != l.Conv.Agg { // also panics at once if aggregators cannot be compared
		return errors.New("must keep its aggregator: register another convolution (nn.Register)")
	}
	return nil
}

// Registered returns an error if a layer differs from the one that the table makes for its spec: no file can describe
// it.
func (m *Model) Registered() error {
	for _, l := range m.Layers {
		c := l.Spec.convolution()
		err := l.faults(c)
		if l.Edges != c.Edges {
			err = errors.New("must keep its edge weights: register another convolution (nn.Register)")
		}
		if err != nil {
			return fmt.Errorf("%s: convolution %s %w", l.Name, c.Name, err)
		}
	}
	return nil
}

// Typed returns the stacked relations of a graph of the given number of destinations as the layer
// takes them: weighted, within each relation, and with the relations that mark the nodes that a
// relation reaches.
func (l *Layer) Typed(g *graph.CSR, destinations int) *graph.CSR {
	g = graph.Normalise(g, g.Degrees(), l.Edges)
	if l.Conv.Reached {
		g = g.WithReached(destinations, nil)
	}
	return g
}

// Params returns the parameters of the convolution, the residual map and the norm, without the
// head's.
func (l *Layer) Params() []*tape.Param {
	all := append(l.Conv.Params(), l.Residual.Params()...)
	if l.Norm != nil {
		all = append(all, l.Norm.Params()...)
	}
	return all
}

// Running returns the statistics of a BatchNorm, which inference reads and no optimiser changes.
func (l *Layer) Running() []*tape.Param {
	if l.batch == nil {
		return nil
	}
	return l.batch.Running()
}

// Settle moves the running statistics to the statistics of the last Forward in training. It ends a
// step that counts.
func (l *Layer) Settle() {
	if l.batch != nil {
		l.batch.Settle()
	}
}

// Frozen reports whether the aggregate of a constant input is constant, so that it can be computed once and passed as
// Input.Z.
func (l *Layer) Frozen() bool { return l.Conv.frozen() }

// Sums reports whether the layer's aggregate is Σ_j w_ij z_j, so that other workers may send sums instead of rows.
func (l *Layer) Sums() bool { return l.Conv.Agg != nil && l.Conv.Agg.Properties().Sum }

// SentWidth returns the number of values in a row that other workers read: of the input, or of the layer's projection
// of it.
func (l *Layer) SentWidth() int {
	switch c := &l.Conv; {
	case c.Pre != nil:
		_, w := c.Pre.Dims()
		return w
	case c.Nbr != nil:
		in, out := c.Nbr.Dims()
		return min(in, out)
	}
	return l.Spec.In
}

// OutputBias returns the constants that are added last to the columns of the output of the head, or of a layer
// without a head. It is nil if there are none.
func (l *Layer) OutputBias() []float32 {
	var b *tape.Param
	switch c := &l.Conv; {
	case l.Head != nil:
		all := l.Head.Params()
		b = all[len(all)-1]
	case l.Norm != nil || l.Act != nil || c.Post != nil && c.Bias == nil:
	case c.Bias != nil:
		b = c.Bias
	case c.Nbr != nil && c.Nbr.B != nil:
		b = c.Nbr.B
	case c.Self != nil:
		b = c.Self.B
	}
	if b == nil {
		return nil
	}
	return b.Value.Row(0)
}

// Reads returns the inputs of a frozen layer's maps, given the aggregate: the own row and the aggregate side by side,
// as far as they are read.
func (l *Layer) Reads(in Input) mat.Dense {
	var block []graph.Features
	if l.Conv.Agg == nil || l.Conv.Self != nil || l.Spec.Residual {
		block = append(block, in.X)
	}
	if l.Conv.Agg != nil {
		block = append(block, in.Z)
	}
	return graph.Columns(block).Matrix()
}

// Forward writes the layer's rows h, R×Spec.Out. R is the number of the block's destinations, or of the rows of X if
// in.G is nil. The head is not applied. In training h and in must not change until Backward, unless X or h can be
// recomputed (Again): X's memory, given in.Again, may then be h's, and later another layer's. A wrong shape panics.
func (l *Layer) Forward(h mat.Dense, in Input, t *tape.Tape) {
	var f Forward
	f.Begin(l, h, in, t)
	for hop := f.Hop(); hop != nil; hop = f.Hop() {
		hop.Near()
	}
	f.End()
}

// Backward pops what Forward kept, adds to the parameters' gradients and, unless dx is empty, writes the gradient of
// the rows of X to dx. Z is a constant. dh is overwritten. Given in.Again, X is recomputed if needed, and dx, unless it
// is empty, must be X: the gradient overwrites it.
func (l *Layer) Backward(dx, dh mat.Dense, t *tape.Tape) {
	var b Backward
	b.Begin(l, dx, dh, t)
	for hop := b.Hop(); hop != nil; hop = b.Hop() {
		hop.Near()
	}
	b.End()
}

// residualGrad adds the gradient of the residual connection to dx.
func (l *Layer) residualGrad(dx, dh mat.Dense, t *tape.Tape) {
	var own mat.Dense
	if !dx.Empty() {
		own = dx.RowRange(0, dh.Rows)
	}
	if l.Residual != nil {
		l.Residual.Backward(own, dh, t)
	} else {
		tape.AddTo(own, dh)
	}
}

// readsX reports whether the layer reads X: given only the aggregate, GCN and GIN do not.
func (l *Layer) readsX(g *graph.CSR) bool {
	return g != nil || l.Conv.Self != nil || l.Spec.Residual
}

// check panics if Forward's arguments do not fit one another: the caller's bug.
func (l *Layer) check(h mat.Dense, in Input) {
	rows := in.X.Rows()
	switch {
	case in.G != nil:
		if in.X.Rows() != in.G.NumSrc {
			panic(fmt.Sprintf("nn: %s: x must have a row for each of %d sources (got %d)",
				l.Name, in.G.NumSrc, in.X.Rows()))
		}
		rows = l.Conv.dsts(in.G)
	case l.Conv.Agg == nil:
	case !l.Frozen():
		panic(fmt.Sprintf("nn: %s: %s must be given a block, since its aggregate depends on parameters",
			l.Name, l.Spec.Conv))
	default:
		if !l.readsX(nil) {
			rows = in.Z.Rows()
		}
		if in.Z.Rows() != rows || in.Z.Cols() != l.Spec.In {
			panic(fmt.Sprintf("nn: %s: z must be %d×%d (got %d×%d)", l.Name, rows, l.Spec.In, in.Z.Rows(), in.Z.Cols()))
		}
	}
	if h.Rows != rows || h.Cols != l.Spec.Out {
		panic(fmt.Sprintf("nn: %s: h must be %d×%d (got %d×%d)", l.Name, rows, l.Spec.Out, h.Rows, h.Cols))
	}
	if in.Nodes != nil && len(in.Nodes) < rows {
		panic(fmt.Sprintf("nn: %s: nodes must have an ID for each of %d rows (got %d)", l.Name, rows, len(in.Nodes)))
	}
}
